"""Problems of an input: the field, the problem and a hint. API, receipts and command line show the same three parts.

This module knows no pydantic models; `validation_errors.problems_of` turns pydantic's errors into problems.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic_core import PydanticCustomError

MAX_PROBLEMS = 50
"""Problems in one answer. A receipt with so many stays far below Kafka's record limit."""

MAX_SHOWN = 64
"""Characters of a wrong value or name that a problem repeats."""

MAX_CHOICES = 24
"""Words that a hint lists; a schedule has 20 fields."""

TOO_LARGE = "is too large"
"""Beginning of each problem that makes an input too large as a whole (413)."""

ErrorClass: TypeAlias = Literal["invalid", "unparsable", "too_large", "forbidden"]
"""`invalid`: readable, but against a rule. `unparsable`: unreadable. `too_large`: refused unread. `forbidden`: the sender or
topic may not ask for it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem that the user must correct.

    Attributes:
        field: Path in the document, such as `trigger.triggers[0].count`; empty for the document as a whole.
        problem: Clause about the field that says what is wrong.
        hint: Correction, if known.
    """

    field: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.field}: {self.problem}" if self.field else self.problem
        return f"{text}; {self.hint}" if self.hint else text


class InvalidInput(ValueError):
    """The user must correct the input; a retry changes nothing.

    Attributes:
        problems: Problems of the input, from 1 to `MAX_PROBLEMS`.
        error_class: Class that decides the HTTP status and the class of a dead letter.
    """

    def __init__(self, problems: Iterable[Problem], error_class: ErrorClass = "invalid") -> None:
        self.problems = tuple(problems)[:MAX_PROBLEMS]
        self.error_class: ErrorClass = error_class
        super().__init__("; ".join(str(problem) for problem in self.problems))

    @property
    def http_status(self) -> int:
        return {"too_large": 413, "forbidden": 403}.get(self.error_class, 400)


class RefusedRecord(InvalidInput):
    """A refused record of a topic, with the fields that could be read, so that its sender can get an answer.

    Attributes:
        request_id: Id of the record. Without an id the sender gets no answer; the record only becomes a dead letter.
        type: Type as written, such as `schedule.apply`.
        namespace: Namespace as written; it may itself be wrong.
        name: Name as written.
        key: Key of the message as written.
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
    """Returns the problem for a bug in tidegate itself. The sender gets an answer, and later records do not wait for a fix."""
    problem = f"could not be judged: internal error {type(error).__name__}: {shortened(str(error))}"
    return Problem("", problem, "report this error; without its unusual part, tidegate may accept the record")


REFUSED = "tidegate_refused"
"""Error type of `refused`; `validation_errors` copies the parts of such an error."""


def refused(problem: str, *, hint: str = "", field: str = "", planned: bool = False) -> PydanticCustomError:
    """Returns an error that a validator can raise.

    Args:
        problem: Clause about the field that says what is wrong.
        hint: Correction.
        field: Path below the validated place, for rules over several fields.
        planned: Whether the input means a feature of a later version. Problems of its other fields are then not reported.
    """
    return PydanticCustomError(
        REFUSED, "{problem}", {"problem": problem, "hint": hint, "field": field, "planned": planned}
    )


def shortened(text: str) -> str:
    """Returns the beginning of a sender's text, cut at `MAX_SHOWN` characters."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def both_ends(text: str, most: int) -> str:
    """Returns the beginning and the end of an error's text, `most` characters in all: the beginning says what failed, the end why."""
    if len(text) <= most:
        return text
    head = most // 4
    return f"{text[:head]} … {text[head + 3 - most :]}"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Returns the known word that the user probably meant, or None if none is similar enough."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(word.casefold()[:128], by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns a hint: the most similar known word; without one, all known words if they are few; otherwise no hint."""
    choices = list(known)
    guess = nearest(word, choices)
    if guess is not None:
        return f"did you mean {guess}?"
    return f"one of: {', '.join(choices)}" if len(choices) <= MAX_CHOICES else ""
