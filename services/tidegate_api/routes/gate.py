"""The start gate and the reports of programs. Authorised by the token of the attempt, which only its launcher was given.

Each success names the run: without that a wrapper takes it for somebody else's, a proxy's say, and asks again.
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
    """Whether an Authorization header holds the attempt's token, by one of the secrets; takes as long for a near miss as for a wild guess."""
    header = authorization or ""
    given = header[len(SCHEME) :].strip() if header[: len(SCHEME)].lower() == SCHEME else ""
    return any(hmac.compare_digest(given.encode(), run_token(each, run_id, attempt).encode()) for each in secrets)


router = APIRouter(prefix="/api/v1", tags=["gate"])

Authorization = Annotated[str | None, Header(description="Bearer token of the attempt")]
Answer = dict[str, Any]
SEQ_MAX = 2**63 - 1
"""Of a driver's reports: beyond what any counts to, and below the 38 digits that the store's numbers have."""

EXIT_CODE_MAX = 2**63 - 1
"""Beyond what any system has, and below the store's 38 digits as well."""


class Report(BaseModel):
    """What every report says.

    Attributes:
        attempt: 1 or more.
        driver: UUID in the memory of the one process that speaks.
    """

    # A newer wrapper may say more.
    model_config = ConfigDict(frozen=True, extra="ignore")

    attempt: int = Field(ge=1)
    driver: str = Field(min_length=1, max_length=128)


class StartReport(Report):
    """A program's driver asks whether it may run.

    Attributes:
        host: The machine's own name, for the log.
        launcher_host: Of the launcher that started it, as in the run; older wrappers do not say it.
    """

    launcher_host: str | None = Field(default=None, min_length=1, max_length=256)
    host: str | None = Field(default=None, max_length=256)
    pid: int | None = None


class OutputsReport(Report):
    """All outputs of the run so far; they replace the earlier ones.

    Attributes:
        seq: The driver's count of these reports: one that comes after a later one changes nothing.
    """

    outputs: dict[str, Any]
    seq: int | None = Field(default=None, ge=1, le=SEQ_MAX)


class DataPartitionReport(Report):
    """A data partition that the run has made and committed."""

    dataset: DatasetId
    partition: DataPartitionName
    bytes: SizeField | None = None
    rows: RowCount | None = None
    version: Annotated[str, StringConstraints(strict=True, pattern=LONG_TEXT_PATTERN)] = "1"


class FinishedReport(Report):
    """How the program ended, by its wrapper."""

    outcome: Literal["succeeded", "failed", "killed", "timed_out"]
    reason: str | None = None
    exit_code: int | None = Field(default=None, ge=-EXIT_CODE_MAX, le=EXIT_CODE_MAX)
    error_class: Literal["config", "auth", "user_code", "oom", "preempted", "quota", "transient", "lost"] | None = None
    outputs: dict[str, Any] | None = None


@router.post("/runs/{run_id}/start", summary="Pass the start gate")
async def start(
    run_id: RunPath, report: StartReport, services: ServicesOf, authorization: Authorization = None
) -> Answer:
    """200: run the program. 409: another driver has it, it was closed, or the attempt is over; do not run."""
    await _decided(
        services,
        "start",
        run_id,
        report,
        authorization,
        lambda: services.gate.start(run_id, report.attempt, report.driver, report.launcher_host),
    )
    services.pokes.poke(run_id)
    services.notices("run_started", run_id=run_id, attempt=report.attempt, host=report.host, pid=report.pid)
    return {"run_id": run_id, "attempt": report.attempt, "state": "running"}


@router.post("/runs/{run_id}/outputs", summary="Report outputs")
async def outputs(
    run_id: RunPath, report: OutputsReport, services: ServicesOf, authorization: Authorization = None
) -> Answer:
    """At most 64 KiB of JSON in all, at most 100 levels deep."""
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
    """Idempotent: a repeat of a recorded end is answered like the first. 409: another end was recorded, and which."""

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
    services.pokes.poke(run_id)
    services.notices("run_finished", run_id=run_id, attempt=report.attempt, outcome=report.outcome)
    return {"run_id": run_id, "outcome": report.outcome}


@router.post("/runs/{run_id}/partitions", summary="Announce a data partition")
async def partitions(
    run_id: RunPath, report: DataPartitionReport, services: ServicesOf, authorization: Authorization = None
) -> Answer:
    """Answers when the event is on its topic. Its id does not name the attempt: a retry's repeat counts once.

    400 in the namespace `tidegate`, which no event may name.
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
        # Nodes would refuse it, and the program would hear nothing of that.
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
    """Runs a decision on the gate's threads and counts its answer."""
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
            f"run {run_id} attempt {attempt}: the token does not belong to it; nodes and API need the same gate secret",
            headers={"WWW-Authenticate": "Bearer"},
        )
