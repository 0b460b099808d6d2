"""The position moves together with all that its records become, and by one holder only (I3)."""

from __future__ import annotations

import pytest

from tests.support.builders import NOW, a_match, an_inbox_row
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Applied, Cancelled, Put
from tidegate_core.writes.cursor_moves import USES_MAX, Uses, dedupe_row, move_cursor
from tidegate_core.writes.fencing import Cursor, cursor_of, raise_topic_partition
from tidegate_memory.store import MemoryStore

TP = keys.topic_position("brokers", "b" * 32, 0)
DAY = 24 * 3_600_000


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.transact(raise_topic_partition(TP, None, 1, "node-1", "raise"))
    return made


def at(next_offset: int, page: str = "-", epoch: int = 1, map_version: int = 1) -> Cursor:
    return Cursor(TP, epoch, map_version, next_offset, page, 0)


def used(*at: int) -> Uses:
    return Uses(at, at[-1] + DAY)


def noted(at: int, seen: Uses | None = None, namespace: str = "flights") -> Put:
    uses = used(at) if seen is None else seen.and_at(at, at + DAY)
    return dedupe_row(namespace, "e-1", uses, at + 8 * DAY, seen)


def test_given_a_move_then_position_and_rows_are_there_together(store: MemoryStore) -> None:
    row = an_inbox_row(1, a_match("d1"))
    dedupe = noted(NOW)
    assert store.transact(move_cursor(at(0), 5, "-", NOW, [(3, row)], [dedupe], "t")) == Applied()
    assert cursor_of(TP, store.peek(TP) or {}) == Cursor(TP, 1, 1, 5, "-", NOW)
    assert store.peek(row.key(3)) is not None
    assert store.peek(dedupe.key) == {**dedupe.item}
    assert dedupe.item["expires_at"] == (NOW + 8 * DAY) // 1000


def test_given_dead_letters_under_way_then_the_position_names_them_until_a_move_says_otherwise(
    store: MemoryStore,
) -> None:
    assert store.transact(move_cursor(at(0), 5, "-", NOW, [], [], "one", dead=(2, 3))) == Applied()
    assert cursor_of(TP, store.peek(TP) or {}).open == (2, 3)
    store.transact(raise_topic_partition(TP, store.peek(TP), 1, "node-2", "raise-2"))
    taken = cursor_of(TP, store.peek(TP) or {})
    assert (taken.epoch, taken.next, taken.open) == (2, 5, (2, 3))
    assert store.transact(move_cursor(taken, 5, "-", NOW, [], [], "two")) == Applied()
    assert cursor_of(TP, store.peek(TP) or {}).open == ()


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(at(1), id="another offset"),
        pytest.param(at(0, "x"), id="another page"),
        pytest.param(at(0, epoch=2), id="another epoch"),
        pytest.param(at(0, map_version=2), id="another map"),
    ],
)
def test_given_another_position_than_the_one_seen_then_nothing_of_the_move_happens(
    store: MemoryStore, seen: Cursor
) -> None:
    row = an_inbox_row(1, a_match("d1"))
    assert isinstance(store.transact(move_cursor(seen, 5, "-", NOW, [(0, row)], [], "t")), Cancelled)
    assert store.peek(row.key(0)) is None


def test_given_the_same_move_twice_then_the_second_is_refused(store: MemoryStore) -> None:
    move = move_cursor(at(0), 5, "-", NOW, [], [], "one")
    assert store.transact(move) == Applied()
    assert isinstance(store.transact(move_cursor(at(0), 5, "-", NOW, [], [], "two")), Cancelled)


def test_given_a_raised_epoch_then_the_former_holder_moves_nothing(store: MemoryStore) -> None:
    store.transact(raise_topic_partition(TP, store.peek(TP), 1, "node-2", "raise again"))
    assert isinstance(store.transact(move_cursor(at(0), 5, "-", NOW, [], [], "zombie")), Cancelled)
    assert store.transact(move_cursor(at(0, epoch=2), 5, "-", NOW, [], [], "mine")) == Applied()


@pytest.mark.parametrize(
    ("later_ms", "is_repeat"),
    [
        (0, True),
        (DAY - 1, True),
        pytest.param(DAY, False, id="at its end"),
        (DAY + 1, False),
        (1 - DAY, True),
        pytest.param(-DAY, False, id="at its end, read behind the later one"),
    ],
)
def test_given_an_event_id_again_then_it_is_a_repeat_within_its_horizon_whichever_is_read_first(
    later_ms: int, is_repeat: bool
) -> None:
    assert Uses.of({**noted(NOW).item}).covers(NOW + later_ms) == is_repeat


def test_given_a_row_of_before_then_it_holds_until_its_end() -> None:
    """It counted from when its event was read, so it does not say of what came long before whether that is a repeat."""
    use = Uses.of({"until": NOW + DAY})
    assert [use.covers(NOW + each) for each in (-DAY, DAY - 1, DAY)] == [True, True, False]


@pytest.mark.parametrize(
    ("seen", "counts"),
    [
        (None, False),
        (used(NOW - DAY), False),
        (used(NOW - DAY, NOW), False),
        pytest.param(Uses((NOW,), NOW + DAY, is_of_before=True), False, id="written again by a newer node"),
        pytest.param(used(NOW), True, id="as it is"),
    ],
)
def test_given_an_event_id_again_then_only_who_has_read_its_row_counts_it(
    store: MemoryStore, seen: Uses | None, counts: bool
) -> None:
    store.transact(move_cursor(at(0), 1, "-", NOW, [], [noted(NOW)], "one"))
    again = move_cursor(at(1), 2, "-", NOW, [], [noted(NOW + DAY, seen)], "two")
    assert isinstance(store.transact(again), Applied) == counts


def test_given_a_row_that_was_read_and_is_gone_then_its_id_is_counted(store: MemoryStore) -> None:
    again = move_cursor(at(0), 1, "-", NOW, [], [noted(NOW + DAY, used(NOW))], "one")
    assert store.transact(again) == Applied()


def test_given_several_uses_then_each_of_them_covers_its_repeats_and_the_row_is_what_nodes_of_before_read() -> None:
    item = noted(NOW, used(NOW + 3 * DAY)).item
    assert (item["at"], item["until"], item["uses"]) == (NOW + 3 * DAY, NOW + 4 * DAY, [NOW, NOW + 3 * DAY])
    covered = [Uses.of({**item}).covers(NOW + days * DAY) for days in range(-1, 5)]
    assert covered == [False, True, False, False, True, False]


def test_given_more_uses_than_a_row_knows_then_the_oldest_is_dropped() -> None:
    uses = used(NOW)
    for day in range(1, USES_MAX + 1):
        uses = uses.and_at(NOW + day * DAY, NOW + (day + 1) * DAY)
    assert (len(uses.at), uses.at[0], uses.until) == (USES_MAX, NOW + DAY, NOW + (USES_MAX + 1) * DAY)


@pytest.mark.parametrize("names_it", [True, False], ids=["names its use", "oldest"])
def test_given_a_row_of_before_then_it_is_written_over_as_it_was_read_and_by_one_only(
    store: MemoryStore, names_it: bool
) -> None:
    row = noted(NOW + 2 * DAY)
    dropped = ("uses",) if names_it else ("uses", "at")
    of_before = {name: value for name, value in row.item.items() if name not in dropped}
    store.write([Put(row.key, of_before)])
    seen = Uses.of(of_before)
    first = move_cursor(at(0), 1, "-", NOW, [], [noted(NOW, seen)], "one")
    assert isinstance(store.transact(first), Applied)
    again = move_cursor(at(1), 2, "-", NOW, [], [noted(NOW + 1, seen)], "two")
    assert isinstance(store.transact(again), Cancelled)


def test_given_a_node_of_before_that_wrote_meanwhile_then_who_has_read_the_uses_is_refused(store: MemoryStore) -> None:
    row = noted(NOW + 2 * DAY)
    store.write([Put(row.key, {name: value for name, value in row.item.items() if name != "uses"})])
    again = move_cursor(at(0), 1, "-", NOW, [], [noted(NOW, used(NOW + 2 * DAY))], "one")
    assert isinstance(store.transact(again), Cancelled)


def test_given_event_ids_of_two_namespaces_then_they_do_not_meet() -> None:
    assert noted(NOW, namespace="a").key != noted(NOW, namespace="b").key
