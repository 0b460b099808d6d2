"""Parses stored definitions. During an upgrade a newer release may have stored definitions that this release cannot read.

The reads call it. One unreadable definition must not hide the others.
"""

from __future__ import annotations

from pydantic import ValidationError

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.values.validation_errors import problems_of
from tidegate_core.shard.schedule_state import parsed


class DefinitionUnreadable(Exception):
    """This release cannot read a definition; the message names the field and what to do."""


def spec_of(text: str) -> ScheduleSpec:
    """Returns the spec of a stored definition. Raises DefinitionUnreadable."""
    try:
        return parsed(text)
    except ValidationError as refusal:
        raise DefinitionUnreadable(unreadable(refusal)) from refusal


def spec_or_none(text: str) -> ScheduleSpec | None:
    """Returns the spec of a stored definition, or None if it cannot be read."""
    try:
        return parsed(text)
    except ValidationError:
        return None


def is_of_definition(refusal: ValidationError) -> bool:
    """Whether the error is about a definition and not about another document."""
    return refusal.title == ScheduleSpec.__name__


def unreadable(refusal: ValidationError) -> str:
    """Returns the message for an unreadable definition."""
    first = problems_of(refusal, ScheduleSpec)[0]
    what = f"{first.field}: {first.problem}" if first.field else first.problem
    way_out = "a newer release wrote it: use an API process of that release, or update this one"
    return f"this release cannot read the definition ({what}); {way_out}"
