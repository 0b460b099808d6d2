"""What the end of a run was, as a retry sees it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.builders import NOW, a_definition, a_run, a_schedule, a_spec, every
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import ITEM_BYTES_MAX
from tidegate_core.runs.retries import NEXT_REPORT_BYTES, error_of
from tidegate_core.runs.run_lifecycle import CheckRun
from tidegate_core.writes.staged_writes import bytes_of


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        pytest.param("user_code", "user_code", id="a class"),
        pytest.param(None, "unknown", id="nobody said"),
        pytest.param("of_a_newer_version", "unknown", id="a class of a newer version, during a rolling update"),
    ],
)
def test_given_what_was_told_of_an_end_then_it_is_a_class_that_a_retry_knows(told: str | None, seen: str) -> None:
    assert error_of(a_run(state="closed", error_class=told)) == seen


def tried_again(order_bytes: int, outputs: str) -> tuple[Run | None, int]:
    """Returns the run as it waits for its next attempt, and how large its item is."""
    order = {
        "program_type": "python",
        "file": "/j.py",
        "args": ["x" * order_bytes],
        "conf": {},
        "env": {},
        "properties": {},
    }
    run = a_run(state="running", started_at=NOW, driver="d", order=json.dumps(order), outputs=outputs)
    desk = DecisionHarness(a_schedule(), a_definition(a_spec(trigger=every("1h"), retry={"tries": 1})))
    desk.lay(replace(run, ended_at=NOW + 5, outcome="failed"))
    desk.decide(CheckRun(0, run.id, lambda run: None, desk.memory), NOW + 10)
    return desk.record(Run, run.key(0)), bytes_of(desk.store.peek(run.key(0)) or {})


def test_given_letters_of_any_script_then_a_failures_outputs_are_kept_as_short_as_they_were_told() -> None:
    outputs = json.dumps({"rows": "\u044f" * 32_000}, ensure_ascii=False)
    run, size = tried_again(0, outputs)
    assert run is not None
    assert run.attempt == 2
    assert json.loads(run.failure or "")["outputs"] == outputs
    assert size < len(outputs.encode()) + 2_000


def test_given_an_item_without_room_for_a_failures_outputs_then_the_next_attempt_is_made_without_them() -> None:
    """Quotes in JSON in JSON take four bytes each. The next attempt's outputs have room."""
    run, size = tried_again(260_000, json.dumps({"rows": '"' * 32_000}))
    assert run is not None
    assert run.attempt == 2
    failure = json.loads(run.failure or "")
    assert (failure["outcome"], failure["outputs"]) == ("failed", None)
    assert size <= ITEM_BYTES_MAX - NEXT_REPORT_BYTES
