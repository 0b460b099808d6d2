"""Rules of what a suspension promises, its end and what is made up for behind it: each switched off in the interleaving that it is against."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tidegate_core.decisions.inputs import Begin
from tidegate_core.decisions.outage_watch import sign_of_life
from tidegate_core.decisions.run_plane import fire, missed, request, suspending
from tidegate_core.decisions.run_plane.request import ApplyRequest
from tidegate_core.decisions.run_plane.until import ApplyBehindEnd
from tidegate_core.model.instants import format_instant
from tidegate_core.records.run_plane import ScheduleState
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, every
from tidegate_testkit.simulation.mutants.mutant import Mutant, Patch

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
