"""`tidegate schedule next`: previews the instants of time triggers with the functions that also decide on a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.output import Format, note, show_list
from tidegate_cli.yaml_documents import ScheduleDocument
from tidegate_core.language.definitions.catch_up_policy import is_too_old
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import check_schedule, schedule_warnings
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.triggers import AtTrigger, TimeTrigger
from tidegate_core.language.triggers.preview import STEPS_PER_PREVIEW, Upcoming, preview, preview_ticks, reading_of
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.language.values.instants import Instant, format_instant, from_datetime, parse_instant
from tidegate_core.language.values.problems import InvalidInput
from tidegate_core.shard.job_order import flexible_until

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


def show_next(
    documents: Iterable[ScheduleDocument], after: str | None, count: int, minimum_period: str, output: Format
) -> None:
    """Prints a line for each next instant of definitions in files. Problems and warnings go to stderr.

    Raises:
        CommandFailed: A definition or an option is wrong; the message has file and line.
    """
    begin, now, lines = _begin(after), from_datetime(datetime.now(UTC)), list[NextLine]()
    try:
        minimum_period_ms = parse_duration(minimum_period)
    except ValueError as error:
        raise CommandFailed(f"--minimum-period {minimum_period}: {error}", Exit.USAGE) from error
    for spec in _all_parsed(documents):
        title = f"{spec.namespace}/{spec.name}"
        lines += _lines(spec, begin, count, None)
        for problem in check_schedule(spec, now=now, minimum_period_ms=minimum_period_ms):
            note(f"{title}: an apply would be refused: {problem}")
        for warning in schedule_warnings(spec, now):
            note(f"{title}: warning: {warning}")
        if (
            isinstance(spec.trigger, AtTrigger)
            and spec.trigger.instant <= now
            and not is_too_old(spec, spec.trigger.instant, now)
        ):
            note(f"{title}: its instant has passed: an apply runs it at once")
    _show(lines, output)


def _all_parsed(documents: Iterable[ScheduleDocument]) -> list[ScheduleSpec]:
    """Returns the definitions, or raises CommandFailed with all their problems."""
    specs: list[ScheduleSpec] = []
    problems: list[str] = []
    for document in documents:
        try:
            specs.append(parse_schedule(document.spec))
        except InvalidInput as refusal:
            places = [(document.place_of(each.field), each) for each in refusal.problems]
            problems += [f"{place}: schedule {document.title}: {each}" for place, each in places]
    if problems:
        raise CommandFailed("\n  ".join(["the schedules have to be corrected:", *problems]), Exit.USAGE)
    return specs


def show_next_of(view: ScheduleView, after: str | None, count: int, output: Format) -> None:
    """Prints a line for each next instant of a stored schedule, which may have fired or be suspended."""
    if view.status == "suspended":
        until = "until it is resumed" if view.until is None else f"until {view.until.isoformat()}"
        note(f"{view.namespace}/{view.name}: is suspended ({view.mode}) {until}; it starts nothing before")
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
    return [
        NextLine(
            namespace=spec.namespace,
            name=spec.name,
            instant=format_instant(each.instant),
            local=each.local,
            zone=each.zone,
            result=each.result,
            note="; ".join(text for text in (each.note, _starts(trigger, title, each)) if text),
        )
        for each in coming
    ]


def _starts(trigger: object, title: str, each: Upcoming) -> str:
    """Returns the start of an occurrence if it differs from its nominal time."""
    if not isinstance(trigger, TimeTrigger) or trigger.flexible is None or each.result != "fires":
        return ""
    return f"starts at {format_instant(flexible_until(trigger, title, each.instant))} (flexible)"


def _used_before(trigger: TimeTrigger, title: str, begin: Instant, left: int) -> int:
    """Returns how many of the fires that are left happen between now and `begin`, inclusive."""
    search = Search(STEPS_PER_PREVIEW)
    used, instant = 0, trigger.seek(from_datetime(datetime.now(UTC)), title, search).found
    while instant is not None and instant <= begin and used < left:
        used, instant = used + 1, trigger.seek(instant, title, search).found
    return used


def _fires(trigger: TimeTrigger, title: str, begin: Instant, count: int, view: ScheduleView | None) -> list[Upcoming]:
    """Returns the next instants, at most `max_fires` in total. A note says if this bound ends the list."""
    left = trigger.max_fires if view is None else view.fires_left
    if left is not None:
        used = _used_before(trigger, title, begin, left)
        if used and used == left:
            note(
                f"{title}: max_fires is {trigger.max_fires}, and all fires are used before {format_instant(begin + 1)}"
            )
            return []
        left -= used
    coming = preview(trigger, title, begin, count if left is None else min(count, left)) if left != 0 else []
    if left is not None and left <= count:
        note(f"{title}: max_fires is {trigger.max_fires}, and {left} of them are left")
    elif not coming:
        note(f"{title}: names no instant from {format_instant(begin + 1)} on")
    return coming
