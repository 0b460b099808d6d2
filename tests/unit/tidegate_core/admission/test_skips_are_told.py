"""An occurrence that does not run is in the ledger, in the log, in a counter, and in what `why` says of its schedule."""

from __future__ import annotations

from tests.support.builders import HOUR, MINUTE, SECOND, a_request, a_spec, an_apply, every, on_run_of
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import FOR_EVER, a_bench
from tests.unit.tidegate_core.explain.why.telling import served, told, why
from tidegate_telemetry.log_events import LOG_EVENTS
from tidegate_telemetry.metric_names import METRICS


def with_an_unresolved_template() -> ActorHarness:
    """A schedule whose program names an output that the upstream run has not reported."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=500))
    bench.request(an_apply(a_spec(trigger=on_run_of("upstream"), args=["${upstream.outputs.rows}"])))
    bench.request(an_apply(a_spec("upstream", every("12h"))))
    bench.request(a_request("trigger", "upstream"))
    bench.run(MINUTE)
    return bench


def test_given_a_job_that_is_skipped_for_an_unresolved_template_then_the_log_names_it_and_the_counter_counts_it() -> (
    None
):
    bench = with_an_unresolved_template()
    (notice,) = bench.notices("occurrence_did_not_run")
    assert notice.fields["schedule"] == "flights/nightly"
    assert (notice.fields["disposition"], notice.fields["reason"]) == ("skipped", "unresolved_template")
    assert "upstream.outputs.rows" in str(notice.fields["detail"])
    event = LOG_EVENTS["occurrence_did_not_run"]
    assert (event.counted, event.labels) == ("tidegate_occurrences_total", ("disposition", "reason"))
    assert METRICS["tidegate_occurrences_total"].labels == ("disposition", "reason")


def test_given_a_job_that_is_skipped_for_an_unresolved_template_then_why_names_it_and_not_that_nothing_has_come() -> (
    None
):
    """`why` said that nothing that its trigger counts had come."""
    lines = told(why(served(with_an_unresolved_template())))
    assert [line.split(":")[0] for line in lines] == ["no_events", "skipped/unresolved_template"]
    assert "; those that came last are of job " in lines[0]
    assert "upstream.outputs.rows" in lines[1]
    assert "; decided at 2025-11-13T02:13:2" in lines[1]


def test_given_an_occurrence_that_overlap_skips_then_the_log_names_it_once() -> None:
    bench = a_bench(FOR_EVER)
    bench.request(an_apply(a_spec(trigger=every("1h"), overlap="skip")))
    bench.run(2 * HOUR)
    assert [each.fields["reason"] for each in bench.notices("occurrence_did_not_run")] == ["overlap"]
    assert [line.split(":")[0] for line in told(why(served(bench)))] == [
        "running",
        "not_due [2025-11-13T05",
        "skipped/overlap",
    ]


def test_given_a_run_that_has_ended_then_its_entry_is_counted_as_launched() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=500))
    bench.request(an_apply(a_spec(trigger=every("12h"))))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    (notice,) = bench.notices("occurrence_ended")
    assert (notice.fields["disposition"], notice.fields["reason"]) == ("launched", "")
    assert bench.notices("occurrence_did_not_run") == []
