"""`tidegate schedule next`: the coming instants of time triggers, computed here by the functions that decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from tidegate_cli.exits import CommandFailed, Exit
from tidegate_cli.output import Format, note, show_list
from tidegate_core.model.instants import Instant, format_instant, from_datetime, parse_instant
from tidegate_core.model.parsing import parse_schedule
from tidegate_core.model.problems import InvalidInput
from tidegate_core.triggers import TimeTrigger
from tidegate_core.triggers.preview import preview, preview_ticks, reading_of


class NextLine(BaseModel):
    """One line of the preview."""

    namespace: str
    name: str
    instant: str
    local: str
    zone: str
    result: str
    note: str


def show_next(specs: Iterable[Mapping[str, Any]], after: str | None, count: int, output: Format) -> None:
    """Prints a line for each coming instant; how an expression was read goes beside the data."""
    begin = _begin(after)
    lines = [line for spec in specs for line in _lines(spec, begin, count)]
    columns = [
        ("schedule", lambda line: f"{line.namespace}/{line.name}"),
        ("instant", lambda line: line.instant),
        ("local", lambda line: line.local),
        ("zone", lambda line: line.zone),
        ("result", lambda line: line.result),
        ("note", lambda line: line.note or None),
    ]
    show_list(lines, columns, output)


def _begin(after: str | None) -> Instant:
    if after is None:
        return from_datetime(datetime.now(UTC))
    try:
        return parse_instant(after) - 1
    except ValueError as error:
        raise CommandFailed(f"--from {after}: {error}", Exit.USAGE) from error


def _lines(document: Mapping[str, Any], begin: Instant, count: int) -> list[NextLine]:
    try:
        spec = parse_schedule(document)
    except InvalidInput as refusal:
        raise CommandFailed("\n".join(str(problem) for problem in refusal.problems), Exit.USAGE) from refusal
    title = f"{spec.namespace}/{spec.name}"
    trigger = spec.trigger
    coming = (
        preview(trigger, title, begin, count)
        if isinstance(trigger, TimeTrigger)
        else preview_ticks(trigger, title, begin, count)
    )
    if not coming and not isinstance(trigger, TimeTrigger):
        note(f"{title}: fires by events, not by time")
    elif reading_of(trigger):
        note(f"{title}: {reading_of(trigger)}")
    return [
        NextLine(
            namespace=spec.namespace,
            name=spec.name,
            instant=format_instant(each.instant),
            local=each.local,
            zone=each.zone,
            result=each.result,
            note=each.note,
        )
        for each in coming
    ]
