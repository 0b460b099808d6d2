"""What holds a waiting job back, and what an admitted one waits for."""

from __future__ import annotations

from typing import Any

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import CLOSED, FOR_EVER, a_bench, a_lookup, a_submit
from tests.unit.tidegate_core.explain.why.stories import story
from tests.unit.tidegate_core.explain.why.telling import served, the_jobs, why_job
from tidegate_core.explain.why.reason import Explanation
from tidegate_core.rows.effects import Cancel, Commit, LookedUp, NotSubmitted, ProgramEnded

QUICK = Behaviour(starts_after=10, runs_for=500)


def triggered(*constraints: Doc, behaviour: Behaviour = FOR_EVER, times: int = 1, **more: Any) -> ActorHarness:
    """A schedule that is run by hand, one second apart."""
    bench = a_bench(behaviour)
    more = {"trigger": every("12h"), **more}
    bench.request(an_apply(a_spec(constraints=list(constraints), **more)))
    for number in range(times):
        bench.request(a_request("trigger", request_id=f"t-{number}"))
        bench.run(SECOND)
    return served(bench)


def last_job(bench: ActorHarness) -> Explanation:
    return why_job(bench, the_jobs(bench)[-1].id)


@story(
    "concurrency",
    ("concurrency: 1 of 1 runs of schedule flights/nightly are open: 0000-ju4inybb226gz663zrlidgu6xa"),
)
def _a_run_of_the_schedule_is_open() -> Explanation:
    return last_job(triggered(times=2))


@story(
    "window_closed",
    "window_closed [2025-11-13T03:00:00Z]: the window 03:00-04:00 UTC opens at 2025-11-13T03:00:00Z",
)
def _the_window_opens_at_three() -> Explanation:
    return last_job(triggered(CLOSED))


@story(
    "delayed",
    "delayed [2025-11-13T02:23:21Z]: the delay of 10m ends at 2025-11-13T02:23:21Z",
)
def _the_delay_goes_on() -> Explanation:
    return last_job(triggered({"type": "delay", "after": "10m"}))


@story(
    "ran_recently",
    ("ran_recently [2025-11-13T02:18:21Z]: the last start was at 2025-11-13T02:13:21Z, less than 5m ago"),
)
def _the_last_start_is_too_recent() -> Explanation:
    constraint = {"type": "since_last_run", "at_least": "5m", "of": "start"}
    return last_job(triggered(constraint, behaviour=QUICK, times=2))


@story(
    "still_running",
    "still_running: 1 runs of the schedule are still open, and the finish of the last one counts",
)
def _a_run_whose_end_counts_is_open() -> Explanation:
    constraint = {"type": "since_last_run", "at_least": "5m", "of": "finish"}
    return last_job(triggered(constraint, times=2, overlap="allow"))


@story(
    "rate_reached",
    (
        "rate_reached [2025-11-13T03:13:21Z]: 1 runs were admitted since 2025-11-13T01:13:23.001Z, 1 per "
        "1h are allowed; the next may start at 2025-11-13T03:13:21Z"
    ),
)
def _one_run_an_hour() -> Explanation:
    return last_job(triggered({"type": "rate", "max": 1, "per": "1h"}, behaviour=QUICK, times=2))


@story(
    "load_high",
    (
        "load_high: cpu of local is 0.9 at 2025-11-13T02:13:21Z; it was at 0.85 and has not fallen below 0.85 since "
        "(as its node decided at 2025-11-13T02:13:21Z)"
    ),
)
def _the_host_is_busy() -> Explanation:
    bench = a_bench()
    bench.load = 0.9
    bench.request(an_apply(a_spec(trigger=every("12h"), constraints=[{"type": "load"}])))
    bench.request(a_request("trigger"))
    bench.run(20 * SECOND)
    return last_job(served(bench))


@story(
    "load_unknown",
    "load_unknown: cpu of local is not known; the job waits for at most 5m (as its node decided at 2025-11-13T02:13:21Z)",
)
def _nobody_can_say_what_the_load_is() -> Explanation:
    bench = a_bench()
    bench.load = None
    bench.request(an_apply(a_spec(trigger=every("12h"), constraints=[{"type": "load"}])))
    bench.request(a_request("trigger"))
    bench.run(20 * SECOND)
    return last_job(served(bench))


@story(
    "flexible_window",
    ("flexible_window [2025-11-13T03:09:15.258Z]: its place in the flexible window is 2025-11-13T03:09:15.258Z"),
)
def _its_place_in_the_window_is_to_come() -> Explanation:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1h", flexible="15m"))))
    bench.run(47 * MINUTE)
    return last_job(served(bench))


@story(
    "catch_up_pacing",
    (
        "behind: 2 of the schedule's jobs are before it; the first is 0000-m6p32bnvy4semjl37w7bgjghd4, "
        "which waits itself"
    ),
    "catch_up_pacing: what was missed runs one at a time, 0000-bgrcootznnti7fxklteyhwiate is open",
)
def _what_was_missed_runs_one_at_a_time() -> Explanation:
    bench = a_bench(FOR_EVER)
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.away(4 * HOUR)
    bench.run(SECOND)
    return last_job(served(bench))


@story(
    "behind",
    (
        "behind: 1 of the schedule's jobs are before it; the first is 0000-ju4inybb226gz663zrlidgu6xa, "
        "which waits itself"
    ),
    "window_closed [2025-11-13T03:00:00Z]: the window 03:00-04:00 UTC opens at 2025-11-13T03:00:00Z",
)
def _another_job_is_first() -> Explanation:
    return last_job(triggered(CLOSED, times=2))


@story(
    "being_decided",
    "being_decided: nothing blocks it: the owner decides about it next",
)
def _nothing_is_in_its_way() -> Explanation:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("12h"))))
    bench.hold_back(lambda effect: isinstance(effect, Commit) and "admit" in effect.transaction.name)
    bench.request(a_request("trigger"))
    return last_job(served(bench))


@story(
    "launching",
    (
        "launching [2025-11-13T03:13:21Z]: attempt 1 of run 0000-ju4inybb226gz663zrlidgu6xa is admitted; "
        "a launcher has to take it by 2025-11-13T03:13:21Z; at 2025-11-13T02:13:21Z none took it: no slot"
    ),
)
def _no_launcher_answers() -> Explanation:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("12h"))))
    bench.answer_with(a_submit, NotSubmitted("no slot"), times=100)
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    return last_job(served(bench))


@story(
    "submit_pause",
    (
        "submit_pause [2025-11-13T02:13:22.926Z]: the attempt before died before the start gate; attempt "
        "2 of run 0000-ju4inybb226gz663zrlidgu6xa is submitted at 2025-11-13T02:13:22.926Z; attempt 1 ended at "
        "2025-11-13T02:13:22Z: the program ended with exit code 1 before the start gate"
    ),
)
def _the_first_attempt_died_before_the_gate() -> Explanation:
    bench = triggered(behaviour=Behaviour(starts_after=None))
    bench.vanish(the_jobs(bench)[0].id, gone=ProgramEnded(1))
    return last_job(served(bench))


@story(
    "retry_pause",
    (
        "retry_pause [2025-11-13T02:13:51.510Z]: its program ended as failed (exit code 1); attempt 2 of "
        "run 0000-ju4inybb226gz663zrlidgu6xa begins at 2025-11-13T02:13:51.510Z"
    ),
)
def _the_program_failed_and_is_tried_again() -> Explanation:
    failing = Behaviour(starts_after=10, runs_for=500, outcome="failed", gone=ProgramEnded(1))
    return last_job(triggered(behaviour=failing, retry={"tries": 2, "backoff": "30s"}))


@story(
    "before_gate",
    (
        "before_gate [2025-11-13T02:28:21Z]: attempt 1 of run 0000-ju4inybb226gz663zrlidgu6xa was taken "
        "by its launcher; its program has to come to the start gate by 2025-11-13T02:28:21Z"
    ),
)
def _the_program_starts_slowly() -> Explanation:
    return last_job(triggered(behaviour=Behaviour(starts_after=None)))


@story(
    "running",
    "running: attempt 1 of run 0000-ju4inybb226gz663zrlidgu6xa runs since 2025-11-13T02:13:21.050Z",
)
def _the_program_runs() -> Explanation:
    return last_job(triggered())


@story(
    "cancelling",
    (
        "cancelling: attempt 1 of run 0000-ju4inybb226gz663zrlidgu6xa runs since "
        "2025-11-13T02:13:21.050Z and was asked to end"
    ),
)
def _the_program_was_asked_to_end() -> Explanation:
    bench = triggered()
    run_id = the_jobs(bench)[0].id
    bench.lose(lambda effect: isinstance(effect, Cancel), times=100)
    bench.request({"id": "c-1", "type": "run.cancel", "namespace": "flights", "run_id": run_id})
    bench.run(SECOND)
    return last_job(served(bench))


@story(
    "lost",
    (
        "lost: attempt 1 of run 0000-ju4inybb226gz663zrlidgu6xa was started and its host host-1 does not answer; "
        "it is open until it is found, reports its end, or is released"
    ),
)
def _the_host_does_not_answer() -> Explanation:
    bench = triggered()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
    bench.crash()
    bench.run(11 * MINUTE)
    return last_job(served(bench))
