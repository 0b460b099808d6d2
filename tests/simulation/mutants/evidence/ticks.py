"""Bugs in the ticks of composites, and in the order in which a backlog is counted (docs/internals/protocol.md, decision 21)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, returning
from tidegate_core.evidence import accumulator, at_least_every, expiry, tick_instances
from tidegate_core.evidence.accumulator import EvidenceAccumulator, Groups
from tidegate_core.evidence.match import MatchEvents
from tidegate_core.evidence.tick_instances import Instances
from tidegate_core.language.triggers.composite.ticks import Tick
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.instants import Instant
from tidegate_core.ownership import inbox
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.events.deferred_inbox import LowWatermarks
from tidegate_core.shard.events.evidence_log import on_the_clock
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.shard.timer_rows import move_row, nominal_row
from tidegate_core.writes.unit_of_work import UnitOfWork

STORIES = "simulation/stories/evidence/test_ticks.py"
TESTS_OF_EVENTS_READ_APART = "unit/tidegate_core/evidence/test_events_read_apart.py"
TESTS_OF_TICKS_OF_COMPOSITES = "unit/tidegate_core/evidence/test_ticks_of_composites.py"


def moving_no_row(unit: UnitOfWork, before: ScheduleState, after: ScheduleState) -> None:
    move_row(unit, nominal_row(before), nominal_row(after))


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


def counting_before_the_ticks(
    fold_all: Callable[[EvidenceAccumulator, Groups, int], int | None],
    self: EvidenceAccumulator,
    groups: Groups,
    through: int,
) -> int | None:
    return fold_all(self, groups, 0 if groups else through)


def newest_first(open_at: Callable[[Instances, int], list[str]], self: Instances, at: int) -> list[str]:
    return open_at(self, at)[::-1]


def by_its_clock_alone(entry: Any) -> tuple[int, int]:
    return on_the_clock(entry), 0


def row_by_row(ref: str, rows: Iterable[tuple[Key, InboxRow]], memory: ShardCache) -> list[MatchEvents]:
    return [MatchEvents(ref, (key,), memory=memory) for key, _ in sorted(rows, key=lambda row: row[0].sk)]


def twice_in_vain(remember: Any) -> Any:
    """What was found out is forgotten twice before it is asked for."""
    times = iter(range(2))

    def remembered(settled: LowWatermarks, refs: Iterable[str], instant: Instant, unread: Sequence[str]) -> None:
        if next(times, None) is None:
            remember(settled, refs, instant, unread)

    return remembered


TICKS = (
    Mutant(
        "read apart",
        "the topic partition that is read first after an outage decides whether events that came in time are a pair",
        breaks="I3",
        patches=(Patch(MatchEvents, "_waits", returning(False)),),
        killed_by=f"{TESTS_OF_EVENTS_READ_APART}::test_given_what_came_in_time_and_is_read_behind_what_came_too_late_then_the_pair_is_one[1-partial]",
    ),
    Mutant(
        "passed in ignorance",
        "a deadline passes though the node has forgotten whether everything before it is counted",
        breaks="I3",
        patches=tuple(Patch(each, "take_again_if_forgotten", returning(False)) for each in (expiry, at_least_every)),
        beside=(Patch(LowWatermarks, "remember", twice_in_vain),),
        killed_by=f"{TESTS_OF_EVENTS_READ_APART}::test_given_what_came_in_time_and_is_read_behind_what_came_too_late_then_the_pair_is_one[1-partial]",
    ),
    Mutant(
        "order amid a hold",
        "during a hold, which stops clocks, a tick of an outage comes before all earlier events",
        breaks="I3",
        patches=(
            Patch(accumulator, "moment_of", instead(by_its_clock_alone)),
            Patch(tick_instances, "moment_of", instead(by_its_clock_alone)),
        ),
        killed_by=f"{STORIES}::test_given_a_tick_of_an_outage_during_a_hold_then_it_meets_what_came_before_it",
    ),
    Mutant(
        "row of the next tick",
        "a tick latches, and the next one has no timer row: the schedule ticks no more",
        breaks="I1",
        patches=(Patch(accumulator, "move_rows", instead(moving_no_row)),),
        killed_by=Seeds(within=2, trap="ticks"),
    ),
    Mutant(
        "cursor of ticks",
        "a tick latches and the cursor stays, so the same tick is taken again",
        breaks="I1",
        patches=(Patch(accumulator, "take_ticks", leaving_the_cursor),),
        killed_by=Seeds(within=2, trap="ticks"),
    ),
    Mutant(
        "ticks before events",
        "an event that is counted late does not meet the ticks before it, and expires alone",
        breaks="I3",
        patches=(Patch(EvidenceAccumulator, "fold_all", around(counting_before_the_ticks)),),
        killed_by=f"{TESTS_OF_TICKS_OF_COMPOSITES}::test_given_instants_that_nobody_served_then_what_came_meets_the_tick_that_it_would_have_met",
    ),
    Mutant(
        "oldest instance first",
        "data go to the newest open instance, and the older ones never get theirs",
        breaks="I3",
        patches=(Patch(Instances, "_open_at", around(newest_first)),),
        killed_by="unit/tidegate_core/evidence/test_tick_instances.py::test_given_one_event_then_it_is_the_oldest_instances_and_the_others_go_on_waiting",
    ),
    Mutant(
        "instance of a tick",
        "a tick opens its instance without the data that wait for it, and these belong to no instance",
        breaks="I3",
        patches=(Patch(Instances, "_taken_over", returning(None)),),
        killed_by=Seeds(within=12, trap="ticks"),
    ),
    Mutant(
        "parts of a decision",
        "rows for which one decision had no room wait in the inbox until the shard changes hands",
        breaks="I3",
        patches=(Patch(UnitOfWork, "go_on", returning(None)),),
        beside=(Patch(MatchEvents, "_waits", returning(False)),),
        killed_by=f"{TESTS_OF_TICKS_OF_COMPOSITES}::test_given_ticks_of_more_windows_than_one_decision_takes_then_data_meets_that_of_its_own",
    ),
    Mutant(
        "backlog by append times",
        "an inbox is counted row by row: events that came together, in rows of two topic partitions, do not meet",
        breaks="I3",
        patches=(Patch(inbox, "batch_decisions", instead(row_by_row)),),
        killed_by="unit/tidegate_core/admission/test_backlogs_in_order.py::test_given_two_topic_partitions_that_span_the_same_time_then_what_came_together_meets",
    ),
)
