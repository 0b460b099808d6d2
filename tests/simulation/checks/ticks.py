"""I1 for leaves of time: each tick while its schedule was active latches once, or finds the leaf latched; no other instant does.

What becomes of those that open an instance each is for `instances` to judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.simulation.checks.evidence import NOT_IN_TIME
from tests.simulation.checks.fires import at_text
from tests.simulation.checks.request_history import SKEW_MS, kept_evidence
from tests.simulation.users.schedule_definitions import NAMESPACE
from tests.simulation.users.tick_schedules import leaves_of_time, names, opens_instances, ticks_between
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.language.values.instants import format_instant

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case, Entry
    from tests.simulation.users.schedule_users import Life
    from tidegate_core.rows.ledger import LedgerRow


def check_ticks(case: Case) -> Iterator[str]:
    for life in case.lives:
        leaves = leaves_of_time(life.definition)
        if leaves:
            yield from _check_entries(case, life, leaves)
            yield from _check_told(case, life)
        if life.definition.trigger["type"] == "any_of":
            # Alone it fires, so it never comes to nothing within one decision.
            for place, leaf in leaves.items() if case.world.at_rest else ():
                yield from _check_latched(case, life, place, leaf)
        elif leaves and not opens_instances(life.definition):
            yield from _check_met(case, life, leaves)


def _ticks(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry["kind"] == "tick"]


def _check_entries(case: Case, life: Life, leaves: dict[int, dict[str, Any]]) -> Iterator[str]:
    found = Counter(
        (entry["leaf"], entry["at"])
        for entries in case.entries_of.get(life.name, {}).values()
        for entry in _ticks(entries)
    )
    segments = case.segments(life)
    for (place, at), number in found.items():
        if number > 1:
            yield f"I1: {life.name} was latched {number} times by its tick of {at_text(at)}"
        if not names(leaves[place], at):
            yield f"I1: {life.name} was latched by {at_text(at)}, which its trigger does not name"
        if not any(segment.maybe(each) for segment in segments for each in (at - SKEW_MS, at, at + SKEW_MS)):
            yield f"I1: {life.name} was latched by its tick of {at_text(at)}, when it was not active"


def _check_told(case: Case, life: Life) -> Iterator[str]:
    for body in case.record.bodies:
        if body.schedule == life.name and body.context["trigger"] == "events":
            entries = _ticks(case.entries_of.get(life.name, {}).get(body.run_id, []))
            told: Any = body.context["ticks"]
            if sorted(str(row["instant"]) for row in told) != sorted(format_instant(entry["at"]) for entry in entries):
                yield f"I1: {body.run_id} of {life.name} was told of {told}, its ticks are {entries}"


def _check_latched(case: Case, life: Life, place: int, leaf: dict[str, Any]) -> Iterator[str]:
    """What came while the schedule was active, and stayed active: no request may have passed it over."""
    last = [segment for segment in case.segments(life) if segment.end is None]
    if not last:
        return
    latches = [
        (entry["at"], case.record.evidence[evidence].gone)
        for evidence, entries in case.entries_of.get(life.name, {}).items()
        for entry in _ticks(entries)
        if entry["leaf"] == place
    ]
    for at in ticks_between(leaf, last[0].begin.done + SKEW_MS + 1, case.world.ended_at):
        held = any(begin <= at and (gone is None or gone >= at - SKEW_MS) for begin, gone in latches)
        if case.wide.over_before(NAMESPACE, at) and not held:
            yield f"I1: {life.name} {at_text(at)} was due, and has latched nothing"


def _check_met(case: Case, life: Life, leaves: dict[int, dict[str, Any]]) -> Iterator[str]:
    """I3: a tick that came to nothing had nothing to meet, whoever was away when either of them came."""
    timeout = parse_duration(life.definition.trigger["timeout"])
    for row in case.rows_of.get(life.name, []):
        is_tick = any(names(leaf, row.nominal) for leaf in leaves.values())
        if not is_tick or row.reason not in NOT_IN_TIME or "did not wait" in (row.detail or ""):
            continue
        deadline = row.nominal + timeout
        if case.wide.maybe(NAMESPACE, row.nominal - timeout, row.at) or _was_overtaken(case, row, deadline):
            continue
        if kept_evidence(case.steps(life), row.nominal - SKEW_MS, row.at + SKEW_MS):
            continue  # Clocks that stood still meanwhile, and what was ignored, are judged elsewhere.
        for evidence, entries in case.entries_of.get(life.name, {}).items():
            came = [entry for entry in entries if entry["kind"] != "tick" and evidence != row.job_id]
            for entry in came:
                # By the owner's clock it may have come before the tick.
                if row.nominal + SKEW_MS <= entry["at"] < deadline and _was_told_by(case, entry, row, deadline):
                    yield f"I3: {life.name} gave up its tick of {at_text(row.nominal)}, and counted {entry} for another"


def _was_told_by(case: Case, entry: Entry, row: LedgerRow, deadline: int) -> bool:
    """Whether a time-out could know of it: it waits for what the brokers tell of."""
    announced = case.world.producers.announced[entry["event_id"]]
    return announced.untold_until <= deadline and not case.went_with_its_topic(announced, row.at)


def _was_overtaken(case: Case, row: LedgerRow, deadline: int) -> bool:
    """Whether an event of after the deadline may have let it pass: it was read before what another topic partition still had.

    Whatever is counted does that, of events as of ticks; only a look at the deadline itself waits for what is unread.
    """
    return any(
        entry["kind"] not in {"tick", "forget"} and deadline <= entry["at"] <= row.at + SKEW_MS
        for entries in case.entries_of.get(row.name, {}).values()
        for entry in entries
    )
