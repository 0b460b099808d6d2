"""Rules of what a suspension promises, its end and what is made up for behind it: each switched off in the interleaving that it is against."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.support.builders import (
    EVENTS_ID,
    HOUR,
    MINUTE,
    SECOND,
    Doc,
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
from tidegate_core.decisions.inputs import Begin
from tidegate_core.decisions.outage_watch import sign_of_life
from tidegate_core.decisions.run_plane import fire, missed, request, standing, suspending
from tidegate_core.decisions.run_plane.request import ApplyRequest
from tidegate_core.decisions.run_plane.until import ApplyBehindEnd
from tidegate_core.model.instants import format_instant
from tidegate_core.records.run_plane import ScheduleState

PERIOD = 10 * MINUTE

# -- bugs -------------------------------------------------------------------------------------------------------------


def as_it_stands(_: Callable[..., Any]) -> Callable[..., Any]:
    def found(procedure: ApplyBehindEnd, *_: Any) -> Generator[Any]:
        yield from ()

    return found


def from_its_own_instant(_: Callable[..., Any]) -> Callable[..., Any]:
    return ApplyRequest._decide


def promising_nothing(_: Callable[[ScheduleState], Any]) -> Callable[[ScheduleState], Any]:
    return lambda state: None


def by_its_own_clock(suspended: Callable[..., Any]) -> Callable[..., Any]:
    problems = suspending._suspend_problems

    def decided(before: Any, definition: Any, asked: Any, position: Any, now: int) -> Any:
        with patch.object(
            suspending, "_suspend_problems", lambda spec, mode, until, _: problems(spec, mode, until, now)
        ):
            return suspended(before, definition, asked, position, now)

    return decided


def unless_it_was_updated(after_pause: Callable[..., ScheduleState]) -> Callable[..., ScheduleState]:
    def began(state: ScheduleState, spec: Any, before: ScheduleState, backlog: Any) -> ScheduleState:
        if before.suspended_at != before.activated_at:
            before = replace(before, stopped_by="")
        return after_pause(state, spec, before, backlog)

    return began


def of_the_last_one(last_stops: Callable[[ScheduleState], list[Any]]) -> Callable[[ScheduleState], list[Any]]:
    return lambda state: last_stops(state)[-1:]


def until_somebody_comes(_: Callable[..., int]) -> Callable[..., int]:
    return lambda state, now: max(state.suspended_at, now)


def whatever_was_promised(_: Callable[..., int]) -> Callable[..., int]:
    return lambda state, now: now


# -- the stories ------------------------------------------------------------------------------------------------------


def a_suspend_comes_before_the_end_of_another_one_is_carried_out() -> Iterator[str]:
    bench, _ = _behind_an_end(a_request("suspend"))
    for run in bench.started:
        yield f"I7: {run.run_id} started behind a suspend that was answered {bench.status_of('suspend-nightly')}"


def a_delete_comes_before_an_end_is_carried_out() -> Iterator[str]:
    bench, end = _behind_an_end(a_request("delete"))
    yield from _untold(bench, end)


def a_resume_comes_before_an_end_is_carried_out() -> Iterator[str]:
    bench, end = _behind_an_end(a_request("resume"))
    yield from _untold(bench, end)


def a_schedule_is_resumed_with_its_backlog_amid_a_wide_suspend() -> Iterator[str]:
    bench = _a_bench()
    bench.request(an_apply(a_spec(trigger=every("10m"), overlap="allow")))
    bench.run(SECOND)
    bench.request(a_request("suspend"))
    bench.run(HOUR)
    scope = {"scope": "namespace", "namespace": "flights"}
    bench.request({"id": "stop", "type": "control.suspend", **scope})
    bench.run(SECOND)
    bench.request(a_request("resume", backlog="all"))
    bench.run(SECOND)
    bench.request({"id": "go on", "type": "control.resume", **scope})
    bench.run(5 * MINUTE)
    promised = bench.receipts()["resume-nightly"]["backlog"]
    if len(bench.ledger()) < promised:
        yield f"I1: of {promised} occurrences that a resume was to make up for {len(bench.ledger())} were made"


def an_owner_is_behind_the_clock_by_which_a_suspension_ended() -> Iterator[str]:
    bench = _a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    end = bench.now + 30 * SECOND
    bench.request(a_request("suspend", until=format_instant(end)))
    bench.run(end - bench.now + 50)
    bench.now -= 400
    bench.crash()
    bench.run(10)
    bench.request(a_request("suspend", until=format_instant(end), request_id="again"))
    bench.run(2 * MINUTE)
    state = bench.state_of()
    if state is not None and state.status == "suspended":
        yield f"liveness: a suspension that was to end at {end} goes on at {bench.now}"


def a_schedule_that_began_suspended_is_updated() -> Iterator[str]:
    bench = _a_bench()
    trigger = every("10m", start=format_instant(bench.now - 2 * HOUR))
    spec = a_spec(trigger=trigger, overlap="allow", catchup={"on_create": "all"}, suspended=True)
    for request_id, args in (("first", ["x"]), ("second", ["y"])):
        program = {"type": "program", "program": {**spec["target"]["program"], "args": args}}
        bench.request(an_apply({**spec, "target": program}, request_id))
        bench.run(MINUTE)
    bench.request(a_request("resume"))
    bench.run(3 * MINUTE)
    if len(bench.ledger()) < 12:
        yield f"I1: of the two hours before its creation {len(bench.ledger())} of 12 occurrences were made"


def an_event_of_an_earlier_suspension_is_read_behind_another_one() -> Iterator[str]:
    """The second half of a pair comes ten minutes behind the first one, amid the first of two suspensions of an hour."""
    bench = _a_bench()
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b"), timeout="20m"))))
    bench.run(SECOND)
    is_cursor = a_commit("cursor")
    for number in range(2):
        bench.request(a_request("suspend", request_id=f"stop {number}", mode="hold"))
        bench.run(10 * MINUTE)
        if number == 0:
            bench.event(an_event("x", "a"))
            bench.run(10 * MINUTE)
            bench.hold_back(lambda effect: is_cursor(effect) and EVENTS_ID in str(effect), times=1_000)
            bench.event(an_event("x", "b"))
        bench.run(40 * MINUTE)
        bench.request(a_request("resume", request_id=f"go on {number}"))
        bench.run(MINUTE)
    bench.as_usual()
    bench.crash()
    bench.run(5 * MINUTE)
    if not bench.started:
        yield f"I1: of two events within ten minutes came {bench.ledger()}"


def a_pair_comes_hours_apart_behind_the_end_of_a_hold() -> Iterator[str]:
    """Nobody is there from before that end until both have come."""
    bench = _a_bench()
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b"), timeout="20m"))))
    bench.run(SECOND)
    bench.request(a_request("suspend", mode="hold", until=format_instant(bench.now + 10 * MINUTE)))
    bench.run(MINUTE)
    bench.drain()
    for dataset in "ab":
        bench.now += HOUR
        bench.event(an_event("x", dataset))
    bench.new_actor()
    bench.give(Begin())
    bench.run(5 * MINUTE)
    for run in bench.started:
        yield f"I1: {run.run_id} started for two events an hour apart, which were to come within 20 minutes"


def a_hold_of_three_instants_ends_hours_before_anybody_is_there() -> Iterator[str]:
    bench = _a_bench()
    catchup = {"mode": "all", "max_runs": 1_000}
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="allow", catchup=catchup)))
    bench.run(SECOND)
    bench.request(a_request("suspend", mode="hold", until=format_instant(bench.now + 3 * MINUTE)))
    bench.run(SECOND)
    bench.store.write([sign_of_life(bench.holding.owner, "node", bench.now, {0: bench.now}, 1)])
    bench.away(3 * HOUR)
    bench.run(MINUTE)
    merged = [nominal for what, _, nominal, _ in bench.ledger() if what != "launched"]
    if merged:
        yield f"I1: of what was missed behind a hold {len(merged)} instants have no job of their own, the first at {merged[0]}"


def _behind_an_end(asked: Doc) -> tuple[Bench, int]:
    """The end comes while nobody is there, and so does the request; returns the end as well, at which an instant is due."""
    bench = _a_bench()
    bench.request(an_apply(a_spec(trigger=every("10m"), overlap="allow")))
    bench.run(SECOND)
    end = (bench.now // PERIOD + 3) * PERIOD
    bench.request(a_request("suspend", until=format_instant(end), request_id="until"))
    bench.run(5 * MINUTE)
    bench.store.write([sign_of_life(bench.holding.owner, "node", bench.now, {0: bench.now}, 10**10)])
    bench.drain()
    bench.now = end + HOUR + MINUTE
    bench.request(asked)
    bench.new_actor()
    bench.give(Begin())
    bench.run(5 * MINUTE)
    return bench, end


def _untold(bench: Bench, end: int) -> Iterator[str]:
    told = {nominal for _, _, nominal, _ in bench.ledger()}
    missing = [nominal for nominal in range(end, end + HOUR + 1, PERIOD) if nominal not in told]
    if missing:
        yield f"I1: {len(missing)} instants since the end of a suspension have no entry, the first at {missing[0]}"


def _a_bench() -> Bench:
    bench = Bench(shards=1)
    bench.run(SECOND)
    return bench


RULES_OF_PROMISES = (
    Mutant(
        "parked behind its end",
        "what is missed behind the end of a hold is parked as its own before that is carried out, and merged by the bound of what is parked",
        breaks="I1",
        patches=(Patch(fire, "fires_through", whatever_was_promised),),
        scenario=a_hold_of_three_instants_ends_hours_before_anybody_is_there,
    ),
    Mutant(
        "hold beyond its end",
        "behind the end of a hold that comes while nobody is there clocks stand still until somebody is: what came hours apart is a pair",
        breaks="I1",
        patches=(Patch(standing, "goes_on_at", until_somebody_comes),),
        scenario=a_pair_comes_hours_apart_behind_the_end_of_a_hold,
    ),
    Mutant(
        "earlier stops forgotten",
        "what came amid an earlier one of two suspensions, and is read late, is as old as if it had come behind that",
        breaks="I1",
        patches=(Patch(standing, "last_stops", of_the_last_one),),
        scenario=an_event_of_an_earlier_suspension_is_read_behind_another_one,
    ),
    Mutant(
        "suspended still",
        "a suspend that comes before the end of another one is carried out is unchanged, and all of it starts then",
        breaks="I7",
        patches=(Patch(ApplyBehindEnd, "_resume_if_due", as_it_stands),),
        scenario=a_suspend_comes_before_the_end_of_another_one_is_carried_out,
    ),
    Mutant(
        "deleted before the end",
        "a request that comes before the end of a suspension is carried out takes what was due since with it, untold",
        breaks="I1",
        patches=(Patch(ApplyBehindEnd, "_resume_if_due", as_it_stands),),
        scenario=a_delete_comes_before_an_end_is_carried_out,
    ),
    Mutant(
        "resumed from now",
        "a resume that comes before the end of a suspension is carried out makes the suspended span longer",
        breaks="I1",
        patches=(Patch(ApplyBehindEnd, "_decide", from_its_own_instant),),
        scenario=a_resume_comes_before_an_end_is_carried_out,
    ),
    Mutant(
        "promised amid a span",
        "a backlog that is asked for while all is suspended lies in that, and nothing of it is made, or told",
        breaks="I1",
        patches=(Patch(fire, "_promised", promising_nothing),),
        scenario=a_schedule_is_resumed_with_its_backlog_amid_a_wide_suspend,
    ),
    Mutant(
        "end once more",
        "an owner whose clock is behind takes an end again that a suspension has come to, and nobody comes to it",
        breaks="liveness",
        patches=(Patch(request, "suspended", by_its_own_clock),),
        scenario=an_owner_is_behind_the_clock_by_which_a_suspension_ended,
    ),
    Mutant(
        "creation forgotten",
        "an update of a schedule that began suspended takes away what its creation is to make up for",
        breaks="I1",
        patches=(Patch(missed, "after_pause", unless_it_was_updated),),
        scenario=a_schedule_that_began_suspended_is_updated,
    ),
)
