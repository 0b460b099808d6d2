"""Audit of a target: which occurrences must be in the ledger, which topic has them, and why a due instant left no trace.

The audit of a shard and `why` ask here. It reads facts alone and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from tidegate_core.explain.why.reason import Reason
from tidegate_core.explain.why.schedule_reasons import being_made, unserved
from tidegate_core.explain.why.schedule_snapshot import Facts
from tidegate_core.language.constraints.constraint import Compared
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.shard.jobs import LEDGER_DAYS

LEDGER_KEPT_MS: Final = LEDGER_DAYS * 24 * 3_600_000


class TargetAudit(Protocol):
    """Audit of one kind of target."""

    def expects_ledger(self, spec: ScheduleSpec) -> bool:
        """Whether each instant of the schedule's trigger has a job or an entry in the ledger."""
        ...

    def topic(self, spec: ScheduleSpec) -> str | None:
        """Returns the topic on which each occurrence is found; None: it is on no topic."""
        ...

    def why_no_trace(self, facts: Facts, instant: Instant) -> list[Reason]:
        """Returns why an instant that was due has neither an entry nor a job."""
        ...


class ProgramAudit:
    """Programs: each occurrence is a job first, and then an entry in the ledger."""

    def expects_ledger(self, spec: ScheduleSpec) -> bool:
        return isinstance(spec.trigger, TimeTrigger)

    def topic(self, spec: ScheduleSpec) -> str | None:
        return None

    def why_no_trace(self, facts: Facts, instant: Instant) -> list[Reason]:
        state = facts.state
        if state.next_nominal is not None and instant >= (state.gathered_from or state.next_nominal):
            return unserved(facts) or [being_made(instant if state.next_nominal_is_bound else state.next_nominal)]
        if instant < state.activated_at:
            since = format_instant(state.activated_at)
            text = f"an update or a resume had it count from {since} on, and nothing was made of this instant before"
            return [Reason("counts_from_later", text, None, {"activated_at": since})]
        if instant + LEDGER_KEPT_MS < facts.now:
            text = f"entries of the ledger are kept {LEDGER_DAYS} days"
            return [Reason("forgotten", text, None, {"days": LEDGER_DAYS})]
        return [Reason("not_known", "it was due, and no stored row says how it ended")]


class MessageAudit:
    """Messages: a fire writes nothing, so intervals and tallies are compared with the topic instead."""

    def expects_ledger(self, spec: ScheduleSpec) -> bool:
        return False

    def topic(self, spec: ScheduleSpec) -> str | None:
        return spec.message.topic

    def why_no_trace(self, facts: Facts, instant: Instant) -> list[Reason]:
        outage = next((each for each in facts.outages if instant in each), None)
        text = "a recurring message was due; nothing is written when it is sent"
        values: dict[str, Compared] = {"nominal": format_instant(instant)}
        if outage is not None:
            values["outage_from"], values["outage_to"] = format_instant(outage.begin), format_instant(outage.end)
            text += (
                f"; nobody served it from {values['outage_from']} to {values['outage_to']}, and catchup says what then"
            )
        return [Reason("message_due", text, None, values)]


AUDITS_BY_KIND: Final[Mapping[str, TargetAudit]] = {"program": ProgramAudit(), "message": MessageAudit()}
"""By the field `type` of a target."""


def audit_of(spec: ScheduleSpec) -> TargetAudit:
    """Returns the audit of a schedule's target."""
    return AUDITS_BY_KIND[spec.target.type]
