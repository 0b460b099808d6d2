"""What a client may expect of a message that it cancelled or replaced, from the answers alone (I1 of requests, I7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.support.checkers.messages import Sent


@dataclass(frozen=True, slots=True)
class Answer:
    """A request's first receipt.

    Attributes:
        appended_at: By the broker, ms since the epoch.
    """

    status: str
    appended_at: int


@dataclass(frozen=True, slots=True)
class SecondThought:
    """A cancel or a replacement of a message.

    Attributes:
        request_id: Its own.
        acknowledged: Whether the broker has it; where nobody knows, everything may have happened.
        answer: None while there is none.
    """

    request_id: str
    acknowledged: bool
    answer: Answer | None


def after_cancel(number: int, nominal: int, cancel: SecondThought, create: Answer | None) -> Sent:
    """Returns what must become of a message whose cancel was sent.

    Args:
        number: Of the message.
        nominal: Its time, ms since the epoch.
        cancel: What was sent.
        create: Answer of the message's own request, where it has one: its cancel may be read before it.
    """
    if cancel.answer is None:
        return _unanswered(number, nominal, cancel)
    return Sent(number, nominal, _after(cancel.answer, create), cancel_answered_at=cancel.answer.appended_at)


def _after(answer: Answer, create: Answer | None) -> Literal["deliver", "never"]:
    match answer.status:
        case "cancelled":
            return "never"
        case "not_found" if create is not None and create.status == "cancelled":
            return "never"
    # Whatever else was answered says that the cancel did nothing: `too_late`, that it is there, or will be.
    return "deliver"


def after_replacement(number: int, nominal: int, replacement: SecondThought) -> Sent:
    """Returns what must become of a message after another one was sent under its key; that one is judged like any other."""
    if replacement.answer is None:
        return _unanswered(number, nominal, replacement)
    if replacement.answer.status == "accepted":
        return Sent(number, nominal, "may", not_after=replacement.answer.appended_at)
    return Sent(number, nominal)


def _unanswered(number: int, nominal: int, thought: SecondThought) -> Sent:
    return Sent(number, nominal, "may", unanswered=thought.request_id if thought.acknowledged else None)
