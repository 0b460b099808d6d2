"""Result of a simulation, and its hash over canonical JSON, which no machine, locale or zone influences."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_simulator.occurrence_record import Occurrence

FORMAT = 1
"""Version of the document that the hash covers."""


@dataclass(frozen=True, slots=True)
class Report:
    """Result of simulating schedules over a span.

    Attributes:
        begin: Begin of the span, inclusive.
        end: End of the span, exclusive.
        occurrences: Occurrences by nominal instant, then schedule.
        answers: Answers to the requests among the happenings, in order: `<type> <subject>: <status>`.
    """

    begin: Instant
    end: Instant
    occurrences: tuple[Occurrence, ...]
    answers: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "from": format_instant(self.begin),
            "to": format_instant(self.end),
            "occurrences": [each.document() for each in self.occurrences],
            "answers": list(self.answers),
        }

    @property
    def digest(self) -> str:
        """`sha256:` and 64 hex digits of the document as canonical JSON: sorted names, no spaces, ASCII."""
        text = json.dumps(self.document(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"

    def tally(self) -> dict[str, int]:
        """Returns the number of occurrences by result."""
        return dict(sorted(Counter(each.result for each in self.occurrences).items()))
