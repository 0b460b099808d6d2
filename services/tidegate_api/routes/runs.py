"""Routes of runs: list, show, logs, cancel, release."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from tidegate_api.dependencies import Services
from tidegate_api.http.page_tokens import place_of
from tidegate_api.http.problem_responses import not_found, unavailable
from tidegate_api.openapi import body, fields
from tidegate_api.reads.runs import Wanted
from tidegate_api.routes.parameters import (
    NamespaceFilter,
    PageSize,
    PageToken,
    RawRequestOf,
    RunPath,
    ScheduleFilter,
    ServicesOf,
    instant_of,
)
from tidegate_api.run_logs import TAIL_LINES_MAX, LogUnreadable, Piece, Stream
from tidegate_client.views import LogView, Page, ReceiptView, RunView
from tidegate_core.language.values.problems import InvalidInput, Problem
from tidegate_core.language.values.states import RunState
from tidegate_ports.common.program_file_check import FileSystemSilent

router = APIRouter(prefix="/api/v1", tags=["runs"])

States = Annotated[list[RunState] | None, Query(description="Only runs in this state; may be repeated")]
Since = Annotated[
    str | None, Query(max_length=64, description="Only open runs, and runs that ended at this RFC 3339 time or later")
]
Until = Annotated[str | None, Query(max_length=64, description="Only runs that ended before this RFC 3339 time")]
RUNS_OF_A_PAGE = 50
ATTEMPTS_MAX = 9_999
"""Largest attempt; four digits, because it is part of file names."""


@router.get("/runs", response_model=Page[RunView], summary="List the newest runs")
async def list_runs(
    services: ServicesOf,
    namespace: NamespaceFilter = None,
    schedule: ScheduleFilter = None,
    state: States = None,
    since: Since = None,
    until: Until = None,
    page_token: PageToken = None,
    page_size: PageSize = RUNS_OF_A_PAGE,
) -> Page[RunView]:
    """First open runs, newest admission first; then runs that ended in the last 30 days, newest end first.

    `/occurrences` has the past 90 days. A run that ends between two pages may be on both. With narrow filters, or runs with large
    outputs, a page may be short or empty and still have a `next_page_token`.
    """
    wanted = Wanted(namespace, schedule, frozenset(state or ()), instant_of("since", since), instant_of("until", until))
    return await services.runs.page(wanted, place_of(page_token), page_size)


@router.get("/runs/{run_id}", response_model=RunView, summary="Show a run")
async def get_run(run_id: RunPath, services: ServicesOf) -> RunView:
    return await services.runs.one(run_id)


@router.get("/runs/{run_id}/logs", response_model=LogView, summary="Read a run's log")
async def get_logs(
    run_id: RunPath,
    services: ServicesOf,
    stream: Stream = "stdout",
    offset: Annotated[int, Query(ge=0, description="Offset of the first byte")] = 0,
    attempt: Annotated[
        int | None, Query(ge=1, le=ATTEMPTS_MAX, description="Number of the attempt; default: the current one")
    ] = None,
    tail: Annotated[
        int | None,
        Query(ge=0, le=TAIL_LINES_MAX, description="Begin this number of lines before the end, instead of at offset"),
    ] = None,
) -> LogView:
    """A piece of at most 256 KiB. Continue at `next_offset` until `ended` is true and `next_offset` equals `size`.

    With `tail` the piece begins this number of lines before the end, but at most 8 MiB before it.
    If `attempts` is then greater than `attempt`, the next attempt has its own log.
    """
    if tail is not None and offset:
        raise InvalidInput([Problem("tail", "is an alternative to offset", "send one of them")])
    run = await services.runs.one(run_id)
    number = run.attempt if attempt is None else attempt
    ended = run.is_ended or number < run.attempt
    piece = await _piece(services, run_id, number, stream, offset, ended=ended, tail=tail)
    if piece is None and not ended and (run.started_at is None or RunState(run.state).is_before_gate):
        piece = Piece(0, 0, 0, "")  # The program has not started: a client that follows the log waits.
    if piece is None and run.started_at is None:
        why = f" ({run.reason})" if run.reason else ""
        raise not_found(f"run {run_id} attempt {number}: its program never started{why}, so there is no log")
    if piece is None:
        where = f"; its logs are on host {run.host}" if run.host else ""
        raise not_found(f"run {run_id} attempt {number}: this API process sees no {stream}{where}")
    return LogView(
        run_id=run_id,
        attempt=number,
        attempts=run.attempt,
        stream=stream,
        offset=piece.offset,
        next_offset=piece.next_offset,
        size=piece.size,
        text=piece.text,
        ended=ended,
    )


async def _piece(
    services: Services, run_id: str, attempt: int, stream: Stream, offset: int, *, ended: bool, tail: int | None
) -> Piece | None:
    """Returns a piece of a log, or None if there is none. Raises ApiProblem: 404 if it cannot be read here, 503 if not now."""
    subject = f"run {run_id} attempt {attempt}"
    try:
        return await services.pools.logs.of(
            f"{subject}: its {stream}",
            "this API process",
            lambda: services.logs.read(run_id, attempt, stream, offset, ended=ended, tail=tail),
        )
    except FileSystemSilent as silent:
        raise unavailable(f"{silent}; repeat the request") from silent
    except LogUnreadable as refusal:
        detail = f"{subject}: {refusal}"
        raise (unavailable(detail) if refusal.for_now else not_found(detail)) from refusal


@router.post(
    "/runs/{run_id}/cancel",
    response_model=ReceiptView,
    summary="Cancel a run",
    openapi_extra=body(fields("namespace", "reason", "actor", "id"), required=False),
)
async def cancel_run(run_id: RunPath, request: RawRequestOf) -> JSONResponse:
    """Before the start gate the run never starts; after the gate its process group is stopped."""
    return await request.send(type="run.cancel", run_id=run_id)


@router.post(
    "/runs/{run_id}/release",
    response_model=ReceiptView,
    summary="Release a lost run",
    openapi_extra=body(fields("namespace", "reason", "actor", "id"), required=False),
)
async def release_run(run_id: RunPath, request: RawRequestOf) -> JSONResponse:
    """Confirms that the program of a lost run is gone for good. The run ends, its permits are returned, and another attempt may start.

    If the program still runs, both run at the same time. 400 for an open run that is not `lost`; 409 `too_late` for an ended run.
    """
    return await request.send(type="run.release", run_id=run_id)
