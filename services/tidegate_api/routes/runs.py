"""Runs: launched jobs, their logs, cancelling them, and releasing those that are lost."""

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

States = Annotated[
    list[RunState] | None, Query(description="Only runs in this state, or in one of these: repeat the parameter")
]
Since = Annotated[
    str | None, Query(max_length=64, description="Only runs that ended at this RFC 3339 time or later, or are open")
]
Until = Annotated[str | None, Query(max_length=64, description="Only runs that ended before this RFC 3339 time")]
RUNS_OF_A_PAGE = 50
ATTEMPTS_MAX = 9_999
"""Four digits: it names files."""


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
    """Open ones first, newest admission first; then those that ended in the last 30 days, newest end first.

    All of the past 90 days is in `/occurrences`. A run that ends while pages are read may stand on two of them. Where the filters keep little,
    or runs have very much in outputs, a page may have few items or none and still name the next one.
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
    offset: Annotated[int, Query(ge=0, description="First byte")] = 0,
    attempt: Annotated[int | None, Query(ge=1, le=ATTEMPTS_MAX, description="The current one by default")] = None,
    tail: Annotated[
        int | None, Query(ge=0, le=TAIL_LINES_MAX, description="Instead of offset: begin so many lines before the end")
    ] = None,
) -> LogView:
    """A piece of at most 256 KiB; go on at `next_offset` until `ended` and `next_offset` is `size`.

    With `tail` the piece begins so many lines before the end, at most 8 MiB before it.

    Where `attempts` is more than `attempt` by then, the next attempt has a log of its own.
    """
    if tail is not None and offset:
        raise InvalidInput([Problem("tail", "says where to begin, as offset does", "give one of them")])
    run = await services.runs.one(run_id)
    number = run.attempt if attempt is None else attempt
    ended = run.is_ended or number < run.attempt
    piece = await _piece(services, run_id, number, stream, offset, ended=ended, tail=tail)
    if piece is None and not ended and (run.started_at is None or RunState(run.state).is_before_gate):
        piece = Piece(0, 0, 0, "")  # Nothing has been written yet: whoever follows waits for the start.
    if piece is None and run.started_at is None:
        why = f" ({run.reason})" if run.reason else ""
        raise not_found(f"run {run_id} attempt {number}: its program was never started{why}, so there is no log")
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
    """Returns what is there of a log, None where nothing is. Raises ApiProblem: 404, it cannot be read here; 503, not now."""
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
    summary="End a run",
    openapi_extra=body(fields("namespace", "reason", "actor", "id"), required=False),
)
async def cancel_run(run_id: RunPath, request: RawRequestOf) -> JSONResponse:
    """Before the start gate it is closed; after it its process group is stopped."""
    return await request.send(type="run.cancel", run_id=run_id)


@router.post(
    "/runs/{run_id}/release",
    response_model=ReceiptView,
    summary="Release a lost run",
    openapi_extra=body(fields("namespace", "reason", "actor", "id"), required=False),
)
async def release_run(run_id: RunPath, request: RawRequestOf) -> JSONResponse:
    """For when its program is gone for good: the run ends, its permits are given back, and a further attempt may start.

    If the program still runs, that attempt runs beside it. 400 for an open run that is not `lost`; 409 `too_late` for one that has ended.
    """
    return await request.send(type="run.release", run_id=run_id)
