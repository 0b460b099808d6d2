"""A job that has ended is found by its id alone, in as many reads as it has had places."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.builders import HOUR, SECOND, Doc, a_request, a_spec, an_apply, an_event, at_most, every, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.shard_bench import a_bench
from tests.unit.tidegate_core.explain.why.telling import served, the_jobs, told, why_job
from tidegate_core.rows.store_operations import Page, RangeRead

CLOSED: Doc = {"type": "time_window", "opens": "03:00", "closes": "04:00"}
ENDED_RUN_DAYS, LEDGER_DAYS = 30, 90


def _cancelled(bench: ActorHarness) -> str:
    bench.request(an_apply(a_spec(trigger=every("10h"), constraints=[CLOSED])))
    bench.request(a_request("trigger"))
    bench.request(a_request("suspend"))
    return str(bench.receipts()["trigger-nightly"]["id"])


def _expired(bench: ActorHarness) -> str:
    pair = {"type": "all_of", "triggers": [on_data("a"), on_data("b")], "timeout": "1h"}
    bench.request(an_apply(a_spec(trigger=pair)))
    bench.event(an_event("p", "a"))
    bench.run(SECOND)
    (evidence,) = bench.rows("E#")
    bench.run(2 * HOUR)
    return str(evidence["id"])


def _run(bench: ActorHarness) -> str:
    bench.request(an_apply(a_spec(trigger=every("10h"), constraints=[at_most(1)])))
    bench.request(a_request("trigger"))
    bench.run(HOUR)
    return str(bench.receipts()["trigger-nightly"]["id"])


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        pytest.param(_cancelled, "cancelled/suspended", id="a job"),
        pytest.param(_expired, "expired/trigger_timeout", id="evidence"),
        pytest.param(_run, "launched", id="a run that the history has forgotten"),
    ],
)
def test_given_a_job_that_has_ended_then_it_is_found_without_a_look_through_the_ledger(
    ends: Callable[[ActorHarness], str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Review finding: `why <job>` read up to 20,000 entries of its shard's ledger."""
    bench = a_bench()
    job_id = ends(bench)
    bench.store.expire(bench.now + (ENDED_RUN_DAYS + 1) * 24 * HOUR)
    query = bench.store.query

    def counted(wanted: RangeRead) -> Page:
        assert wanted.table != "history"
        return query(wanted)

    monkeypatch.setattr(bench.store, "query", counted)
    assert the_jobs(served(bench)) == []
    assert told(why_job(bench, job_id))[0].startswith(says)


def test_given_an_end_then_what_finds_its_entry_is_kept_as_long_as_the_entry() -> None:
    bench = a_bench()
    _cancelled(bench)
    assert [row["expires_at"] for row in bench.rows("LJ#")] == [row["expires_at"] for row in bench.rows("L#")]
    bench.store.expire(bench.now + (LEDGER_DAYS + 1) * 24 * HOUR)
    assert (bench.rows("LJ#"), bench.rows("L#")) == ([], [])
