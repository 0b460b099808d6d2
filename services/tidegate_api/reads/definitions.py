"""Stored definitions: while an upgrade is under way some may be of a newer release, with a grammar that this one cannot read.

Called by the reads, which decide nothing: one that cannot be read is no reason to show nothing of the others.
"""

from __future__ import annotations

from pydantic import ValidationError

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.values.validation_errors import problems_of
from tidegate_core.shard.schedule_state import parsed


class DefinitionUnreadable(Exception):
    """This release cannot read it; the message says what of it, and what to do."""


def spec_of(text: str) -> ScheduleSpec:
    """Returns the spec of a stored definition. Raises DefinitionUnreadable."""
    try:
        return parsed(text)
    except ValidationError as refusal:
        raise DefinitionUnreadable(unreadable(refusal)) from refusal


def spec_or_none(text: str) -> ScheduleSpec | None:
    """The same for who does without where it cannot be read."""
    try:
        return parsed(text)
    except ValidationError:
        return None


def is_of_definition(refusal: ValidationError) -> bool:
    """Whether it was a definition that could not be read, and not something else."""
    return refusal.title == ScheduleSpec.__name__


def unreadable(refusal: ValidationError) -> str:
    """Returns what is said of a definition that cannot be read."""
    first = problems_of(refusal, ScheduleSpec)[0]
    what = f"{first.field}: {first.problem}" if first.field else first.problem
    way_out = "a newer release wrote it, so ask an API process of that release, or update this one"
    return f"this release cannot read the definition ({what}); {way_out}"
