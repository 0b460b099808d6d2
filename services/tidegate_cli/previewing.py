"""`tidegate schedule next`: the coming instants of time triggers, computed here by the functions that decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tidegate_cli.exits import CommandFailed, Exit
from tidegate_cli.output import Format, note, show_list
from tidegate_core.model.instants import Instant, format_instant, from_datetime, parse_instant
from tidegate_core.model.parsing import parse_schedule
from tidegate_core.model.problems import InvalidInput
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.model.schedule_checks import check_schedule
from tidegate_core.triggers import TimeTrigger
from tidegate_core.triggers.preview import Upcoming, preview, preview_ticks, reading_of

if TYPE_CHECKING:
    from tidegate_client.views import ScheduleView


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
    """Prints a line for each coming instant of definitions that are not applied yet; what is to be said of them goes beside the data."""
    begin = _begin(after)
    _show([line for spec in specs for line in _lines(_parsed(spec), begin, count, None)], output)


def show_next_of(view: ScheduleView, after: str | None, count: int, output: Format) -> None:
    """The same of a schedule that there is, which may have fired already."""
    _show(_lines(_parsed(view.spec), _begin(after), count, view), output)


def _show(lines: Sequence[NextLine], output: Format) -> None:
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


def _parsed(document: Mapping[str, Any]) -> ScheduleSpec:
    try:
        return parse_schedule(document)
    except InvalidInput as refusal:
        raise CommandFailed("\n".join(str(problem) for problem in refusal.problems), Exit.USAGE) from refusal


def _lines(spec: ScheduleSpec, begin: Instant, count: int, view: ScheduleView | None) -> list[NextLine]:
    title = f"{spec.namespace}/{spec.name}"
    trigger = spec.trigger
    if isinstance(trigger, TimeTrigger):
        coming = _fires(trigger, title, begin, count, view)
    else:
        coming = preview_ticks(trigger, title, begin, count)
    if not coming and not isinstance(trigger, TimeTrigger):
        note(f"{title}: fires by events, not by time")
    elif reading_of(trigger):
        note(f"{title}: {reading_of(trigger)}")
    for problem in check_schedule(spec, now=from_datetime(datetime.now(UTC))) if view is None else ():
        note(f"{title}: would be refused by an apply: {problem}")
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


def _fires(trigger: TimeTrigger, title: str, begin: Instant, count: int, view: ScheduleView | None) -> list[Upcoming]:
    """Returns no more than `max_fires` lets it fire from there on, and says so where that is the end."""
    left = trigger.max_fires if view is None else view.fires_left
    coming = preview(trigger, title, begin, count if left is None else min(count, left)) if left != 0 else []
    if left is not None and left <= count:
        note(f"{title}: max_fires is {trigger.max_fires}, and {left} of them are left")
    elif not coming:
        note(f"{title}: names no instant from {format_instant(begin + 1)} on")
    return coming
