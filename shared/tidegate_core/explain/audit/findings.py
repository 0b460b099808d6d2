"""Findings of an audit: counts, differences, items that it could not judge, and shards that have not reached the end of the window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from tidegate_core.language.values.instants import format_instant

Kind: TypeAlias = Literal[
    "missing",
    "doubled",
    "unexpected",
    "miscounted",
    "entry_gone",
    "entry_differs",
    "place_gone",
    "run_gone",
    "end_gone",
    "generation_gone",
    "state_gone",
    "position_gone",
    "message_lost",
    "message_unknown",
    "tally_differs",
    "answer_differs",
]
KINDS: Final[dict[Kind, str]] = {
    "missing": "was due, and no row says how it ended",
    "doubled": "has more than one entry",
    "unexpected": "has an entry, and was not due",
    "miscounted": "claims another number of instants than it spans",
    "entry_gone": "is known to have ended, and has no entry in the ledger",
    "entry_differs": "has an entry in the ledger that differs from its run",
    "place_gone": "has an entry in the ledger that is not found by its id",
    "run_gone": "was launched, and its run is not in the history",
    "end_gone": "has ended, and is not in the list of its shard's ended runs",
    "generation_gone": "is not stored, so its due instants cannot be recomputed",
    "state_gone": "has definitions, jobs, runs or entries, and no state: it does not fire",
    "position_gone": "is served, and its delivery position is not stored",
    "message_lost": "was accepted, and will never be delivered",
    "message_unknown": "was delivered, and no row says that it should be",
    "tally_differs": "differs from the sum of the message rows",
    "answer_differs": "ended in another way than its answer says",
}


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """Difference between the expected and the found.

    Attributes:
        subject: `<ns>/<name>` of the schedule, or `shard <n>`.
        occurrence: Instant of the occurrence, or the id that names it.
    """

    subject: str
    occurrence: str
    kind: Kind
    expected: str
    found: str

    @property
    def identity(self) -> tuple[str, str, str]:
        """Key by which a second audit finds the same difference again."""
        return (self.kind, self.subject, self.occurrence)


@dataclass(frozen=True, slots=True, order=True)
class Unjudged:
    """Number of items that an audit does not judge, and the reason.

    Attributes:
        why: Text that follows "because".
        is_grave: Whether rows or records are gone that the audit needs. Otherwise it never judges such items.
    """

    why: str
    subject: str
    count: int = 1
    is_grave: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Behind:
    """Shard that has not reached the end of the window: occurrences that are due by then may still be made."""

    shard: int
    subject: str
    stands_at: int


@dataclass(slots=True)
class Findings:
    """Findings about one shard, or about all.

    Attributes:
        counts: Occurrences by outcome; `pending` counts the open ones.
        differences: Differences in the order in which they were found.
    """

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    unjudged: list[Unjudged] = field(default_factory=list)
    behind: list[Behind] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        self.counts.update(other.counts)
        self.differences += other.differences
        self.unjudged += other.unjudged
        self.behind += other.behind

    def differs(self, kind: Kind, subject: str, occurrence: str | int, expected: str, found: str) -> None:
        text = format_instant(occurrence) if isinstance(occurrence, int) else occurrence
        self.differences.append(Difference(subject, text, kind, expected, found))

    def confirmed_by(self, again: Findings) -> Findings:
        """Returns the findings of a second audit, with only the differences that the first audit found too.

        An audit reads no snapshot, so a row may change between two reads. It does not do so twice in the same way.
        """
        seen = {each.identity for each in self.differences}
        kept = [each for each in again.differences if each.identity in seen]
        return Findings(again.counts, kept, again.unjudged, again.behind)


def summed(unjudged: Iterable[Unjudged]) -> list[tuple[str, int, str]]:
    """Returns reason, count and an example for each reason why items were not judged."""
    found: dict[str, tuple[int, str]] = {}
    for each in unjudged:
        count, example = found.get(each.why, (0, each.subject))
        found[each.why] = (count + each.count, example)
    return [(why, count, example) for why, (count, example) in sorted(found.items())]
