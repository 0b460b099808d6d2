"""What was done about a letter: once, whoever asks, and seen again where nobody knows."""

from __future__ import annotations

import pytest

from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.store_operations import Applied, Cancelled
from tidegate_core.writes.dead_letter_marks import (
    REPLAYING_MS_MAX,
    Mark,
    MarkState,
    next_mark,
    replayed,
    set_mark,
    unset_mark,
)
from tidegate_memory.store import MemoryStore

NOW = 1_000_000


def a_mark(state: MarkState = "replaying", at: int = NOW, replays: int = 0) -> Mark:
    return Mark(state=state, letter="events-3-17", at=at, replays=replays)


@pytest.mark.parametrize(
    ("seen", "again", "acts"),
    [
        pytest.param(None, False, True, id="nobody has dealt with it"),
        pytest.param(a_mark("replayed"), False, False, id="replayed"),
        pytest.param(a_mark("dropped"), False, False, id="dropped"),
        pytest.param(a_mark("replayed"), True, True, id="replayed, again"),
        pytest.param(a_mark("dropped"), True, True, id="dropped, again"),
        pytest.param(a_mark(at=NOW - REPLAYING_MS_MAX + 1), False, False, id="under way"),
        pytest.param(a_mark(at=NOW - REPLAYING_MS_MAX + 1), True, False, id="under way, again"),
        pytest.param(a_mark(at=NOW - REPLAYING_MS_MAX), False, True, id="left behind"),
    ],
)
def test_given_a_mark_then_who_asks_acts_or_does_not(seen: Mark | None, again: bool, acts: bool) -> None:
    assert (next_mark(seen, a_mark(), again=again) is not None) == acts


def test_given_a_second_replay_then_both_are_counted() -> None:
    first = replayed(a_mark())
    second = next_mark(first, a_mark(), again=True)
    assert second is not None
    assert (first.replays, replayed(second).replays) == (1, 2)


def test_given_two_at_the_same_time_then_one_is_refused() -> None:
    store = MemoryStore()
    assert isinstance(store.transact(set_mark("o", None, a_mark(), "one")), Applied)
    assert isinstance(store.transact(set_mark("o", None, a_mark("dropped"), "two")), Cancelled)
    key = set_mark("o", None, a_mark(), "t").actions[0].key
    seen = store.get([key])[key]
    assert isinstance(store.transact(set_mark("o", seen, a_mark("dropped"), "three")), Applied)
    assert isinstance(store.transact(set_mark("o", seen, a_mark(), "four")), Cancelled)
    assert from_item(Mark, store.get([key])[key]).state == "dropped"


@pytest.mark.parametrize("before", [None, a_mark("dropped")])
def test_given_a_replay_that_was_refused_then_its_mark_goes(before: Mark | None) -> None:
    store = MemoryStore()
    key = set_mark("o", None, a_mark(), "t").actions[0].key
    if before is not None:
        store.transact(set_mark("o", None, before, "before"))
    seen = store.get([key]).get(key)
    store.transact(set_mark("o", seen, a_mark(), "claim"))
    claimed = store.get([key])[key]
    assert isinstance(store.transact(unset_mark("o", seen, claimed, "back")), Applied)
    left = store.get([key]).get(key)
    assert (None if left is None else from_item(Mark, left)) == before
