"""What a later version does. It is refused by name, so that nobody mistakes it for a typing error or waits in vain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROOFS = "0.2"
"""The proofs: audit of what was delivered."""
LANGUAGE = "0.3"
"""The scheduling language: dialects, composites, catch-up, overlap policies, priorities, retries, suspend modes."""
OPERATIONS = "0.4"
"""Chaos, growth while running, audit, dead-letter replay, authentication of users."""
PLATFORM = "0.5"
"""Everything later: shared objects, quotas, applications, workflows, wide controls."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A word of the language that this version does not speak yet.

    Attributes:
        version: The release that does; empty: this one does, in another kind of document.
        hint: What to do until then.
    """

    version: str
    hint: str = ""

    @property
    def problem(self) -> str:
        return f"is planned for {self.version}" if self.version else "does not belong here"


@dataclass(frozen=True, slots=True, eq=False)
class PlannedKinds:
    """Annotation of a discriminated union: kinds that a later version adds to it.

    Each is equal to itself only: typing hashes the annotations of what may be absent, and a mapping has no hash.
    """

    kinds: Mapping[str, Planned]


def planned(version: str, *names: str, hint: str = "") -> dict[str, Planned]:
    """Returns one table entry per name: tables of planned fields, kinds and values are made of these."""
    return {name: Planned(version, hint) for name in names}
