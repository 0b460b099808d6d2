"""Conditions that move delivery positions forward only, and that count an event id once."""

from __future__ import annotations

import pytest

from tests.simulation.stories.stage import takes
from tests.support.builders import HOUR, NOW
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Item, Put, Transaction
from tidegate_core.writes.cursor_moves import Uses, dedupe_row
from tidegate_core.writes.message_delivery import Progress, Tally, checkpoint
from tidegate_memory.store import MemoryStore

DAY = 24 * HOUR


def a_row_of_an_older_node(store: MemoryStore, at: int) -> Uses:
    """Writes it, and returns what a reader sees."""
    key = keys.dedupe("flights", "d1")
    item: Item = {"pk": key.pk, "sk": key.sk, "until": at + DAY, "at": at, "expires_at": (at + 2 * DAY) // 1000}
    store.write([Put(key, item)])
    return Uses.of(item)


def test_given_an_event_id_that_an_older_node_counts_meanwhile_then_its_repeat_does_not_count() -> None:
    store = MemoryStore()
    seen = a_row_of_an_older_node(store, NOW)
    a_row_of_an_older_node(store, NOW + DAY)
    repeat = NOW + DAY + HOUR
    row = dedupe_row("flights", "d1", seen.and_at(repeat, repeat + DAY), repeat + 2 * DAY, seen)
    counted = takes(store, Transaction("cursor", (row,), "1", None))
    assert not counted, "I3: an event that an older node has counted counts again an hour later"


def a_checkpoint(seen: tuple[int, str], to: tuple[int, str]) -> Transaction:
    return checkpoint(0, Progress(1, *seen, tally=Tally()), *to, Tally(), None, f"node-a/0.0/{seen}{to}")


@pytest.mark.parametrize(
    ("second", "third"),
    [
        pytest.param((NOW + 5, "a#1"), (NOW + 9, "a#1"), id="later"),
        pytest.param((NOW, "b#1"), (NOW, "c#1"), id="within a millisecond"),
    ],
)
def test_given_a_checkpoint_that_arrives_twice_then_the_delivery_position_does_not_go_back(
    second: tuple[int, str], third: tuple[int, str]
) -> None:
    store = MemoryStore(remembers_tokens=False)
    key = keys.progress(0)
    tally = {"delivered": 0, "expired": 0, "cancelled": 0, "dead": 0, "digest": 0}
    store.write([Put(key, {"pk": key.pk, "sk": key.sk, "epoch": 1, "fired_slot": NOW, "fired_id": "a#1", **tally})])
    late = a_checkpoint((NOW, "a#1"), second)
    assert takes(store, late)
    assert takes(store, a_checkpoint(second, third))
    assert not takes(store, late), "I8: the delivery position went back, before what may not be sent again"
