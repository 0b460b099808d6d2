"""What a waiting job says where its code alone says too little."""

from __future__ import annotations

from tests.unit.tidegate_core.decisions.shard_bench import a_bench
from tests.unit.tidegate_core.why.telling import served, the_jobs, told, why_job

from tidegate_testkit.bench import Behaviour
from tidegate_testkit.builders import HOUR, SECOND, a_spec, an_apply, every


def test_given_a_catch_up_behind_a_run_that_waits_for_its_next_attempt_then_it_says_when_that_begins() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=500, outcome="failed"))
    bench.request(an_apply(a_spec(trigger=every("1h"), overlap="allow", retry={"tries": 1, "backoff": "10m"})))
    bench.away(4 * HOUR)
    bench.run(10 * SECOND)
    first, *_, last = [job.id for job in the_jobs(served(bench))]
    assert told(why_job(bench, last))[-1] == (
        f"catch_up_pacing: what was missed runs one at a time, {first} is open, and its attempt 2 begins at 2025-11-13T06:23:21.510Z"
    )
