"""Protections of the ticks of composites (docs/protocol.md, decision 21), each taken away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.support.builders import (
    EVENTS,
    EVENTS_ID,
    HOUR,
    MINUTE,
    SECOND,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.recorded_effects import manifest_text
from tidegate_core.decisions.inputs import Begin, LogRecord
from tidegate_core.decisions.run_plane import at_least_every, expire, gathering, inbox, instances, latch_ticks
from tidegate_core.decisions.run_plane.count import CountEvents
from tidegate_core.decisions.run_plane.entries import on_the_clock
from tidegate_core.decisions.run_plane.gathering import Gathering, Groups
from tidegate_core.decisions.run_plane.instances import Instances
from tidegate_core.decisions.run_plane.memory import Memory
from tidegate_core.decisions.run_plane.settled import Settled
from tidegate_core.decisions.run_plane.timers import move_row, nominal_row
from tidegate_core.model.instants import Instant
from tidegate_core.records.run_plane import InboxRow, ScheduleState
from tidegate_core.store.keys import topic_position
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers.base import EventTrigger
from tidegate_core.triggers.ticks import Tick

# -- bugs -----------------------------------------------------------------------------------------------------------------


def moving_no_row(_: Any) -> Any:
    def moved(unit: UnitOfWork, before: ScheduleState, after: ScheduleState) -> None:
        move_row(unit, nominal_row(before), nominal_row(after))

    return moved


def leaving_the_cursor(take: Callable[..., tuple[ScheduleState, list[Tick]]]) -> Any:
    left: set[tuple[str, str, int | None]] = set()

    def taken(unit: UnitOfWork, state: ScheduleState, trigger: EventTrigger, through: int) -> Any:
        moved, ticks = take(unit, state, trigger, through)
        place = (state.name, state.incarnation, state.next_tick)
        if not ticks or place in left:
            return moved, ticks
        left.add(place)  # Once each: who never moves on is asked for ever.
        return state, ticks

    return taken


def counting_before_the_ticks(fold_all: Callable[[Gathering, Groups, int], int | None]) -> Any:
    def folded(self: Gathering, groups: Groups, through: int) -> int | None:
        return fold_all(self, groups, 0 if groups else through)

    return folded


def newest_first(open_at: Callable[[Instances, int], list[str]]) -> Any:
    def found(self: Instances, at: int) -> list[str]:
        return open_at(self, at)[::-1]

    return found


def leaving_what_waits(_: Any) -> Any:
    return lambda self, group, tick: None


def never_again(_: Any) -> Any:
    return lambda self: None


def waiting_for_nothing(_: Any) -> Any:
    return lambda self, gathering, sorting, through: False


def by_its_clock_alone(_: Any) -> Any:
    return lambda entry: (on_the_clock(entry), 0)


def row_by_row(_: Any) -> Any:
    def cut(ref: str, rows: Iterable[tuple[Key, InboxRow]], memory: Memory) -> list[CountEvents]:
        return [CountEvents(ref, (key,), memory=memory) for key, _ in sorted(rows, key=lambda row: row[0].sk)]

    return cut


# -- stories --------------------------------------------------------------------------------------------------------------


def ticks_and_data_that_nobody_counts_for_a_while() -> Iterable[str]:
    """The first data meets the first tick, and would expire alone if the ticks came after all of it."""
    bench = Bench()
    bench.run(SECOND)
    ten = {**every("10m"), "ttl": "5m"}
    bench.request(an_apply(a_spec(trigger=all_of(ten, {**on_data("a"), "ttl": "5m"}))))
    bench.run(SECOND)
    bench.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "I#", times=10_000)
    for day in ("d1", "d2", "d3"):
        bench.run((8 if day == "d1" else 10) * MINUTE)
        bench.event(an_event(day, "a"))
    bench.as_usual()
    bench.away(2 * MINUTE)
    bench.run(MINUTE)
    told = [str(order.context["manifest"]) for order in bench.started]
    if not any("d1" in manifest for manifest in told):
        yield f"I3: what came with the first tick met none: {told}"


def a_topic_partition_is_read_a_second_before_another() -> Iterable[str]:
    """The first half of a pair is there; behind an outage what came too late for it is read before the other half."""
    bench = Bench(shards=1, event_topic_partitions=2)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b"), timeout="20m"))))
    bench.run(SECOND)
    bench.event(an_event("a1", "a"))
    bench.run(SECOND)
    bench.drain()
    for minutes, name, topic_partition in ((10, "b1", 1), (50, "a2", 0)):
        bench.now += minutes * MINUTE
        bench.event(an_event(name, name[0]), topic_partition)
    bench.now += HOUR
    key = topic_position(bench.holding.cluster_id, EVENTS_ID, 1)
    is_cursor = a_commit("cursor")
    bench.hold_back(lambda effect: is_cursor(effect) and f"{key.pk!r}" in str(effect), times=1_000)
    bench.new_actor()
    bench.give(Begin())
    bench.run(SECOND)
    bench.as_usual()
    bench.release()
    bench.run(MINUTE)
    told = [str(order.context["manifest"]) for order in bench.started]
    if not any("a1" in manifest and "b1" in manifest for manifest in told):
        yield f"I3: what came within the time-out is no pair: {told or bench.ledger()}"


def a_tick_of_an_outage_lies_amid_a_hold() -> Iterable[str]:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=all_of({**every("1h"), "driver": "time"}, on_data("a")))))
    bench.run(SECOND)
    bench.request(a_request("suspend", mode="hold"))
    bench.run(MINUTE)
    bench.drain()
    for minutes, name in ((10, "x"), (10, "y"), (50, "z")):  # The tick is 45 minutes from here.
        bench.now += minutes * MINUTE
        bench.event(an_event(name, "a"))
    bench.now += 20 * MINUTE
    bench.new_actor()
    bench.give(Begin())
    bench.request(a_request("resume"))
    bench.run(MINUTE)
    told = [manifest_text(order) for order in bench.started]
    if told[:1] != ["x,y"]:
        yield f"I3: before the tick came x and y, and it met {told}"


def instants_whose_data_come_late() -> Iterable[str]:
    """The 02:20 and the 02:30 are open when data come: they are the older one's."""
    bench = Bench()
    bench.run(SECOND)
    ten = {**every("10m"), "driver": "time"}
    bench.request(an_apply(a_spec(trigger=all_of(ten, on_data("a")))))
    bench.run(20 * MINUTE)
    bench.event(an_event("d1", "a"))
    bench.run(MINUTE)
    nominals = [str(order.context["nominal"]) for order in bench.started]
    if nominals != ["2025-11-13T02:20:00Z"]:
        yield f"I3: what the oldest instance waited for was told to {nominals}"


def data_behind_more_instances_than_one_decision_opens() -> Iterable[str]:
    """Twelve ticks of an outage come before the data: a decision takes eight of them."""
    bench = Bench()
    bench.run(SECOND)
    ten = {**every("10s"), "driver": "time"}
    bench.request(an_apply(a_spec(trigger=all_of(ten, on_data("a")))))
    bench.run(5 * SECOND)
    bench.now += 2 * MINUTE
    bench.event(an_event("d1", "a"))
    bench.run(MINUTE)
    if not bench.started:
        yield "I3: what came after the outage was never counted"


def rows_of_two_topic_partitions_that_span_the_same_time() -> Iterable[str]:
    """Each minute both halves come, one from each topic partition, and lie in two inbox rows when somebody is back."""
    bench = Bench(event_topic_partitions=2)
    bench.run(SECOND)
    halves = all_of({**on_data("a"), "ttl": "30s"}, {**on_data("b"), "ttl": "30s"})
    bench.request(an_apply(a_spec(trigger=halves, overlap="allow")))
    bench.run(SECOND)
    for topic_partition, dataset in enumerate("ab"):
        log = bench.log(EVENTS, topic_partition)
        for minute in range(12):
            body = json.dumps(an_event(f"{dataset}{minute}", dataset)).encode()
            log.append(LogRecord(minute, bench.now + minute * MINUTE + topic_partition, None, body))
    bench.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "I#", times=10_000)
    bench.away(15 * MINUTE)
    bench.as_usual()
    bench.run(MINUTE)
    manifests: list[Any] = [order.context["manifest"] for order in bench.started]
    told = {str(row["partition"]) for manifest in manifests for row in manifest}
    if len(told) < 24:
        yield f"I3: of 24 data partitions that came two by two {len(told)} met"


def taking_it_as_it_comes(_: Any) -> Any:
    return lambda unit, row, through, memory: False


def twice_in_vain(remember: Any) -> Any:
    """What was found out is forgotten twice before it is asked for."""
    times = iter(range(2))

    def remembered(settled: Settled, refs: Iterable[str], instant: Instant, unread: Sequence[str]) -> None:
        if next(times, None) is None:
            remember(settled, refs, instant, unread)

    return remembered


TICKS = (
    Mutant(
        "read apart",
        "which topic partition is read first behind an outage decides whether what came in time is a pair",
        breaks="I3",
        patches=(Patch(CountEvents, "_waits", waiting_for_nothing),),
        scenario=a_topic_partition_is_read_a_second_before_another,
    ),
    Mutant(
        "passed in ignorance",
        "a deadline passes when it is not known any longer that all is counted by then, and what was in time waits",
        breaks="I3",
        patches=tuple(
            Patch(each, "take_again_if_forgotten", taking_it_as_it_comes)
            for each in (expire, latch_ticks, at_least_every)
        ),
        beside=(Patch(Settled, "remember", twice_in_vain),),
        scenario=a_topic_partition_is_read_a_second_before_another,
    ),
    Mutant(
        "order amid a hold",
        "amid a hold, in which clocks stand still, a tick of an outage is before all that came before it",
        breaks="I3",
        patches=(Patch(gathering, "moment_of", by_its_clock_alone), Patch(instances, "moment_of", by_its_clock_alone)),
        scenario=a_tick_of_an_outage_lies_amid_a_hold,
    ),
    Mutant(
        "row of the next tick",
        "a tick latches, and the next one has no timer row: the schedule ticks no more",
        breaks="I1",
        patches=(Patch(gathering, "move_rows", moving_no_row),),
        within=2,
        trap="ticks",
    ),
    Mutant(
        "cursor of ticks",
        "a tick latches and the cursor stays: the next look takes it again",
        breaks="I1",
        patches=(Patch(gathering, "take_ticks", leaving_the_cursor),),
        within=2,
        trap="ticks",
    ),
    Mutant(
        "ticks before events",
        "what is counted late is not preceded by the ticks before it, and expires alone",
        breaks="I3",
        patches=(Patch(Gathering, "fold_all", counting_before_the_ticks),),
        scenario=ticks_and_data_that_nobody_counts_for_a_while,
    ),
    Mutant(
        "oldest instance first",
        "what comes goes to the newest open instance: the older ones never have theirs",
        breaks="I3",
        patches=(Patch(Instances, "_open_at", newest_first),),
        scenario=instants_whose_data_come_late,
    ),
    Mutant(
        "instance of a tick",
        "a tick opens its instance beside what waits for it: data that came before their instant are nobody's",
        breaks="I3",
        patches=(Patch(Instances, "_taken_over", leaving_what_waits),),
        within=12,
        trap="ticks",
    ),
    Mutant(
        "parts of a decision",
        "what one decision had no room for waits in its inbox row until the shard changes hands",
        breaks="I3",
        patches=(Patch(UnitOfWork, "go_on", never_again),),
        beside=(Patch(CountEvents, "_waits", waiting_for_nothing),),
        scenario=data_behind_more_instances_than_one_decision_opens,
    ),
    Mutant(
        "backlog by append times",
        "an inbox is counted row by row: what came together, in rows of two topic partitions, does not meet",
        breaks="I3",
        patches=(Patch(inbox, "in_decisions", row_by_row),),
        scenario=rows_of_two_topic_partitions_that_span_the_same_time,
    ),
)
