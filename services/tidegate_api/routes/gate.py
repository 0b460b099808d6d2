"""Routes of the start gate and of reports by programs. Requests carry the token of the attempt, which only its launcher got.

Each success names the run. A wrapper repeats a request whose answer does not name it, because the answer may be a proxy's.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tidegate_api.dependencies import Services
from tidegate_api.event_publisher import Announcement, put_event
from tidegate_api.http.problem_responses import ApiProblem
from tidegate_api.routes.parameters import RunPath, ServicesOf
from tidegate_core.language.events.events import DataPartitionEvent, RowCount, one_step
from tidegate_core.language.requests.record_authorization import authorize_events
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.names import EVERY, LONG_TEXT_PATTERN, DataPartitionName, DatasetId
from tidegate_core.language.values.problems import InvalidInput, RefusedRecord
from tidegate_core.language.values.sizes import SizeField
from tidegate_ports.common.run_tokens import run_token

__all__ = ["run_token", "speaks_for"]

SCHEME = "bearer "


def speaks_for(secrets: Sequence[bytes], authorization: str | None, run_id: str, attempt: int) -> bool:
    """Whether an Authorization header holds the attempt's token, signed with one of the secrets. The comparison takes constant time."""
    header = authorization or ""
    given = header[len(SCHEME) :].strip() if header[: len(SCHEME)].lower() == SCHEME else ""
    return any(hmac.compare_digest(given.encode(), run_token(each, run_id, attempt).encode()) for each in secrets)


router = APIRouter(prefix="/api/v1", tags=["gate"])

Authorization = Annotated[str | None, Header(description="Bearer token of the attempt")]
Answer = dict[str, Any]
SEQ_MAX = 2**63 - 1
"""Largest number of a driver's report: more than a driver ever counts, and below the 38 digits of the store's numbers."""

EXIT_CODE_MAX = 2**63 - 1
"""Largest exit code: more than any system uses, and below the store's 38 digits."""


class Report(BaseModel):
    """Fields of every report.

    Attributes:
        attempt: Number of the attempt, 1 or more.
        driver: UUID that exists only in the memory of the reporting process.
    """

    # A newer wrapper may send more fields.
    model_config = ConfigDict(frozen=True, extra="ignore")

    attempt: int = Field(ge=1)
    driver: str = Field(min_length=1, max_length=128)


class StartReport(Report):
    """Request of a program's driver to run.

    Attributes:
        host: Name of the driver's machine, for the log.
        launcher_host: Host of the launcher that started it, as in the run; older wrappers do not send it.
    """

    launcher_host: str | None = Field(default=None, min_length=1, max_length=256)
    host: str | None = Field(default=None, max_length=256)
    pid: int | None = None


class OutputsReport(Report):
    """All outputs of the run so far; they replace the earlier outputs.

    Attributes:
        seq: Number of the report, counted by the driver. A report that arrives after a later one changes nothing.
    """

    outputs: dict[str, Any]
    seq: int | None = Field(default=None, ge=1, le=SEQ_MAX)


class DataPartitionReport(Report):
    """A data partition that the run has written and committed."""

    dataset: DatasetId
    partition: DataPartitionName
    bytes: SizeField | None = None
    rows: RowCount | None = None
    version: Annotated[str, StringConstraints(strict=True, pattern=LONG_TEXT_PATTERN)] = "1"


class FinishedReport(Report):
    """End of the program, reported by its wrapper."""

    outcome: Literal["succeeded", "failed", "killed", "timed_out"]
    reason: str | None = None
    exit_code: int | None = Field(default=None, ge=-EXIT_CODE_MAX, le=EXIT_CODE_MAX)
    error_class: Literal["config", "auth", "user_code", "oom", "preempted", "quota", "transient", "lost"] | None = None
    outputs: dict[str, Any] | None = None


@router.post("/runs/{run_id}/start", summary="Pass the start gate")
async def start(
    run_id: RunPath, report: StartReport, services: ServicesOf, authorization: Authorization = None
) -> Answer:
    """200: run the program. 409: do not run it, because another driver runs it, the run was closed, or the attempt is over."""
    await _decided(
        services,
        "start",
        run_id,
        report,
        authorization,
        lambda: services.gate.start(run_id, report.attempt, report.driver, report.launcher_host),
    )
    services.wake_ups.wake(run_id)
    services.notices("run_started", run_id=run_id, attempt=report.attempt, host=report.host, pid=report.pid)
    return {"run_id": run_id, "attempt": report.attempt, "state": "running"}


@router.post("/runs/{run_id}/outputs", summary="Report outputs")
async def outputs(
    run_id: RunPath, report: OutputsReport, services: ServicesOf, authorization: Authorization = None
) -> Answer:
    """At most 64 KiB of JSON in total, nested at most 100 levels deep."""
    await _decided(
        services,
        "outputs",
        run_id,
        report,
        authorization,
        lambda: services.gate.outputs(run_id, report.attempt, report.driver, report.outputs, report.seq),
    )
    return {"run_id": run_id}


@router.post("/runs/{run_id}/finished", summary="Report the end")
async def finished(
    run_id: RunPath, report: FinishedReport, services: ServicesOf, authorization: Authorization = None
) -> Answer:
    """Idempotent: a repeat of the recorded end is answered like the first. 409: another end was recorded; the answer names it."""

    def decide() -> None:
        services.gate.finished(
            run_id,
            report.attempt,
            report.driver,
            report.outcome,
            report.exit_code,
            report.reason,
            report.error_class,
            report.outputs,
        )

    await _decided(services, "finished", run_id, report, authorization, decide)
    services.wake_ups.wake(run_id)
    services.notices("run_finished", run_id=run_id, attempt=report.attempt, outcome=report.outcome)
    return {"run_id": run_id, "outcome": report.outcome}


@router.post("/runs/{run_id}/partitions", summary="Report a data partition")
async def partitions(
    run_id: RunPath, report: DataPartitionReport, services: ServicesOf, authorization: Authorization = None
) -> Answer:
    """The answer comes when the event is on its topic. The event's id does not contain the attempt, so a repeat by a retry counts once.

    400 in the namespace `tidegate`, which is reserved.
    """
    _authorise(services, authorization, run_id, report.attempt)
    run = await _counted(
        services,
        "partitions",
        lambda: services.gate.running(run_id, report.attempt, report.driver),
    )
    event_id = f"{run_id}/{report.dataset}/{report.partition}/{one_step(report.version)}"
    event = DataPartitionEvent.model_validate(
        {
            "id": event_id,
            "namespace": run.namespace,
            "dataset": report.dataset,
            "partition": report.partition,
            "bytes": report.bytes,
            "rows": report.rows,
            "version": report.version,
            "producer": f"run {run_id}",
            "event_time": format_instant(services.clock.now_ms()),
        }
    )
    try:
        authorize_events([event], EVERY, services.topics.events)
    except RefusedRecord as refusal:
        # Nodes would refuse the event later, and the program would not notice.
        raise InvalidInput(refusal.problems) from refusal
    await put_event(
        services, Announcement(event_id, f"{run.namespace}/{report.dataset}", event.canonical_json().encode())
    )
    return {"run_id": run_id, "event_id": event_id}


async def _decided(
    services: Services, action: str, run_id: str, report: Report, authorization: str | None, decide: Callable[[], None]
) -> None:
    _authorise(services, authorization, run_id, report.attempt)
    await _counted(services, action, decide)


async def _counted(services: Services, action: str, decide: Callable[[], Any]) -> Any:
    """Runs a decision on the gate's threads and counts the answer in a metric."""
    answer = "error"
    try:
        result = await services.pools.gate(decide)
        answer = "ok"
    except ApiProblem as refusal:
        answer = refusal.reason or str(refusal.status)
        raise
    finally:
        services.metrics.count("tidegate_gate_answers_total", action=action, answer=answer)
    return result


def _authorise(services: Services, authorization: str | None, run_id: str, attempt: int) -> None:
    if not speaks_for(services.secrets, authorization, run_id, attempt):
        raise ApiProblem(
            401,
            f"run {run_id} attempt {attempt}: the token is not valid for it; give nodes and API the same gate secret",
            headers={"WWW-Authenticate": "Bearer"},
        )
