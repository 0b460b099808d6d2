"""I1 for event triggers: all that was counted comes to an occurrence, or is open, or was discarded by a request.

A satisfied trigger has exactly one entry in the ledger, whatever has become of it; an entry has its evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.simulation.checks.request_history import stood_still
from tests.simulation.users.schedule_definitions import NAMESPACE, needed_of
from tests.simulation.users.tick_schedules import leaves_of_time
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.shard.events.evidence_log import FORGET

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case, Entry
    from tests.simulation.users.schedule_users import Life
    from tidegate_core.rows.ledger import LedgerRow

NOT_IN_TIME = frozenset({"trigger_timeout", "evidence_expired"})
"""Reasons of evidence that did not become a job."""
OPEN_INSTANCES = "open_instances"
"""Reason of a tick that found as many instances open as may be."""
NOTHING_NEW = ("skipped", "nothing_new")
"""The entry of a reminder that found nothing."""
WITHOUT_ENOUGH = NOT_IN_TIME | {"upstream_deleted"}


def check_evidence(case: Case) -> Iterator[str]:
    for life in case.lives:
        if life.definition.is_timed:
            continue
        # What is made with too little when `at_least_every` asks for it is for `reminders` to judge.
        counted = case.entries_of.get(life.name, {})
        still_open = {evidence.id for evidence in case.open_evidence.get(life.name, [])}
        for evidence, entries in counted.items():
            yield from _check_entries(case, life, evidence, entries)
            if case.world.at_rest:
                yield from _check_fate(case, life, evidence, entries, is_open=evidence in still_open)
        for row in case.rows_of.get(life.name, []):
            # Of ticks that met nothing, and that one decision has walked together, or that opened nothing, the ledger alone speaks.
            in_vain = row.reason in NOT_IN_TIME | {OPEN_INSTANCES} and bool(leaves_of_time(life.definition))
            may_be_without = in_vain or may_be_empty(case.shape(life, row.version).trigger, row)
            if row.trigger == "events" and row.job_id not in counted and not may_be_without:
                yield f"I1: {row.job_id} of {life.name} is {row.disposition}/{row.reason} without any evidence"


def _check_entries(case: Case, life: Life, evidence: str, entries: list[Entry]) -> Iterator[str]:
    """What may be in one piece of evidence together."""
    trigger = case.trigger_of(life, evidence)
    if trigger["type"] == "run_status" and len(entries) != 1:
        yield f"I3: {evidence} of {life.name} answers {len(entries)} runs: {entries}"
    if trigger.get("take") == "exactly_n" and len({entry["key"] for entry in entries}) > trigger["count"]:
        yield f"I3: {evidence} of {life.name} has more than {trigger['count']} entries: {entries}"
    if trigger.get("correlate"):  # Else a job that waits takes what comes.
        first, last = min(entry["at"] for entry in entries), max(entry["at"] for entry in entries)
        apart = last - first
        if apart - stood_still(case.steps(life), first, last) >= parse_duration(trigger["timeout"]):
            yield f"I3: {evidence} of {life.name} pairs what came {apart} ms apart, its time-out is {trigger['timeout']}"


def _check_fate(case: Case, life: Life, evidence: str, entries: list[Entry], *, is_open: bool) -> Iterator[str]:
    rows, trigger = case.rows_by_id.get(evidence, []), case.trigger_of(life, evidence)
    if len(rows) > 1:
        yield f"I1: {evidence} of {life.name} has {len(rows)} entries"
    elif is_satisfied(trigger, entries):
        if not rows:
            yield f"I1: {evidence} of {life.name} was satisfied and has no entry; it counted {entries}"
        elif rows[0].reason in NOT_IN_TIME:
            yield f"I1: {evidence} of {life.name} expired with all that it waited for: {entries}"
    elif rows and rows[0].reason not in WITHOUT_ENOUGH and not _may_have_less(trigger):
        yield f"I1: {evidence} of {life.name} is {rows[0].disposition}/{rows[0].reason} with too little: {entries}"
    elif not rows and not is_open and not _was_discarded(case, life, evidence):
        yield f"I3: {evidence} of {life.name} vanished, and no request of then discarded it; it counted {entries}"


def _may_have_less(trigger: dict[str, Any]) -> bool:
    """Whether a job may be made with too little; when that was due is for `reminders` and `instances` to judge."""
    return "at_least_every" in trigger or trigger.get("on_timeout") == "partial"


def may_be_empty(trigger: dict[str, Any], row: LedgerRow) -> bool:
    """Whether the schedule may have such an entry without any evidence: `at_least_every` asked for a job, and nothing had come."""
    is_told = (row.disposition, row.reason) == NOTHING_NEW
    return "at_least_every" in trigger and is_told != bool(trigger.get("allow_empty"))


def is_satisfied(trigger: dict[str, Any], entries: list[Entry]) -> bool:
    distinct = {(entry["leaf"], entry["key"]) for entry in holding(entries)}
    leaves, needed = needed_of(trigger)
    held = [
        sum(1 for number, _ in distinct if number == leaf) >= wanted.get("count", 1)
        for leaf, wanted in enumerate(leaves)
    ]
    return bool(sum(held) >= needed)


def holding(entries: list[Entry]) -> list[Entry]:
    """Returns what holds of a log: a leaf whose time is over begins anew."""
    held: list[Entry] = []
    for entry in entries:
        if entry["kind"] == FORGET:
            held = [each for each in held if each["leaf"] != entry["leaf"]]
        else:
            held.append(entry)
    return held


def _was_discarded(case: Case, life: Life, evidence: str) -> bool:
    """What a request discards goes after its record and before its receipt."""
    gone = case.record.evidence[evidence].gone
    if gone is not None and case.wide.maybe(NAMESPACE, gone):
        return True
    return gone is not None and any(
        step.moves and step.kind != "resume" and step.sent <= gone <= step.done for step in case.steps(life)
    )
