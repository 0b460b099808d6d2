"""The flexible window of a time trigger: each occurrence starts at an instant of its own in it (SEMANTICS 1, features US-05).

Thousands of schedules that name the same instant are spread evenly over their window. The offset is a hash of the schedule
and the nominal, so that whoever asks, and whenever, gets the same; the nominal and the data interval stay as they are.
"""

from __future__ import annotations

from tidegate_core.language.constraints.constraint import Hold
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.language.values.shard_hash import hash_of
from tidegate_core.rows.job import Job


def flexible_until(trigger: TimeTrigger, identity: str, nominal: Instant) -> Instant:
    """Returns the instant from which the occurrence may start: its nominal, or one within the window after it."""
    if trigger.flexible is None:
        return nominal
    number = int.from_bytes(hash_of("flexible", identity, str(nominal))[:8], "big")
    return nominal + number % trigger.flexible


def flexible_hold(spec: ScheduleSpec, job: Job, now: Instant) -> Hold | None:
    """Returns what holds an occurrence of a time trigger back until its own instant, or None."""
    if job.trigger != "time" or not isinstance(spec.trigger, TimeTrigger):
        return None
    until = flexible_until(spec.trigger, job.ref, job.nominal)
    if now >= until:
        return None
    return Hold(until, "flexible_window", f"its place in the flexible window is {format_instant(until)}")
