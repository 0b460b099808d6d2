"""What is wrong with an input, in parts: the field, the problem, and what to do. The API, receipts and the CLI show the same.

Nothing here knows pydantic's models; `explain` turns its errors into these values.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic_core import PydanticCustomError

MAX_PROBLEMS = 50
"""Problems told at once: more than anybody reads, and a receipt stays far below Kafka's record limit."""

MAX_SHOWN = 64
"""Characters of a wrong value or name that a problem repeats."""

MAX_CHOICES = 24
"""Words that a hint lists; a schedule has 20 fields."""

TOO_LARGE = "is too large"
"""How each problem begins that makes an input too large as a whole (413), wherever it is noticed."""

ErrorClass: TypeAlias = Literal["invalid", "unparsable", "too_large", "forbidden"]
"""`invalid`: read, but against the rules. `unparsable`: cannot be read. `too_large`: not even looked at. `forbidden`: not for
whoever writes there."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to correct.

    Attributes:
        field: Path in the document, such as `trigger.triggers[0].count`; empty for the document as a whole.
        problem: What is wrong, as a clause about the field.
        hint: What to write instead, where that is known.
    """

    field: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.field}: {self.problem}" if self.field else self.problem
        return f"{text}; {self.hint}" if self.hint else text


class InvalidInput(ValueError):
    """The user has to correct the input; trying again changes nothing.

    Attributes:
        problems: At least one, at most `MAX_PROBLEMS`.
        error_class: Decides the HTTP status and the class on a dead letter.
    """

    def __init__(self, problems: Iterable[Problem], error_class: ErrorClass = "invalid") -> None:
        self.problems = tuple(problems)[:MAX_PROBLEMS]
        self.error_class: ErrorClass = error_class
        super().__init__("; ".join(str(problem) for problem in self.problems))

    @property
    def http_status(self) -> int:
        return {"too_large": 413, "forbidden": 403}.get(self.error_class, 400)


class RefusedRecord(InvalidInput):
    """A record of a topic that is not accepted, with all of it that could be read, so that its sender can be told.

    Attributes:
        request_id: The record's own id; without one there is nobody to answer, and the record is only dead-lettered.
        type: Such as `schedule.apply`, as it was written.
        namespace: As it was written; it may itself be what is wrong.
        name: As it was written.
        key: The message's key, as it was written.
    """

    def __init__(
        self,
        problems: Iterable[Problem],
        error_class: ErrorClass = "invalid",
        *,
        request_id: str | None = None,
        type: str | None = None,  # noqa: A002 - the field's public name
        namespace: str | None = None,
        name: str | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(problems, error_class)
        self.request_id = request_id
        self.type = type
        self.namespace = namespace
        self.name = name
        self.key = key


def internal_problem(error: Exception) -> Problem:
    """Returns the problem of a fault of ours: who sent the record is told, and nothing behind it waits for a corrected version."""
    problem = f"could not be judged: internal error {type(error).__name__}: {shortened(str(error))}"
    return Problem("", problem, "tell us; without what is unusual in it, it may be taken")


REFUSED = "tidegate_refused"
"""The error type of `refused`; `explain` takes such an error's parts as they are."""


def refused(problem: str, *, hint: str = "", field: str = "", planned: bool = False) -> PydanticCustomError:
    """Returns an error for validators to raise.

    Args:
        problem: What is wrong, as a clause about the field.
        hint: What to write instead.
        field: Path below the place where pydantic notices it, for rules that look at several fields.
        planned: The input means something that a later version does: what is said about its other fields is noise.
    """
    return PydanticCustomError(
        REFUSED, "{problem}", {"problem": problem, "hint": hint, "field": field, "planned": planned}
    )


def shortened(text: str) -> str:
    """Returns as much of a sender's text as a problem repeats."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def both_ends(text: str, most: int) -> str:
    """Returns at most so many characters of an error's text: its beginning says what failed, and at its end stands the cause."""
    if len(text) <= most:
        return text
    head = most // 4
    return f"{text[:head]} … {text[head + 3 - most :]}"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Returns the known word that was probably meant, if one is close enough to be worth showing."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(word.casefold()[:128], by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns a hint: the nearest known word, else all of them while they are few, else nothing."""
    choices = list(known)
    guess = nearest(word, choices)
    if guess is not None:
        return f"did you mean {guess}?"
    return f"one of: {', '.join(choices)}" if len(choices) <= MAX_CHOICES else ""
