"""CDAP's defaults by one word (rows CD-001, CD-005, CD-080, CD-081, CD-084)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import Doc, a_spec, every, on_data
from tests.unit.tidegate_core.language.schedule_documents import problems
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.formats.parsing import parse_schedule

KINDS: list[Doc] = [
    {"type": "concurrency", "max": 3},
    {"type": "since_last_run", "at_least": "1h"},
    {"type": "delay", "after": "10m"},
    {"type": "time_window", "opens": "22:00", "closes": "06:00"},
]


def of_cdap(trigger: Doc | None = None, **more: Any) -> ScheduleSpec:
    return parse_schedule(a_spec(trigger=trigger, preset="cdap", **more))


def test_given_cdaps_preset_then_constraints_abort_and_wait_as_they_do_there() -> None:
    """CD-080: concurrency and since-last-run abort, windows and delays are waited for; CD-081, CD-084: what they count."""
    spec = of_cdap(constraints=KINDS)
    assert [each.on_unmet for each in spec.constraints] == ["abort", "abort", "wait", "wait"]
    stored = [each.model_dump() for each in spec.constraints]
    assert (stored[0]["scope"], stored[1]["of"]) == ("program", "success")


def test_given_cdaps_preset_then_a_schedule_begins_suspended_and_waits_for_a_day() -> None:
    """CD-005, CD-001, CD-006."""
    spec = of_cdap()
    assert (spec.suspended, spec.overlap, spec.catchup.mode) == (True, "allow", "last")
    assert spec.pending_timeout == 24 * 3_600_000
    assert (spec.pending_timeout_action, spec.on_update, spec.suspend_mode) == ("abort", "finish_admitted", "drop")


def test_given_words_beside_the_preset_then_they_win() -> None:
    waits = {"type": "concurrency", "max": 1, "scope": "schedule", "on_unmet": "wait"}
    spec = of_cdap(suspended=False, overlap="queue", catchup={"mode": "none"}, constraints=[waits])
    assert (spec.suspended, spec.overlap, spec.catchup.mode) == (False, "queue", "none")
    assert (spec.constraints[0].on_unmet, spec.constraints[0].model_dump()["scope"]) == ("wait", "schedule")


@pytest.mark.parametrize("catchup", [{"window": "1d"}, {"max_runs": 5}, {"after_pause": "all"}, {}])
def test_given_a_part_of_catchup_beside_the_preset_then_the_rest_is_cdaps(catchup: Doc) -> None:
    """Review finding: a window alone made it `mode: all`."""
    spec = of_cdap(catchup=catchup)
    assert spec.catchup.mode == "last"
    assert spec.catchup == parse_schedule(a_spec(catchup={**catchup, "mode": "last"})).catchup


@pytest.mark.parametrize("catchup", [None, "last", ["last"]])
def test_given_a_catchup_that_is_no_mapping_then_the_preset_leaves_it_to_the_model(catchup: Any) -> None:
    assert problems(a_spec(catchup=catchup, preset="cdap")) == problems(a_spec(catchup=catchup))


@pytest.mark.parametrize("trigger", [every("1h"), on_data()], ids=["time", "events"])
def test_given_a_preset_then_what_is_stored_says_all_of_it_and_reads_back(trigger: Doc) -> None:
    spec = of_cdap(trigger, constraints=KINDS)
    assert "preset" not in spec.canonical_json()
    assert ScheduleSpec.from_canonical(spec.canonical_json()) == spec
    assert of_cdap(trigger, constraints=KINDS).spec_hash() == spec.spec_hash()


@pytest.mark.parametrize("word", ["airflow", 1, ["cdap"]])
def test_given_another_word_then_it_is_refused(word: Any) -> None:
    (problem,) = problems(a_spec(preset=word))
    assert problem.field == "preset"


@pytest.mark.parametrize("constraints", ["none", [1], [{"type": ["delay"]}], {"type": "delay"}])
def test_given_constraints_that_cannot_be_read_then_the_model_says_so(constraints: Any) -> None:
    assert problems(a_spec(preset="cdap", constraints=constraints))
