"""Record of one occurrence: its outcome, and its waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate_core.language.values.instants import Instant, format_instant

BEHIND, SUSPENDED = "behind", "suspended"
"""Codes of `tidegate why` for blockers that are no constraint: an earlier job of the schedule, or the schedule's
suspension."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A span in which a satisfied job was held back.

    Attributes:
        begin: When its constraints were checked.
        end: When that changed; None: it still waits at the end of the simulation.
        codes: Reason codes of all blockers, as the deciding code gave them, or `behind` or `suspended`.
        reason: Explanation in words.
        verdicts: All blockers with the compared values, and `until`, the instant at which each can change.
    """

    begin: Instant
    end: Instant | None
    codes: tuple[str, ...]
    reason: str
    verdicts: tuple[dict[str, Any], ...] = ()

    def document(self) -> dict[str, Any]:
        return {
            "from": format_instant(self.begin),
            "to": None if self.end is None else format_instant(self.end),
            "codes": list(self.codes),
            "reason": self.reason,
            "verdicts": list(self.verdicts),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One occurrence and its outcome.

    Attributes:
        schedule: `<namespace>/<name>`.
        trigger: `time`, `events` or `manual`.
        nominal: When it should happen; for events the instant at which the trigger was satisfied.
        local: The same on the schedule's own wall clock, with weekday and offset: that of its trigger, or of a
            composite's time leaves.
        zone: Zone of that clock.
        result: State of the run (`succeeded`, `failed`, `running` ...), `delivered` or `expired` for messages,
            `<disposition>/<reason>` of the ledger, or the job's state if it is still open at the end.
        correlation: Value by which evidence was paired.
        covered: Number of instants that it stands for; 1 for its own only.
        covered_from: First of these instants.
        first_event_at: When the first event of its evidence came.
        made_at: When its trigger was satisfied and the job was created.
        waits: Waits in order.
        admitted_at, started_at, ended_at: Instants of its run.
        attempts: Attempts of its run; 0 without one.
        detail: Detail of the ledger in addition to the reason, such as the job that it was merged into.
        missing: Evidence that had not come.
        forced: Constraints that were not met when its pending time-out admitted it, in words (`pending_timeout_action:
            force`).
    """

    schedule: str
    trigger: str
    nominal: Instant
    local: str
    zone: str
    result: str
    correlation: str | None = None
    covered: int = 1
    covered_from: Instant | None = None
    first_event_at: Instant | None = None
    made_at: Instant | None = None
    waits: tuple[Wait, ...] = ()
    admitted_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    attempts: int = 0
    detail: str | None = None
    missing: tuple[str, ...] = ()
    forced: str | None = None

    def document(self) -> dict[str, Any]:
        """Returns the record as JSON; absent values have no field."""
        fields: dict[str, Any] = {
            "schedule": self.schedule,
            "trigger": self.trigger,
            "nominal": format_instant(self.nominal),
            "local": self.local,
            "zone": self.zone,
            "result": self.result,
            "correlation": self.correlation,
            "covered": self.covered if self.covered > 1 else None,
            "covered_from": _text(self.covered_from) if self.covered > 1 else None,
            "first_event_at": _text(self.first_event_at),
            "made_at": _text(self.made_at),
            "waits": [wait.document() for wait in self.waits],
            "admitted_at": _text(self.admitted_at),
            "started_at": _text(self.started_at),
            "ended_at": _text(self.ended_at),
            "attempts": self.attempts or None,
            "detail": self.detail,
            "missing": list(self.missing),
            "forced": self.forced,
        }
        return {name: value for name, value in fields.items() if value not in (None, [])}


def _text(instant: Instant | None) -> str | None:
    return None if instant is None else format_instant(instant)
