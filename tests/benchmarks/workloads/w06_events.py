"""W6: events that nobody waits for, that one schedule each waits for, that thousands wait for, and many for one schedule."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.rig.bulk_producer import EVENTS, NAMESPACE, apply, event
from tests.benchmarks.rig.call_recordings import recorded_events
from tests.benchmarks.rig.call_replays import replay_s
from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.one_shot_messages import MICROSECONDS, units_each
from tests.benchmarks.rig.resource_meter import Spent, spent
from tests.benchmarks.rig.store_bounds import transacted_items_per_s
from tests.benchmarks.rig.waiting_jobs import PROGRAM, delete_schedules
from tests.benchmarks.rig.workload import Case, Figures, Parameters, Workload
from tests.support.cluster.cluster import TOPIC_PARTITIONS
from tidegate_core.language.values.derived_ids import schedule_shard

NEVER = 10_000
"""The most that a trigger can wait for, and more events than any schedule here gets: evidence grows, and nothing fires."""
WRITES_OF_TRANSACTIONS = 2
"""Units for an item of up to 1 KB."""


def measure(stack: Stack, parameters: Parameters) -> Figures:
    """Makes the schedules, sends the events, and waits until each of them is counted.

    Events are named in turn; of the schedules, each waits for the name of its number, or all for the only one.
    """
    with stack.with_nodes(parameters["nodes"]):
        return _measure(stack, parameters)


def _measure(stack: Stack, parameters: Parameters) -> Figures:
    for _ in range(parameters["warm_rounds"]):  # A store that has just begun is compiled while it is measured.
        _counted(stack, parameters)
    used = _counted(stack, parameters)
    schedules, events, names = parameters["schedules"], parameters["events"], parameters["names"]
    matches = events * schedules // names
    return {
        "events": events,
        "matches": matches,
        "events_per_s": events / used.wall_s,
        "matches_per_s": matches / used.wall_s,
        "cpu_s": used.cpu_s,
        "cpu_us_each": used.cpu_s * MICROSECONDS / max(events, matches),
        "rss_mib": used.rss_mib,
        **units_each(used.write_units, used.read_units, max(events, matches)),
        **_beside_the_store(stack, used.write_units, used.wall_s, parameters),
    }


def _counted(stack: Stack, parameters: Parameters) -> Spent:
    """What one round takes, from the first event to the last one that is counted; its schedules are new ones."""
    schedules, events, names = parameters["schedules"], parameters["events"], parameters["names"]
    prefix = stack.new_name("event")
    applied = [f"{prefix}-{number}" for number in range(schedules)]
    stack.apply([apply(name, _spec(f"{prefix}.{number % names}"), stack.shards) for number, name in enumerate(applied)])
    records = [event(f"{prefix}-{number}", f"{prefix}.{number % names}", number) for number in range(events)]
    meter = stack.nodes_meter()
    begun = meter.read()
    stack.producer.send(EVENTS, records)
    if schedules:
        # A look at all shards would last longer than a thousand events for one of them.
        stack.until_applied(EVENTS, {schedule_shard(NAMESPACE, name, shard_count=stack.shards) for name in applied})
    else:
        stack.until_read(EVENTS)
    used = spent(begun, meter.read())
    if parameters["clean"]:
        delete_schedules(stack, applied)
    return used


def _beside_the_store(stack: Stack, units: float | None, wall_s: float, parameters: Parameters) -> Figures:
    """Items written in transactions, as the units say, beside those that the store alone takes in transactions of 100."""
    if not parameters["schedules"]:
        return {}
    bound = transacted_items_per_s(stack.cluster.store, parameters["bound_transactions"], stack.shards)
    items = None if units is None else units / WRITES_OF_TRANSACTIONS
    sizes = (parameters["schedules"], parameters["events"], parameters["names"])
    recording = recorded_events(*sizes, _spec, stack.shards, TOPIC_PARTITIONS)
    bound_s = replay_s(stack.cluster.store, recording, stack.replay_logs())
    return {
        "bound_events_per_s": parameters["events"] / bound_s,
        "share_of_bound": bound_s / wall_s,
        "store_transacted_items_per_s": bound,
        "share_of_store": None if items is None else items / wall_s / bound,
    }


def _spec(name: str) -> dict[str, Any]:
    return {
        "target": {"type": "program", "program": PROGRAM},
        "trigger": {"type": "event", "name": f"custom.{name}", "count": NEVER},
    }


def _case(
    label: str,
    schedules: int,
    events: int,
    names: int,
    *,
    bound: int = 100,
    clean: bool = False,
    warm: int = 0,
    nodes: int = 1,
) -> Case:
    sizes = {"schedules": schedules, "events": events, "names": names, "nodes": nodes}
    return Case(label, {**sizes, "bound_transactions": bound, "clean": clean, "warm_rounds": warm})


WORKLOAD = Workload(
    name="W6",
    title="Events: 200,000 unmatched, 5,000 matched 1:1, one to 5,000 schedules, 1,000 to one schedule",
    measure=measure,
    full=[
        _case("unmatched", schedules=0, events=200_000, names=1, warm=1),
        _case("unmatched, two nodes", schedules=0, events=200_000, names=1, warm=1, nodes=2),
        _case("1:1", schedules=5_000, events=5_000, names=5_000),
        _case("one to many", schedules=5_000, events=1, names=1),
        _case("many to one", schedules=1, events=1_000, names=1, warm=5),
    ],
    smoke=[
        _case("unmatched", schedules=0, events=100, names=1),
        _case("1:1", schedules=4, events=4, names=4, bound=2, clean=True),
        _case("one to many", schedules=4, events=1, names=1, bound=2, clean=True),
        _case("many to one", schedules=1, events=10, names=1, bound=2, clean=True, warm=1),
    ],
)
