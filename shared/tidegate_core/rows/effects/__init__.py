"""Effects that an actor requests from its driver, and their results. All are values: tests compare them, logs print
them.

An effect leaves as `EffectRequest(token, effect)`; its one result returns as `EffectResult(token, result)`. The
docstring of an effect names its results. A driver decides nothing: it retries as its port allows, then returns a
result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tidegate_core.rows.effects.bus import ManyProduced, NotProduced, Outcome, Produce, Produced, ProduceMany, WakeUp
from tidegate_core.rows.effects.launcher import (
    DUPLICATE,
    Cancel,
    Inspect,
    Inspected,
    LaunchOrder,
    LoadSampled,
    LookedUp,
    Lookup,
    NotSubmitted,
    ProgramEnded,
    SampleLoad,
    Submit,
    SubmitFailed,
    Submitted,
    Watch,
)
from tidegate_core.rows.effects.store import (
    Commit,
    Committed,
    Invalid,
    Items,
    Read,
    ReadRange,
    Refused,
    Unavailable,
    Write,
    Written,
)
from tidegate_core.rows.effects.topics import (
    Drained,
    EndOffsets,
    FindGaps,
    Gaps,
    ReadEndOffsets,
    ReturnCredits,
    StartReading,
    StopReading,
)
from tidegate_core.rows.store_operations import Page, Value

__all__ = [
    "DUPLICATE",
    "STORE_ANSWERS",
    "Cancel",
    "Commit",
    "Committed",
    "Drained",
    "Effect",
    "EffectRequest",
    "EffectResult",
    "EndOffsets",
    "FindGaps",
    "Gaps",
    "Inspect",
    "Inspected",
    "Invalid",
    "Items",
    "LaunchOrder",
    "LoadSampled",
    "LookedUp",
    "Lookup",
    "ManyProduced",
    "Membership",
    "NotProduced",
    "NotSubmitted",
    "Notice",
    "Outcome",
    "Produce",
    "ProduceMany",
    "Produced",
    "ProgramEnded",
    "ProveMembership",
    "Read",
    "ReadEndOffsets",
    "ReadRange",
    "Refused",
    "Result",
    "ReturnCredits",
    "SampleLoad",
    "StartReading",
    "StopReading",
    "Submit",
    "SubmitFailed",
    "Submitted",
    "Unavailable",
    "WakeUp",
    "Watch",
    "Write",
    "Written",
]


@dataclass(frozen=True, slots=True)
class Notice:
    """A named event with fields for logs and metrics; `tidegate_telemetry` lists the names. No result, no influence."""

    event: str
    fields: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProveMembership:
    """Proves that the group still assigns the ownership topic partition to this node. Result: `Membership`.

    The driver uses the membership lease, or a probe commit when the lease has lapsed.
    """

    topic_partition: int


@dataclass(frozen=True, slots=True)
class Membership:
    """Result of `ProveMembership`. `holds` is False when the group refused the member for good, None when that is
    unknown.
    """

    holds: bool | None


Effect: TypeAlias = (
    Read
    | ReadRange
    | Commit
    | Write
    | ReadEndOffsets
    | FindGaps
    | Produce
    | ProduceMany
    | WakeUp
    | Submit
    | Lookup
    | Watch
    | Cancel
    | Inspect
    | SampleLoad
    | StartReading
    | StopReading
    | ReturnCredits
    | Drained
    | Notice
    | ProveMembership
)
Result: TypeAlias = (
    Items
    | Page
    | Committed
    | Refused
    | Invalid
    | Written
    | Unavailable
    | EndOffsets
    | Gaps
    | Produced
    | NotProduced
    | ManyProduced
    | Submitted
    | SubmitFailed
    | NotSubmitted
    | LookedUp
    | ProgramEnded
    | Inspected
    | LoadSampled
    | Membership
)


STORE_ANSWERS: Final = (Items, Page, Committed, Refused, Invalid, Written)
"""Results that only a reachable store gives."""


@dataclass(frozen=True, slots=True)
class EffectRequest:
    """An effect with the token of its result; token 0 expects no result."""

    token: int
    effect: Effect


@dataclass(frozen=True, slots=True)
class EffectResult:
    """The result of the effect with this token."""

    token: int
    result: Result
