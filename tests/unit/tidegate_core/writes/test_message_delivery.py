"""Conditional writes of the delivery plane: the checkpoint, the guard, and next attempts of what was refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import FIRST_VERSION, FOR_EVER, Message, MessageFence, MessageTimer
from tidegate_core.rows.store_operations import Applied, Cancelled, Put
from tidegate_core.writes.fencing import acquire_shard
from tidegate_core.writes.message_delivery import (
    DIGEST_MODULUS,
    Progress,
    Tally,
    checkpoint,
    progress_of,
    raise_fence,
    refuse_version,
    retry,
)
from tidegate_memory.store import MemoryStore

PROGRESS = keys.progress(0)


def stored(store: MemoryStore) -> Progress:
    item = store.peek(PROGRESS)
    assert item is not None
    return progress_of(item)


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.transact(acquire_shard(0, None, None, 1, 1, "node-1", "acquire"))
    return made


def test_given_a_checkpoint_then_place_and_tally_are_absolute(store: MemoryStore) -> None:
    tally = Tally(delivered=2, expired=1, cancelled=3, dead=4, digest=5)
    assert store.transact(checkpoint(0, stored(store), 100, "id#v", tally, None, "one")) == Applied()
    assert stored(store) == Progress(1, 100, "id#v", tally)


def test_given_a_checkpoint_from_another_place_then_it_is_refused(store: MemoryStore) -> None:
    before = stored(store)
    store.transact(checkpoint(0, before, 100, "a", Tally(), None, "one"))
    assert isinstance(store.transact(checkpoint(0, before, 200, "b", Tally(), None, "two")), Cancelled)
    assert stored(store).slot == 100


def test_given_a_new_owner_then_the_former_ones_checkpoint_is_refused(store: MemoryStore) -> None:
    before = stored(store)
    store.transact(acquire_shard(0, store.peek(keys.lease(0)), store.peek(PROGRESS), 1, 2, "node-2", "again"))
    assert isinstance(store.transact(checkpoint(0, before, 100, "a", Tally(), None, "zombie")), Cancelled)
    assert store.transact(checkpoint(0, stored(store), 50, "a", Tally(), None, "mine")) == Applied()


def test_given_a_closed_tally_then_its_row_is_written_with_the_checkpoint_or_not_at_all(store: MemoryStore) -> None:
    key = keys.closed_tally(0, 60_000, 1)
    row = Put(key, {"pk": key.pk, "sk": key.sk, "delivered": 9})
    wrong = Progress(1, 5, "?", Tally())
    assert isinstance(store.transact(checkpoint(0, wrong, 9, "a", Tally(), row, "one")), Cancelled)
    assert store.peek(key) is None
    assert store.transact(checkpoint(0, stored(store), 9, "a", Tally(), row, "two")) == Applied()
    assert store.peek(key) == row.item


@pytest.mark.parametrize(
    ("before", "wanted", "rises"),
    [
        pytest.param(None, "v5", True, id="first"),
        pytest.param("v4", "v5", True, id="newer"),
        pytest.param("v5", "v5", False, id="equal: a replay"),
        pytest.param("v6", "v5", False, id="older"),
        pytest.param(FOR_EVER, "v5", False, id="cancelled for ever"),
        pytest.param("v5", FOR_EVER, True, id="to for ever"),
    ],
)
def test_given_a_guard_then_it_only_rises(store: MemoryStore, before: str | None, wanted: str, rises: bool) -> None:
    if before is not None:
        store.transact(raise_fence(0, 1, MessageFence(id="m", live_from=before), "before"))
    outcome = store.transact(raise_fence(0, 1, MessageFence(id="m", live_from=wanted), "now"))
    assert isinstance(outcome, Applied) == rises
    item = store.peek(keys.message_fence(0, "m"))
    assert item is not None
    assert item["live_from"] == (wanted if rises else before)


def test_given_a_new_owner_then_the_former_one_raises_no_guard(store: MemoryStore) -> None:
    """The present owner may have loaded what the guard covers, and would not hear of it (I7)."""
    store.transact(acquire_shard(0, store.peek(keys.lease(0)), store.peek(PROGRESS), 1, 2, "node-2", "again"))
    assert isinstance(store.transact(raise_fence(0, 1, MessageFence(id="m", live_from="v"), "zombie")), Cancelled)
    assert store.transact(raise_fence(0, 2, MessageFence(id="m", live_from="v"), "mine")) == Applied()


def test_given_refused_versions_then_the_guard_covers_each_for_ever_and_a_late_repeat_takes_nothing_away() -> None:
    store = MemoryStore(remembers_tokens=False)
    store.transact(acquire_shard(0, None, None, 1, 1, "node-1", "acquire"))
    store.transact(raise_fence(0, 1, MessageFence(id="m", live_from="v3", expires_at=9), "before"))
    first, second = (refuse_version(0, 1, "m", version, version) for version in ("v5", "v7"))
    for each in (first, second, first):
        assert store.transact(each) == Applied()
    item = store.peek(keys.message_fence(0, "m"))
    assert item is not None
    guard = from_item(MessageFence, item)
    assert (guard.live_from, guard.refused, guard.expires_at) == ("v3", frozenset({"v5", "v7"}), None)
    assert [version for version in ("v2", "v3", "v4", "v5", "v6", "v7", "v8") if guard.covers(version)] == [
        "v2",
        "v5",
        "v7",
    ]


def test_given_a_new_owner_then_the_former_one_refuses_no_version(store: MemoryStore) -> None:
    """The present one may have refused the record for which this one was to be refused: then both would be."""
    store.transact(acquire_shard(0, store.peek(keys.lease(0)), store.peek(PROGRESS), 1, 2, "node-2", "again"))
    assert isinstance(store.transact(refuse_version(0, 1, "m", "v", "zombie")), Cancelled)
    assert store.transact(refuse_version(0, 2, "m", "v", "mine")) == Applied()


def a_refused_fire(number: int) -> tuple[MessageTimer, Message]:
    message = Message(
        id=f"m-{number}",
        version=FIRST_VERSION,
        origin="",
        namespace="flights",
        nominal=100,
        slot=5_100,
        topic="out",
        payload=b"x",
        keyed=False,
        headers="[]",
    )
    timer = MessageTimer(slot=5_100, id=message.id, version=FIRST_VERSION, origin="", attempt=2, expires_at=9)
    return timer, message


def test_given_refused_fires_then_each_gets_both_rows_under_the_epoch_of_its_owner(store: MemoryStore) -> None:
    rows = [row for number in range(3) for row in a_refused_fire(number)]
    assert store.transact(retry(0, 1, [], rows, "mine")) == Applied()
    assert store.transact(retry(0, 1, [], rows, "mine, once more")) == Applied()
    for row in rows:
        assert store.peek(row.key(0)) == to_item(row, row.key(0))


def test_given_a_new_owner_then_the_former_one_gives_a_refused_fire_no_rows(store: MemoryStore) -> None:
    """The present one has looked for them, and has sent the fire from its place (I8)."""
    store.transact(acquire_shard(0, store.peek(keys.lease(0)), store.peek(PROGRESS), 1, 2, "node-2", "again"))
    timer, message = a_refused_fire(0)
    assert isinstance(store.transact(retry(0, 1, [], [timer, message], "zombie")), Cancelled)
    assert store.peek(timer.key(0)) is None
    assert store.peek(message.key(0)) is None
    assert store.transact(retry(0, 2, [], [timer, message], "mine")) == Applied()


def test_given_a_refused_message_then_the_next_attempt_has_a_row_in_place_of_the_one_before_or_neither_moves(
    store: MemoryStore,
) -> None:
    """The present owner has loaded the one of before, and sends it from there (I8)."""
    after, _ = a_refused_fire(0)
    before = replace(after, slot=100, attempt=1)
    store.write([Put(before.key(0), to_item(before, before.key(0)))])
    assert isinstance(store.transact(retry(0, 2, [before.key(0)], [after], "not yet")), Cancelled)
    assert (store.peek(before.key(0)) is None, store.peek(after.key(0)) is None) == (False, True)
    for token in ("mine", "mine, once more"):
        assert store.transact(retry(0, 1, [before.key(0)], [after], token)) == Applied()
        assert store.peek(before.key(0)) is None
        assert store.peek(after.key(0)) == to_item(after, after.key(0))


@given(
    tallies=st.lists(
        st.builds(
            Tally, delivered=st.integers(0, 9), dead=st.integers(0, 9), digest=st.integers(0, DIGEST_MODULUS - 1)
        ),
        max_size=6,
    )
)
def test_given_any_order_then_the_sum_of_tallies_is_the_same_and_fits_the_store(tallies: list[Tally]) -> None:
    def total(parts: list[Tally]) -> Tally:
        result = Tally()
        for part in parts:
            result = result.plus(part)
        return result

    assert total(tallies) == total(tallies[::-1])
    assert 0 <= total(tallies).digest < DIGEST_MODULUS
