"""What `why` answers: reasons, each with its code, its words, the values that were used, and when it can change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate_core.explain.why.codes import CODES
from tidegate_core.language.constraints.constraint import Compared
from tidegate_core.language.values.instants import Instant


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing to say.

    Attributes:
        code: Of the closed list.
        text: For people, with the values that were used.
        until: The next instant at which it can change; None: only something that happens changes it, or nothing does.
        values: For programs: instants as RFC 3339, durations in milliseconds; `job` or `run` is what it is about.
    """

    code: str
    text: str
    until: Instant | None = None
    values: Mapping[str, Compared] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to one question.

    Attributes:
        about: `schedule flights/nightly`, `job <id>` or `run <id>`.
        at: The instant that was asked about; else when the question was answered.
        local: The same on the trigger's own wall clock, for a question about an instant; a local time that does not exist
            stands here as it was asked.
    """

    about: str
    at: Instant
    reasons: tuple[Reason, ...]
    local: str | None = None

    @property
    def next_change(self) -> Instant | None:
        """The earliest instant at which one of the reasons can change."""
        return earliest(self.reasons)


def further(reasons: Sequence[Reason], what: str, command: str) -> list[Reason]:
    """Returns one reason for each code, that says how many things have it: of very many the first few are told one by one.

    Args:
        reasons: One of each thing that is not told by itself.
        what: They are, such as `jobs`.
        command: Shows them one by one.
    """
    counts = Counter(each.code for each in reasons)
    return [
        Reason(
            code,
            f"{count} further {what}: {CODES[code]}; {command} shows each",
            earliest([each for each in reasons if each.code == code]),
            {what: count},
        )
        for code, count in counts.items()
    ]


def earliest(reasons: Sequence[Reason]) -> Instant | None:
    return min((each.until for each in reasons if each.until is not None), default=None)
