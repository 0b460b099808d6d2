"""The closed lists of states."""

from __future__ import annotations

import pytest

from tidegate_core.language.values.states import Disposition, JobState, RunState, disposition_text


def test_given_run_states_then_each_is_before_the_gate_or_running_or_ended() -> None:
    before = [state for state in RunState if state.is_before_gate]
    ended = [state for state in RunState if state.is_ended]

    assert before == [RunState.SUBMITTING, RunState.SUBMITTED]
    assert ended == [
        RunState.SUCCEEDED,
        RunState.FAILED,
        RunState.KILLED,
        RunState.LOST,
        RunState.TIMED_OUT,
        RunState.CLOSED,
    ]


def test_given_states_then_they_are_stored_as_lower_snake_case() -> None:
    assert [str(state) for state in JobState] == ["pending_trigger", "pending_constraint", "pending_launch"]


def test_given_disposition_then_its_text_carries_the_reason() -> None:
    assert disposition_text(Disposition.LAUNCHED) == "launched"
    assert disposition_text(Disposition.CANCELLED, "schedule_deleted") == "cancelled/schedule_deleted"


@pytest.mark.parametrize("disposition", [Disposition.SKIPPED, Disposition.EXPIRED, Disposition.CANCELLED])
def test_given_what_did_not_happen_then_a_reason_is_demanded(disposition: Disposition) -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        disposition_text(disposition)
