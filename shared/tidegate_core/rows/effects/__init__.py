"""What an actor asks of its driver, and what the driver answers. Values only: tests compare them, logs print them.

An effect goes out as `Ask(token, effect)`; its one answer comes back as `Answer(token, result)`. The answer that belongs to
an effect is named in the effect's docstring. A driver never decides: it retries what its port may retry, and answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from tidegate_core.rows.effects.actor_status import Membership, Notice, ProveMembership
from tidegate_core.rows.effects.bus import ManyProduced, NotProduced, Outcome, Poke, Produce, Produced, ProduceMany
from tidegate_core.rows.effects.launcher import (
    DUPLICATE,
    Cancel,
    Gone,
    Inspect,
    Inspected,
    LaunchOrder,
    LoadSampled,
    LookedUp,
    Lookup,
    NotSubmitted,
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
    StartReading,
    StopReading,
    Taken,
)
from tidegate_core.rows.store_operations import Page

__all__ = [
    "DUPLICATE",
    "STORE_ANSWERS",
    "Answer",
    "Ask",
    "Cancel",
    "Commit",
    "Committed",
    "Drained",
    "Effect",
    "EndOffsets",
    "FindGaps",
    "Gaps",
    "Gone",
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
    "Poke",
    "Produce",
    "ProduceMany",
    "Produced",
    "ProveMembership",
    "Read",
    "ReadEndOffsets",
    "ReadRange",
    "Refused",
    "Result",
    "SampleLoad",
    "StartReading",
    "StopReading",
    "Submit",
    "SubmitFailed",
    "Submitted",
    "Taken",
    "Unavailable",
    "Watch",
    "Write",
    "Written",
]

Effect: TypeAlias = (
    Read
    | ReadRange
    | Commit
    | Write
    | ReadEndOffsets
    | FindGaps
    | Produce
    | ProduceMany
    | Poke
    | Submit
    | Lookup
    | Watch
    | Cancel
    | Inspect
    | SampleLoad
    | StartReading
    | StopReading
    | Taken
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
    | Gone
    | Inspected
    | LoadSampled
    | Membership
)


STORE_ANSWERS: Final = (Items, Page, Committed, Refused, Invalid, Written)
"""Results that only a store gives that was reached."""


@dataclass(frozen=True, slots=True)
class Ask:
    """An effect with the token under which its answer is awaited; token 0 = no answer is awaited."""

    token: int
    effect: Effect


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of the effect with this token."""

    token: int
    result: Result
