"""The judge of shared queues: who looked when is told by the first send, however long the store gives no answer after that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.monitors.limit_monitor import LimitMonitor
from tests.simulation.runner.trace import Trace
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.world.observations import Record
from tests.simulation.world.store import SimStore
from tests.simulation.world.timeline import START, Timeline
from tests.support.builders import NOW
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.shared_limit import QueueEntry
from tidegate_core.rows.store_operations import Action, Item, Key, Put, Transaction
from tidegate_core.writes.limit_permits import mark_queue, offer_slots

LIMIT = keys.shared_limit("flights", "program", "x")
HOME = 3
MINUTE_MS = 60_000
CALM_MS = 5_000
"""More than lies between a look and its first send where nothing is slow."""


def joins(job_id: str, waits_since: int, limit: Key = LIMIT) -> tuple[Action, ...]:
    waiter = QueueEntry(
        limit=limit.pk, job_id=job_id, satisfied_at=waits_since, order=waits_since, most=2, asked_at=waits_since
    )
    key = waiter.key(HOME)
    return (Put(key, to_item(waiter, key)), mark_queue(limit, job_id))


@pytest.mark.parametrize(
    ("joined_ms", "objects"),
    [
        pytest.param(-CALM_MS, True, id="it was there when its author looked"),
        pytest.param(CALM_MS, False, id="it came while the offer was on its way"),
    ],
)
def test_given_an_offer_that_the_store_does_not_take_for_a_long_time_then_it_passes_those_alone_who_were_there_before_it_was_sent(
    joined_ms: int, objects: bool
) -> None:
    """`offer` is hunted in some worlds, and gets no answer for up to 20 s: what has joined meanwhile nobody had seen."""
    timeline, record = Timeline(0), Record()
    swarm = swarm_of(0, faults=False)
    out = ((CALM_MS, CALM_MS + MINUTE_MS),)
    store = SimStore(timeline, Trace(timeline), replace(swarm.store, aimed=("offer",), aimed_outs=out))
    monitor = LimitMonitor(store, record, replace(swarm, store=replace(swarm.store, aimed=("offer",), aimed_outs=out)))
    sent_at = START + 2 * CALM_MS
    offer = Transaction("offer", (offer_slots(LIMIT, ["0001-late"]),), "home/3.1/7", None)

    def write(at: int, *actions: Action) -> None:
        timeline.run(at)
        store.memory.transact(Transaction("admit", actions, f"t/{at}", None))

    write(START + 1, *joins("0001-late", NOW))
    timeline.after(sent_at - timeline.now, lambda: store.transact(offer, lambda answer: None))
    write(sent_at + joined_ms, *joins("0002-early", NOW - MINUTE_MS))
    timeline.run(sent_at + MINUTE_MS)
    assert not record.failures
    assert monitor.limits[LIMIT.pk].waits.keys() == {(NOW, "0001-late"), (NOW - MINUTE_MS, "0002-early")}
    store.memory.transact(offer)
    assert any("0002-early waits since longer" in each for each in record.failures) == objects


def test_given_an_end_because_others_wait_that_the_store_does_not_take_for_a_long_time_then_it_is_judged_by_what_was_there_before() -> (
    None
):
    timeline = Timeline(0)
    swarm = swarm_of(0, faults=False)
    out = replace(swarm.store, aimed=("admit",), aimed_outs=((0, MINUTE_MS),))
    store = SimStore(timeline, Trace(timeline), out)
    monitor = LimitMonitor(store, Record(), swarm)
    key = Key("SH#0001", "L#one", "history")
    told: Item = {
        "pk": key.pk,
        "sk": key.sk,
        "name": "x",
        "version": 1,
        "disposition": "skipped",
        "detail": "others wait for x",
        "job_id": "one",
    }
    row = Put(key, told)
    end = Transaction("admit", (row,), "t/1", None)
    store.transact(end, lambda answer: None)
    timeline.run(timeline.now + MINUTE_MS)
    store.memory.transact(end)
    (refused,) = monitor.refused
    assert (refused.since, refused.at) == (START - monitor.offer_age, START + MINUTE_MS)


def test_given_offers_of_two_limits_in_one_transaction_then_each_of_them_is_judged() -> None:
    """Homes of several limits may be one shard, whose decisions go out together."""
    timeline, record = Timeline(0), Record()
    swarm = swarm_of(0, faults=False)
    store = SimStore(timeline, Trace(timeline), swarm.store)
    LimitMonitor(store, record, swarm)
    limits = [LIMIT, keys.shared_limit("flights", "program", "y")]
    for number, limit in enumerate(limits):
        store.memory.transact(Transaction("admit", joins(f"0001-late-{number}", NOW, limit), f"t/{number}", None))
        store.memory.transact(Transaction("admit", joins(f"0002-early-{number}", NOW - 1, limit), f"u/{number}", None))
    timeline.run(timeline.now + MINUTE_MS)
    offers = tuple(offer_slots(limit, [f"0001-late-{number}"]) for number, limit in enumerate(limits))
    store.memory.transact(Transaction("offer", offers, "home/3.1/7", None))
    assert [any(f"0002-early-{number} waits" in each for each in record.failures) for number in range(2)] == [
        True,
        True,
    ]
