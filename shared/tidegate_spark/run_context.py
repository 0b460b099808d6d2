"""The context of a run: the document that the launcher wrote, as frozen values.

The document may gain fields: unknown ones are kept in `Context.document` and otherwise ignored, so that a program
with an older library runs under a newer node.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tidegate_spark.errors import NotInRun


@dataclass(frozen=True, slots=True)
class ScheduleInfo:
    """The schedule that this run belongs to."""

    id: str
    namespace: str
    name: str
    properties: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class JobInfo:
    """The job that became this run."""

    id: str
    generation: int | None
    created: datetime | None
    satisfied_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Id of this run and number of this attempt; the first is 1."""

    id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class DataInterval:
    """The span [start, end) of data that the occurrence covers."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class DataPartition:
    """One entry of the manifest: a data partition that was counted for this run.

    Attributes:
        dedupe_unknown: Whether it may be a repeat: an event of the same id was counted more than 24 h before.
    """

    dataset: str
    partition: str
    version: str | None
    bytes: int | None
    rows: int | None
    event_id: str | None
    origin: str | None
    dedupe_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Upstream:
    """The run whose end triggered this one."""

    run_id: str
    status: str
    args: tuple[str, ...]
    outputs: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a program can learn about its run.

    Attributes:
        schedule: Schedule of the run.
        job: Job that became the run.
        run: Run and attempt.
        nominal: Aware UTC instant at which the run should happen; None for a purely data-driven run without one.
        interval: Data interval of a time trigger.
        correlation: Value that correlated the events of an `all_of`, such as a day.
        covered: Nominal instants of all occurrences that this run stands for.
        manifest: Data partitions that were counted.
        missing: Inputs that a partial fire did not wait for.
        upstream: Run whose end triggered this one, for `run_status` triggers.
        document: The document as the launcher wrote it.
        events: Custom events that were counted: `name`, `subject`, `data` (up to 2 KiB, else None), `event_id`, and
            `origin`, its place in the log; `dedupe_unknown` as for a data partition, only if it is true.
        ticks: Instants of time triggers inside a composite trigger: `instant`, and `leaf`, the trigger's place in it.
    """

    schedule: ScheduleInfo
    job: JobInfo
    run: RunInfo
    nominal: datetime | None
    interval: DataInterval | None
    correlation: str | None
    covered: tuple[datetime, ...]
    manifest: tuple[DataPartition, ...]
    missing: tuple[object, ...]
    upstream: Upstream | None
    document: Mapping[str, object]
    events: tuple[Mapping[str, object], ...] = ()
    ticks: tuple[Mapping[str, object], ...] = ()


def context() -> Context:
    """Returns the context of this run. Works in the program and in processes that it starts on the same host.

    Raises:
        NotInRun: The environment names no context file, or the file cannot be read.
    """
    path = os.environ.get("TIDEGATE_CONTEXT")
    if not path:
        raise NotInRun(
            "context(): TIDEGATE_CONTEXT is not set, so this is no tidegate run; start the program by a schedule, or "
            "point TIDEGATE_CONTEXT at a context.json of an earlier run to try it by hand"
        )
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotInRun(f"context(): {path} cannot be read: {error}; the folder of the run may be gone") from error
    return read_context(document)


def read_context(document: object) -> Context:
    """Builds the context from the document; missing fields become empty values."""
    fields = _mapping(document)
    schedule, job, run = (_mapping(fields.get(name)) for name in ("schedule", "job", "run"))
    interval, upstream = _mapping(fields.get("interval")), _mapping(fields.get("upstream"))
    start, end = _instant(interval.get("start")), _instant(interval.get("end"))
    return Context(
        schedule=ScheduleInfo(
            id=_text(schedule.get("id")) or "",
            namespace=_text(schedule.get("namespace")) or "",
            name=_text(schedule.get("name")) or "",
            properties=_mapping(schedule.get("properties")),
        ),
        job=JobInfo(
            id=_text(job.get("id")) or "",
            generation=_whole(job.get("generation")),
            created=_instant(job.get("created")),
            satisfied_at=_instant(job.get("satisfied_at")),
        ),
        run=RunInfo(id=_text(run.get("id")) or "", attempt=_whole(run.get("attempt")) or 1),
        nominal=_instant(fields.get("nominal")),
        interval=DataInterval(start, end) if start is not None and end is not None else None,
        correlation=_text(fields.get("correlation")),
        covered=tuple(moment for moment in map(_instant, _sequence(fields.get("covered"))) if moment is not None),
        manifest=tuple(_data_partition(_mapping(entry)) for entry in _sequence(fields.get("manifest"))),
        missing=tuple(_sequence(fields.get("missing"))),
        upstream=_upstream(upstream) if upstream else None,
        document=fields,
        events=tuple(_mapping(entry) for entry in _sequence(fields.get("events"))),
        ticks=tuple(_mapping(entry) for entry in _sequence(fields.get("ticks"))),
    )


def _data_partition(entry: Mapping[str, object]) -> DataPartition:
    return DataPartition(
        dataset=_text(entry.get("dataset")) or "",
        partition=_text(entry.get("partition")) or "",
        version=_text(entry.get("version")),
        bytes=_whole(entry.get("bytes")),
        rows=_whole(entry.get("rows")),
        event_id=_text(entry.get("event_id")),
        origin=_text(entry.get("origin")),
        dedupe_unknown=entry.get("dedupe_unknown") is True,
    )


def _upstream(entry: Mapping[str, object]) -> Upstream:
    return Upstream(
        run_id=_text(entry.get("run_id")) or "",
        status=_text(entry.get("status") or entry.get("state")) or "",  # Run records call it state.
        args=tuple(str(argument) for argument in _sequence(entry.get("args"))),
        outputs=_mapping(entry.get("outputs")),
    )


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _instant(value: object) -> datetime | None:
    """Parses RFC 3339 with offset, or epoch milliseconds, the stored form."""
    if isinstance(value, str) and value:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    if isinstance(value, int) and not isinstance(value, bool):
        return datetime.fromtimestamp(value / 1000, UTC)
    return None
