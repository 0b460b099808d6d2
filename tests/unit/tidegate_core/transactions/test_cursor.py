"""The position moves together with all that its records become, and by one holder only (I3)."""

from __future__ import annotations

import pytest

from tidegate_core.store import keys
from tidegate_core.store.values import Applied, Cancelled, Put
from tidegate_core.transactions.cursor import dedupe_row, move_cursor
from tidegate_core.transactions.ownership import Cursor, cursor_of, raise_topic_partition
from tidegate_memory.store import MemoryStore
from tidegate_testkit.builders import NOW, a_match, an_inbox_row

TP = keys.topic_position("brokers", "b" * 32, 0)
DAY = 24 * 3_600_000


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.transact(raise_topic_partition(TP, None, 1, "node-1", "raise"))
    return made


def at(next_offset: int, page: str = "-", epoch: int = 1, map_version: int = 1) -> Cursor:
    return Cursor(TP, epoch, map_version, next_offset, page, 0)


def test_given_a_move_then_position_and_rows_are_there_together(store: MemoryStore) -> None:
    row = an_inbox_row(1, a_match("d1"))
    dedupe = dedupe_row("flights", "e-1", NOW, DAY)
    assert store.transact(move_cursor(at(0), 5, "-", NOW, [(3, row)], [dedupe], "t")) == Applied()
    assert cursor_of(TP, store.peek(TP) or {}) == Cursor(TP, 1, 1, 5, "-", NOW)
    assert store.peek(row.key(3)) is not None
    assert store.peek(dedupe.key) == {**dedupe.item}
    assert dedupe.item["expires_at"] == (NOW + DAY) // 1000


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
    ("later_ms", "counts"),
    [(0, False), (DAY - 1, False), pytest.param(DAY, True, id="at its end"), (DAY + 1, True)],
)
def test_given_a_repeated_event_id_then_it_counts_again_only_beyond_its_horizon(
    store: MemoryStore, later_ms: int, counts: bool
) -> None:
    store.transact(move_cursor(at(0), 1, "-", NOW, [], [dedupe_row("f", "e", NOW, DAY)], "one"))
    again = move_cursor(at(1), 2, "-", NOW, [], [dedupe_row("f", "e", NOW + later_ms, DAY)], "two")
    assert isinstance(store.transact(again), Applied) == counts


def test_given_event_ids_of_two_namespaces_then_they_do_not_meet() -> None:
    assert dedupe_row("a", "e", NOW, DAY).key != dedupe_row("b", "e", NOW, DAY).key
    assert isinstance(dedupe_row("a", "e", NOW, DAY), Put)
