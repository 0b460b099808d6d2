"""Bugs in what follows a program that failed (SEMANTICS 8), or an attempt that nobody can ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import FOR_EVER, NEVER_STARTS, Stage
from tests.simulation.users.schedule_definitions import FAILURES
from tests.support.builders import HOUR, MINUTE, RUNS, RUNS_DLQ, SECOND, a_request, a_spec, an_apply, every, on_run_of
from tests.support.harness.actor_harness import Behaviour, Bench
from tidegate_core.decisions.run_plane import attempts, by_id, retry_budget, retrying, run_ends, runs
from tidegate_core.decisions.run_plane.attempts import PROBE_GAP_MS
from tidegate_core.decisions.run_plane.retry_budget import ALWAYS, BUDGET_WINDOW_MS
from tidegate_core.decisions.run_plane.run_ends import end_before_gate
from tidegate_core.decisions.run_plane.runs import LookAtRun
from tidegate_core.effects import Effect, LookedUp, Lookup, NotSubmitted, Submit
from tidegate_core.records.run_plane import Run
from tidegate_core.transactions.unit_of_work import UnitOfWork

EVERY_TIME = 10**9
QUICK = Behaviour(starts_after=10, runs_for=50)
FAILS = Behaviour(starts_after=10, runs_for=100, outcome="failed")


def one_try_more(is_used_up: Callable[..., bool]) -> Any:
    return lambda retry, run, error: run.retries > retry.tries


def in_silence(outbox_row: Callable[..., Any]) -> Any:
    return lambda run, given_up=None: outbox_row(run)


def failing_with_its_host(submit_again: Callable[..., None]) -> Callable[..., None]:
    def failed(unit: UnitOfWork, run: Run, message: str, error_class: str, now: int) -> None:
        if message == "host_lost":
            end_before_gate(unit, run, "failed", message, "lost", now)
        else:
            submit_again(unit, run, message, error_class, now)

    return failed


def since_the_first_attempt(read: Callable[[LookAtRun, UnitOfWork], Run | None]) -> Any:
    def of_before(decision: LookAtRun, unit: UnitOfWork) -> Run | None:
        run = read(decision, unit)
        return None if run is None else replace(run, passed_at=None)

    return of_before


def all_at_once(_: Callable[[Run, int], bool]) -> Callable[[Run, int], bool]:
    return lambda run, now: False


def behind_the_last_ones(_: Callable[..., int | None]) -> Callable[..., int | None]:
    def full(retries: Sequence[int], most: int, at: int) -> int | None:
        return retries[-most] if len(retries) >= most and retries[-most] + BUDGET_WINDOW_MS > at else None

    return full


def whenever_there_is_room(_: Callable[[Run, int], bool]) -> Callable[[Run, int], bool]:
    return lambda run, at: False


# -- the stories ------------------------------------------------------------------------------------------------------


def a_run_fails_for_the_last_time() -> Iterator[str]:
    bench = Stage().first
    bench.behaves = lambda _: Behaviour(outcome="failed")
    bench.request(an_apply(a_spec(trigger=every("1h"), retry={"tries": 1})))
    bench.run(HOUR + MINUTE)
    failed = {str(each.document["run_id"]) for each in bench.on(RUNS) if each.document["state"] == "failed"}
    told = {str(each.document["run_id"]) for each in bench.on(RUNS_DLQ)}
    for run_id in sorted(failed - told):
        yield f"dead letters: {run_id} has failed for the last time, and nobody is told"


def a_host_goes_down_before_its_program_is_at_the_gate() -> Iterator[str]:
    bench = _a_bench()
    bench.behaves = lambda order: NEVER_STARTS if order.attempt == 1 else QUICK
    bench.request(an_apply(a_spec(trigger=every("100h"))))
    _trigger(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(lambda effect: isinstance(effect, Lookup), LookedUp("unknown"), times=EVERY_TIME)
    bench.run(PROBE_GAP_MS + 2 * MINUTE)
    for what, _, nominal, state in bench.ledger():
        if not bench.started:
            yield f"I1: what was due at {nominal} ended as {what}/{state}, and no program of it had begun"


def a_further_attempt_is_long_on_its_way_to_the_gate() -> Iterator[str]:
    def second(effect: Effect) -> bool:
        return isinstance(effect, Submit) and effect.order.attempt == 2

    bench = _a_bench()
    bench.behaves = lambda order: FAILS if order.attempt == 1 else FOR_EVER
    bench.request(an_apply(a_spec("rescue", on_run_of("nightly", "lost"))))
    bench.answer_with(second, NotSubmitted("the platform is away"), times=EVERY_TIME)
    bench.request(an_apply(a_spec(trigger=every("100h"), retry={"tries": 1, "backoff": "10s"})))
    _trigger(bench)
    bench.run(12 * MINUTE)
    bench.end_scripts()
    bench.hold_back(second, answer_only=True)
    bench.run(8 * MINUTE)
    if any(order.file == "/jobs/rescue.py" for order in bench.started):
        yield "I3: what waits for a lost run has heard of one that passed the gate a moment ago"


def everybody_falls_until_a_try_would_come_too_late() -> Iterator[str]:
    """It was planned for half a day behind the admission."""
    bench = _a_bench(FAILS)
    bench.request(an_apply(a_spec(trigger=every("100h"), retry={"tries": 1, "backoff": "12h"})))
    _trigger(bench)
    bench.run(MINUTE)
    bench.away(30 * HOUR)
    bench.run(MINUTE)
    if not bench.on(RUNS_DLQ) or len(bench.submitted_at) > 1:
        yield "dead letters: a run that was to be given up a day behind its admission was tried again 30 hours behind it"


def everybody_falls_with_retries_that_were_delayed() -> Iterator[str]:
    bench = _a_bench(FAILS)
    for number in range(3 * ALWAYS):
        bench.request(an_apply(a_spec(f"s-{number}", every("100h"), retry={"tries": 1, "backoff": "10s"})))
        _trigger(bench, f"s-{number}")
    bench.run(MINUTE)
    bench.away(3 * HOUR)
    bench.run(30 * MINUTE)
    begun = sorted(at for attempt, at in bench.submitted_at if attempt == 2)
    for first, last in zip(begun, begun[ALWAYS:], strict=False):
        if last - first < BUDGET_WINDOW_MS:
            yield f"I4: {ALWAYS + 1} further attempts began within {last - first} ms, and {ALWAYS} may in ten minutes"


def retries_are_planned_for_hours_from_now() -> Iterator[str]:
    bench = _a_bench(FAILS)
    for number in range(ALWAYS):
        bench.request(an_apply(a_spec(f"later-{number}", every("100h"), retry={"tries": 1, "backoff": "14h"})))
        _trigger(bench, f"later-{number}")
    bench.run(MINUTE)
    bench.request(an_apply(a_spec(trigger=every("100h"), retry={"tries": 1, "backoff": "10s"})))
    _trigger(bench)
    bench.run(HOUR)
    if all(attempt == 1 for attempt, _ in bench.submitted_at):
        yield "liveness: an attempt that is wanted after ten seconds waits for an hour behind those that are wanted later"


def _a_bench(behaviour: Behaviour | None = None) -> Bench:
    bench = Bench(shards=1, behaviour=behaviour)
    bench.run(SECOND)
    return bench


def _trigger(bench: Bench, name: str = "nightly") -> None:
    bench.request(a_request("trigger", name, request_id=f"now-{name}-{bench.now}"))


RETRIES = (
    Mutant(
        "success again",
        "a program that has succeeded is tried again as if it had failed",
        breaks="I2",
        patches=(Patch(retrying, "FAILED", lambda _: frozenset({"failed", "succeeded"})),),
        within=12,
    ),
    Mutant(
        "one try more",
        "one attempt more follows than the schedule wants",
        breaks="I2",
        patches=(Patch(retrying, "_is_used_up", one_try_more),),
        within=47,
        directed=(8,),
    ),
    Mutant(
        "given up in silence",
        "a run whose tries are used up fails, and nobody is told that no further one comes",
        breaks="dead letters",
        patches=(Patch(run_ends, "outbox_row", in_silence),),
        scenario=a_run_fails_for_the_last_time,
    ),
    Mutant(
        "retry after the stop",
        "a program that fails after its schedule was stopped is tried again",
        breaks="I7",
        patches=(Patch(retrying, "_may_launch", lambda _: lambda unit, state, run: True),),
        within=75,
        directed=(9,),
    ),
    Mutant(
        "retry after too late",
        "a cancel answers that the run is over, and leaves it to others to make the next attempt",
        breaks="I7",
        patches=(Patch(by_id, "conclude", lambda _: lambda unit, run, memory, now: None),),
        within=20,
        trap=FAILURES,
        directed=(5,),
    ),
    Mutant(
        "failed with its host",
        "a run whose host goes down before its program has passed the gate fails, and nothing of it has ever begun",
        breaks="I1",
        patches=(Patch(runs, "submit_again", failing_with_its_host),),
        scenario=a_host_goes_down_before_its_program_is_at_the_gate,
    ),
    Mutant(
        "lost since its first attempt",
        "a further attempt that was long on its way is lost as soon as it has passed the gate, and who waits for that is told",
        breaks="I3",
        patches=(Patch(LookAtRun, "read", since_the_first_attempt),),
        scenario=a_further_attempt_is_long_on_its_way_to_the_gate,
    ),
    Mutant(
        "retries behind an outage",
        "all further attempts that were delayed into an outage begin at once behind it",
        breaks="I4",
        patches=(Patch(attempts, "is_overdue", all_at_once),),
        scenario=everybody_falls_with_retries_that_were_delayed,
    ),
    Mutant(
        "retry of the day before",
        "behind an outage an attempt begins whenever the budget has room, be it more than 24 h after its run's admission",
        breaks="dead letters",
        patches=(Patch(runs, "is_too_late", whenever_there_is_room),),
        scenario=everybody_falls_until_a_try_would_come_too_late,
    ),
    Mutant(
        "retries behind later ones",
        "further attempts that are planned for hours from now hold up one that is wanted at once",
        breaks="liveness",
        patches=(Patch(retry_budget, "_last_of_full_windows", behind_the_last_ones),),
        scenario=retries_are_planned_for_hours_from_now,
    ),
)
