"""An admission whose write the store leaves without an answer: what was judged by the clock holds when the program starts (SEMANTICS 7.1).

The write was sent again until it got through: hours later programs started out of their window, and as many more as a rate allows
beside those, which it counted as of when they were decided on.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import a_bench
from tidegate_core.admission.admit import ADMITTED_WITHIN_MS
from tidegate_core.rows.effects import Commit, Effect
from tidegate_core.rows.shared_limit import SharedLimit

QUICK = Behaviour(starts_after=10, runs_for=50)
FOR_EVER = 1_000_000
UNTIL_0220: Doc = {"type": "time_window", "opens": "01:00", "closes": "02:20", "zone": "UTC"}
"""A bench begins at 02:13:20."""


def a_rate(scope: str) -> Doc:
    named = {"group": "yard"} if scope == "group" else {}
    return {"type": "rate", "max": 1, "per": "1h", "scope": scope, **named}


def an_admission(effect: Effect) -> bool:
    return isinstance(effect, Commit) and any(each.key.sk.startswith("R#") for each in effect.transaction.actions)


def a_commit(effect: Effect) -> bool:
    return isinstance(effect, Commit)


def a_schedule(*constraints: Doc) -> ActorHarness:
    bench = a_bench(QUICK)
    bench.request(an_apply(a_spec(trigger=every("100h"), constraints=list(constraints), overlap="allow")))
    bench.run(SECOND)
    return bench


def trigger(bench: ActorHarness, times: int = 1) -> None:
    for number in range(times):
        bench.request(a_request("trigger", request_id=f"{bench.now}-{number}"))


@pytest.mark.parametrize("scope", ["schedule", "group"])
def test_given_a_store_that_takes_no_write_for_hours_then_a_rate_counts_what_starts_then(scope: str) -> None:
    bench = a_schedule(a_rate(scope))
    bench.lose(an_admission, times=FOR_EVER)
    trigger(bench)
    bench.run(SECOND)
    bench.lose(a_commit, times=FOR_EVER)
    bench.run(90 * MINUTE)
    bench.end_scripts()
    bench.passes_over_routine = True
    trigger(bench, 3)
    bench.run(HOUR - MINUTE)
    assert len(bench.started) == 1
    bench.run(2 * MINUTE)
    assert len(bench.started) == 2


def test_given_a_store_that_takes_no_write_until_the_window_has_closed_then_the_job_waits_for_the_next_one() -> None:
    bench = a_schedule(UNTIL_0220)
    bench.lose(an_admission, times=FOR_EVER)
    trigger(bench)
    bench.run(HOUR)
    bench.end_scripts()
    bench.passes_over_routine = True
    bench.run(21 * HOUR)
    assert bench.started == []
    bench.run(3 * HOUR)
    assert len(bench.started) == 1


@pytest.mark.parametrize(
    "lost", [ActorHarness.lose, ActorHarness.lose_answer_of, ActorHarness.delay], ids=["lost", "applied", "late"]
)
def test_given_an_admission_that_gets_no_answer_then_there_is_one_run_and_one_permit(
    lost: Callable[..., None],
) -> None:
    bench = a_schedule(at_most(2, "group", group="yard"))
    bench.behaves = lambda order: Behaviour(starts_after=10, runs_for=None)
    lost(bench, an_admission, times=FOR_EVER)
    trigger(bench)
    bench.run(ADMITTED_WITHIN_MS + MINUTE)
    bench.as_usual()
    bench.run(MINUTE)
    assert len(bench.started) == 1
    assert [SharedLimit.of(row).in_use for row in bench.rows("LIMIT")] == [1]
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.started) == 1
    assert [SharedLimit.of(row).in_use for row in bench.rows("LIMIT")] == [1]
