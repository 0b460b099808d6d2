"""From when on a request counts: events, instants and rows of the index before it and after it."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    MINUTE,
    SECOND,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.request_bench import answer
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Commit, Write


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def test_given_events_before_the_request_then_they_never_count_and_those_after_the_receipt_do(
    bench: ActorHarness,
) -> None:
    bench.event(an_event("before"))
    bench.request(an_apply(a_spec(trigger=on_data(count=1))))
    bench.run(SECOND)
    assert bench.started == []
    bench.event(an_event("after"))
    bench.run(SECOND)
    assert len(bench.started) == 1


def test_given_events_while_suspended_then_they_are_ignored_and_those_after_the_resume_count(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=2))))
    bench.request(a_request("suspend"))
    for day in ("a", "b", "c"):
        bench.event(an_event(day))
    bench.run(SECOND)
    bench.request(a_request("resume"))
    bench.event(an_event("d"))
    bench.run(SECOND)
    assert bench.started == []
    bench.event(an_event("e"))
    bench.run(SECOND)
    assert len(bench.started) == 1


def test_given_a_suspended_span_then_its_instants_are_no_misses(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    bench.request(a_request("suspend"))
    bench.run(10 * MINUTE)
    bench.request(a_request("resume"))
    bench.run(90 * SECOND)
    assert [entry[0] for entry in bench.ledger()] == ["launched"]


def test_given_an_at_inside_a_suspended_span_then_it_makes_no_occurrence(bench: ActorHarness) -> None:
    at = {"type": "at", "instant": format_instant(bench.now + 5 * MINUTE)}
    bench.request(an_apply(a_spec(trigger=at)))
    bench.request(a_request("suspend"))
    bench.run(10 * MINUTE)
    assert answer(bench, a_request("resume"), run=SECOND)["next"] == []
    bench.run(MINUTE)
    assert bench.ledger() == []


def test_given_an_at_behind_a_suspended_span_then_it_fires_at_its_instant(bench: ActorHarness) -> None:
    at = {"type": "at", "instant": format_instant(bench.now + 5 * MINUTE)}
    bench.request(an_apply(a_spec(trigger=at)))
    bench.request(a_request("suspend"))
    bench.run(MINUTE)
    assert answer(bench, a_request("resume"), run=SECOND)["next"] == [at["instant"]]
    bench.run(5 * MINUTE)
    assert [entry[0] for entry in bench.ledger()] == ["launched"]


def test_given_an_update_then_index_rows_of_the_older_generation_are_gone(bench: ActorHarness) -> None:
    """CD-013."""
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b")))))
    bench.request(an_apply(a_spec(trigger=on_data("c")), "it"))
    bench.run(SECOND)
    assert [row["event_key"] for row in bench.rows("data/")] == ["data/flights/c"]


@pytest.mark.parametrize("kind", ["delete", "suspend"])
def test_given_nobody_who_listens_any_more_then_the_index_rows_are_gone(bench: ActorHarness, kind: str) -> None:
    bench.request(an_apply(a_spec(trigger=on_run_of("up"))))
    bench.request(a_request(kind))
    bench.run(SECOND)
    assert bench.rows("run/") == []


def test_given_an_activation_then_index_rows_come_first_then_their_version_then_the_state(bench: ActorHarness) -> None:
    """CD-010, CD-011. DESIGN 7: whoever reads an event that was produced after the receipt must see the rows."""
    before = len(bench.asked)
    bench.request(an_apply(a_spec(trigger=on_data())))
    names = [
        effect.transaction.name if isinstance(effect, Commit) else effect.batch.name
        for effect in bench.asked[before:]
        if isinstance(effect, Commit | Write)
    ]
    wanted = [name for name in names if name in {"vector", "index", "raise_index", "control"}]
    assert wanted == ["vector", "index", "raise_index", "control"]


@pytest.mark.parametrize("kind", ["apply", "delete", "suspend"])
@pytest.mark.parametrize("effects", range(1, 14))
def test_given_a_crash_anywhere_in_a_change_then_no_index_row_or_vector_of_before_is_left(
    kind: str, effects: int
) -> None:
    """CD-010, CD-014: killed at every step."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b"), on_run_of("up")))))
    change = an_apply(a_spec(trigger=on_data("c")), "it") if kind == "apply" else a_request(kind, request_id="it")
    bench.crash_after = bench.effects_outside + effects
    bench.request(change)
    bench.run(MINUTE)
    assert bench.status_of("it") == "accepted"
    assert [row["event_key"] for row in bench.rows("") if "event_key" in row] == (
        ["data/flights/c"] if kind == "apply" else []
    )
    assert len(bench.rows("VEC")) == (1 if kind == "apply" else 0)
