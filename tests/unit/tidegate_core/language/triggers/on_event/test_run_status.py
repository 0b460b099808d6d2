"""The trigger on another schedule's runs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.builders import a_spec
from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.events.trigger_facts import RunFact
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.triggers import RunStatusTrigger
from tidegate_core.language.values.problems import InvalidInput


def after(**fields: Any) -> RunStatusTrigger:
    return RunStatusTrigger.model_validate({"type": "run_status", "schedule": "join-day", **fields})


def ended(**fields: Any) -> RunFact:
    return RunFact.model_validate({**RunFact.EXAMPLE, **fields})


def test_given_success_then_it_counts_under_the_run_id_whatever_the_attempt() -> None:
    assert after().accepts(ended(), "flights") == ended().run_id
    assert after().accepts(ended(attempt=2), "flights") == ended().run_id


@pytest.mark.parametrize("state", ["failed", "killed", "lost", "timed_out", "closed", "running"])
def test_given_other_state_then_it_does_not_count(state: str) -> None:
    assert after().accepts(ended(state=state), "flights") is None


def test_given_several_states_then_each_counts() -> None:
    either = after(states=["failed", "killed"])

    assert either.accepts(ended(state="failed"), "flights")
    assert either.accepts(ended(state="killed"), "flights")
    assert either.accepts(ended(), "flights") is None


@pytest.mark.parametrize(
    ("schedule", "own", "key"),
    [("join-day", "flights", "run/flights/join-day"), ("other/join-day", "flights", "run/other/join-day")],
)
def test_given_name_with_or_without_namespace_then_key_is_resolved(schedule: str, own: str, key: str) -> None:
    trigger = after(schedule=schedule)

    assert trigger.event_key(own) == key
    assert trigger.accepts(ended(namespace=key.split("/")[1]), own) == ended().run_id


def test_given_other_schedule_or_fact_then_it_does_not_count() -> None:
    assert after().accepts(ended(schedule="other"), "flights") is None
    assert after().accepts(DataPartitionEvent.model_validate(DataPartitionEvent.EXAMPLE), "flights") is None


def test_given_upstream_job_then_its_key_is_taken_over() -> None:
    assert after().correlation_of(ended(correlation="2013-01-02")) == "2013-01-02"
    assert after().correlation_of(ended(correlation=None)) == ""


def test_given_no_run_then_missing_names_what_is_waited_for() -> None:
    assert after(states=["succeeded", "failed"]).missing([0]) == "a run of join-day that succeeded or failed"
    assert after().missing([1]) is None


@pytest.mark.parametrize("states", [[], ["succeeded", "succeeded"], ["running"], ["closed"], ["done"]])
def test_given_states_that_are_no_ends_then_they_are_refused(states: list[str]) -> None:
    with pytest.raises(ValidationError):
        after(states=states)


def test_given_every_state_that_a_program_can_come_to_then_each_counts() -> None:
    """Row CD-065 allows only ends; the design behind it listed starts as well (SEMANTICS 6.8)."""
    states = ["started", "succeeded", "failed", "killed", "timed_out", "lost"]
    for state in states:
        of_fact = "running" if state == "started" else state
        assert after(states=[state]).accepts(ended(state=of_fact), "flights") == ended().run_id
    assert after(states=states[1:]).states == tuple(states[1:])
    assert not after(states=states[1:]).hears_starts


@pytest.mark.parametrize("state", ["running", "closed", "submitted", None])
def test_given_a_state_that_nobody_is_told_of_then_it_is_refused_by_name(state: str | None) -> None:
    """Row CD-065: refused, also where it is null."""
    trigger = {"type": "run_status", "schedule": "up", "states": ["failed", state]}
    with pytest.raises(InvalidInput) as refused:
        parse_schedule(a_spec(trigger=trigger))
    assert refused.value.problems[0].field == "trigger.states[1]"


def test_given_started_beside_an_end_then_it_is_refused_because_one_run_would_count_twice() -> None:
    with pytest.raises(ValidationError, match="names started together with an end"):
        after(states=["started", "succeeded"])
    assert after(states=["started"]).hears_starts
