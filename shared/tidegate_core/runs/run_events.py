"""Reports of a run: the fact that triggers count, and the record for `tidegate.runs`. Pure."""

from __future__ import annotations

import json
from typing import Any

from tidegate_core.language.events.trigger_facts import RunFact, fact_to_json
from tidegate_core.language.formats.run_record import RunRecord
from tidegate_core.language.values.states import RunState
from tidegate_core.rows.run import OutboxRow, Run
from tidegate_core.runs.retries import error_of


def outbox_row(run: Run, given_up: str | None = None) -> OutboxRow:
    """Returns the outbox row of a terminal state: the fact for triggers, the record for `tidegate.runs`, and a dead
    letter if the run was given up.
    """
    assert run.ended_at is not None
    state = RunState(run.outcome or "failed")
    return OutboxRow(
        run_id=run.id,
        attempt=run.attempt,
        state=state.value,
        record=run_record(run, state, run.ended_at),
        fact=_fact(run, state, run.ended_at),
        started=None if run.told else run.started_at,
        given_up=given_up,
        error_class=None if given_up is None else error_of(run),
    )


def told_row(run: Run, state: RunState, at: int) -> OutboxRow:
    """Returns the outbox row with the fact of a run that has not ended. Its record for `tidegate.runs` is sent
    separately.
    """
    return OutboxRow(run_id=run.id, attempt=run.attempt, state=state.value, record="", fact=_fact(run, state, at))


def _fact(run: Run, state: RunState, at: int) -> str:
    fact = RunFact.model_construct(
        namespace=run.namespace,
        schedule=run.name,
        run_id=run.id,
        attempt=run.attempt,
        state=state,
        args=tuple(run.order_document["args"]),
        outputs=outputs_of(run),
        correlation=run.correlation,
        admitted_at=run.admitted_at,
        nominal=run.nominal,
        job=run.id,
        ended_at=at,
    )
    return fact_to_json(fact)


def outputs_of(run: Run) -> dict[str, Any]:
    """Returns the outputs that the program reported. A broken surrogate in them becomes `?`: it cannot be sent, and
    must not stop the shard.
    """
    outputs: dict[str, Any] = json.loads((run.outputs or "{}").encode(errors="replace"))
    return outputs


def run_record(run: Run, state: RunState, at: int) -> str:
    record = RunRecord.model_construct(
        run_id=run.id,
        attempt=run.attempt,
        state=state,
        namespace=run.namespace,
        schedule=run.name,
        nominal=run.nominal,
        job=run.id,
        reason=run.reason,
        outputs=outputs_of(run),
        at=at,
    )
    return record.to_json().decode()
