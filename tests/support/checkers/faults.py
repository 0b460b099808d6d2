"""What a judge found wrong, as values that tests compare and people read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "lost",
    "extra",
    "doubled",
    "incomplete",
    "early",
    "wrong_input",
    "miscounted",
    "overlap",
    "repeated",
    "stale",
    "wrong_id",
    "unguarded",
    "unanswered",
    "stuck",
    "audit",
    "unknown_fate",
]
"""`lost`: expected and did not happen. `extra`: happened and was not expected. `doubled`: a program started more than once
for an occurrence. `incomplete`: it started and never ended. `wrong_input`: the manifest or upstream run is not the right one.
`miscounted`: an event counted twice, or not, or a trigger fired below its count. `repeated`: a message more often than I8
allows. `stale`: delivered although it was cancelled or replaced. `wrong_id`: ids not stable, or shared. `unguarded`: something
irreversible was done while membership could not be proven. `unanswered`: a request that the broker has got no receipt.
`stuck`: a cluster did not recover from a fault, or did not come to rest after all of them. `audit`: `tidegate audit`
finds a difference in the store, or cannot say."""
SHOWN_MAX = 40


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing that must not have happened."""

    kind: Kind
    what: str


def report(faults: Sequence[Fault]) -> str:
    """Returns the faults as text, the most telling kinds whole and very long lists cut."""
    lines = [f"{fault.kind}: {fault.what}" for fault in sorted(faults)[:SHOWN_MAX]]
    more = len(faults) - len(lines)
    return "\n".join([f"{len(faults)} faults", *lines, *([f"... and {more} more"] if more else [])])
