"""What an actor asks of its driver, and what the driver answers. Values only: tests compare them, logs print them.

An effect goes out as `EffectRequest(token, effect)`; its one answer comes back as `EffectResult(token, result)`. The answer that belongs to
an effect is named in the effect's docstring. A driver never decides: it retries what its port may retry, and answers.
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
    """A named event with fields for logs and metrics (names in `tidegate_telemetry`); no answer, no influence."""

    event: str
    fields: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProveMembership:
    """Proof that the ownership topic partition is ours, by the guard or by a commit probe (DESIGN 3). Answer: `Membership`."""

    topic_partition: int


@dataclass(frozen=True, slots=True)
class Membership:
    """`holds` is False when the group coordinator refused the member for good, None when it could not be known yet."""

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
"""Results that only a store gives that was reached."""


@dataclass(frozen=True, slots=True)
class EffectRequest:
    """An effect with the token under which its answer is awaited; token 0 = no answer is awaited."""

    token: int
    effect: Effect


@dataclass(frozen=True, slots=True)
class EffectResult:
    """What came of the effect with this token."""

    token: int
    result: Result
