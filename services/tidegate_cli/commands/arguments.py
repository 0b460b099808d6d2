"""Arguments and options that several commands share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_core.language.values.json_values import written_number

if TYPE_CHECKING:
    from datetime import datetime

ScheduleArgument = Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The schedule.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.")]
RunOrScheduleArgument = Annotated[
    str,
    typer.Argument(metavar="RUN|NAMESPACE/NAME", help="Id of the run, or a schedule for its newest run."),
]
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]
NamespaceOption = Annotated[str | None, typer.Option("--namespace", "-n", help="Only of this namespace.")]
ScheduleOption = Annotated[
    str | None, typer.Option("--schedule", "-s", metavar="NAMESPACE/NAME", help="Only of this schedule.")
]
ReasonOption = Annotated[str | None, typer.Option(help="Why you do this; stored with the request.")]
ActorOption = Annotated[str | None, typer.Option(envvar="USER", help="Who does this; stored with the request.")]
IdOption = Annotated[
    str | None, typer.Option("--id", help="Id of the request. A repeat with the same id has no second effect.")
]
VersionOption = Annotated[
    int | None, typer.Option(min=0, help="Only if the definition is at this version; 0: only if it does not exist.")
]
SuspendedFromOption = Annotated[
    str | None,
    typer.Option(
        "--suspended-from", help="Only schedules that a request suspended at this time or later (RFC 3339) ..."
    ),
]
SuspendedToOption = Annotated[str | None, typer.Option("--suspended-to", help="... and before this time.")]


class Chosen(TypedDict):
    """Filters of a list."""

    namespace: str | None
    schedule: str | None


_DURATION = re.compile(r"\d{1,9}[a-z]{1,2}", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)


def split_schedule(text: str, kind: str = "schedule") -> tuple[str, str]:
    """Returns namespace and name. Raises CommandFailed (usage)."""
    namespace, slash, name = text.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise CommandFailed(f"{text}: write the {kind} as NAMESPACE/NAME", Exit.USAGE)
    return namespace, name


def chosen(namespace: str | None, schedule: str | None) -> Chosen:
    """Returns the filters of a list. Raises CommandFailed (usage) if the schedule is in another namespace."""
    if schedule is None:
        return {"namespace": namespace, "schedule": None}
    of_schedule, name = split_schedule(schedule)
    if namespace not in (None, of_schedule):
        raise CommandFailed(f"{schedule}: is not in namespace {namespace}; leave --namespace out", Exit.USAGE)
    return {"namespace": of_schedule, "schedule": name}


def json_of(option: str, text: str | None) -> Any:
    """Returns the value of an option that holds JSON. Raises CommandFailed (usage), also if a key is repeated in an object."""
    if text is None:
        return None
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=each_once, parse_float=written_number)
    except ValueError as error:
        raise CommandFailed(f"{option}: is not JSON: {error}", Exit.USAGE) from error
    except RecursionError as error:
        raise CommandFailed(f"{option}: is nested too deeply", Exit.USAGE) from error


def each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the JSON object of these pairs. Without this check Python would drop all but the last pair of a repeated key.

    Raises:
        ValueError: A key is repeated.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f'the key "{name}" stands twice')
        found[name] = value
    return found


def moment_of(option: str, text: str | None) -> datetime | None:
    """Returns the time of an option. Raises CommandFailed (usage)."""
    from tidegate_core.language.values.instants import as_datetime, parse_instant

    try:
        return None if text is None else as_datetime(parse_instant(text))
    except ValueError as error:
        raise CommandFailed(f"{option}: {text} {error}", Exit.USAGE) from error


def recent_moment_of(option: str, text: str | None) -> datetime | None:
    """Returns the time of an option. A duration such as `12h` means that long ago. Raises CommandFailed (usage)."""
    from datetime import UTC, datetime, timedelta

    from tidegate_core.language.values.durations import parse_duration

    if text is None or not _DURATION.fullmatch(text):
        return moment_of(option, text)
    try:
        return datetime.now(UTC) - timedelta(milliseconds=parse_duration(text))
    except (ValueError, OverflowError) as error:
        raise CommandFailed(f"{option}: {text} {error}", Exit.USAGE) from error


def seconds_of(option: str, text: str) -> float:
    """Returns the seconds of a duration such as `90s` or `5m`; a bare number is seconds. Raises CommandFailed (usage)."""
    from tidegate_core.language.values.durations import parse_duration

    if _NUMBER.fullmatch(text):
        return float(text)
    try:
        return parse_duration(text) / 1000
    except ValueError as error:
        raise CommandFailed(f"{option}: {text} {error}, nor a number of seconds", Exit.USAGE) from error
