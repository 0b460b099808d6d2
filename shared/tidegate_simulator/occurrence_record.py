"""What became of one occurrence, and what it waited for on its way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate_core.language.values.instants import Instant, format_instant

BEHIND, SUSPENDED = "behind", "suspended"
"""Codes of `tidegate why` for what no constraint says: an earlier job of the schedule is before it, or the schedule is suspended."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A span in which a satisfied job was held back.

    Attributes:
        begin: When its constraints were looked at.
        end: When that changed; None: it still waits at the end of the simulation.
        codes: Reason codes of all that stood in its way, as the deciding code gave them, or `behind` or `suspended`.
        reason: The same for people.
        verdicts: Each of them with the values that were compared, and `until`, the instant at which it can change.
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
    """One thing that should happen, and what became of it.

    Attributes:
        schedule: `<namespace>/<name>`.
        trigger: `time`, `events` or `manual`.
        nominal: When it should happen; of events the instant of their satisfaction.
        local: The same on the schedule's own wall clock, with weekday and offset: of its trigger, or of a composite's time leaves.
        zone: Of that clock.
        result: The run's state (`succeeded`, `failed`, `running` ...), `delivered` or `expired` of messages,
            `<disposition>/<reason>` of the ledger, or the job's state where it is still on its way at the end.
        correlation: The value that evidence was paired by.
        covered: Instants that it stands for, 1 for its own only.
        covered_from: The first of them.
        first_event_at: When the first event of its evidence came.
        made_at: When its trigger was satisfied and the job was there.
        waits: In order.
        admitted_at, started_at, ended_at: Of its run.
        attempts: Of its run; 0 without one.
        detail: What the ledger says beside the reason, such as what it was merged into.
        missing: What had not come of its evidence.
        forced: What its pending time-out had it go in spite of, in words (`pending_timeout_action: force`).
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
        """Returns it as JSON; what is absent has no field."""
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
