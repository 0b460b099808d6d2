"""Evidence that is open for years is kept, and what ended is cleaned up by whoever is here then."""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, a_request, a_spec, all_of, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.shard_bench import a_bench
from tidegate_core.rows.effects import Write


def manifest(bench: ActorHarness) -> list[str]:
    rows = bench.started[-1].context["manifest"]
    assert isinstance(rows, list)
    return [str(row["partition"]) for row in rows if isinstance(row, dict)]


def test_given_evidence_that_is_open_for_years_then_nothing_of_it_is_lost() -> None:
    """A lone leaf has no time-out, so that rare feeds add up: its entries must outlive any TTL."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data(count=3))))
    for day in ("p1", "p2", "p1"):
        bench.event(an_event(day, event_id=f"{day} {bench.now}"))
        bench.run(SECOND)
        bench.months(13)
    assert [row["counts"] for row in bench.rows("E#")] == [[2]]
    bench.event(an_event("p3"))
    bench.run(5 * SECOND)
    assert manifest(bench) == ["p1", "p2", "p3"]


@pytest.mark.parametrize("ends", ["run", "time-out", "suspend", "no template"])
def test_given_evidence_that_ended_then_its_chunks_go_a_month_later_whoever_is_here_then(ends: str) -> None:
    bench = a_bench()
    trigger = all_of(on_data("a"), on_data("b"), timeout="1h") if ends == "time-out" else on_data("a", 2)
    bench.request(an_apply(a_spec(trigger=trigger)))
    bench.event(an_event("d1", "a"))
    bench.event(an_event("d2", "a" if ends in {"run", "no template"} else "c"))
    if ends == "suspend":
        bench.request(a_request("suspend"))
    bench.passes_over_routine = True
    bench.run(2 * HOUR)
    assert bench.rows("EC#") != []
    bench.months(1)
    bench.run(MINUTE)
    bench.months(1)
    bench.run(MINUTE)
    assert bench.rows("EC#") == []
    assert [row for row in bench.rows("T#") if row["kind"] == "C"] == []


def test_given_a_crash_in_the_middle_of_a_clean_up_then_the_successor_does_the_rest() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data("a"))))
    bench.event(an_event("d1", "a"))
    bench.run(5 * SECOND)
    bench.months(2)
    bench.lose(lambda effect: isinstance(effect, Write) and effect.batch.name == "clean_up", times=3)
    bench.crash()
    bench.run(MINUTE)
    assert bench.rows("EC#") == []
    assert bench.rows("T#") == []
