"""I1: each instant of a time trigger at which its schedule was active has exactly one entry in the ledger; no other has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.simulation.checks.request_history import SKEW_MS, Segment
from tests.simulation.users.schedule_definitions import NAMESPACE
from tests.simulation.world.rolling_upgrade import is_left_out
from tests.simulation.world.timeline import START
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.language.values.instants import parse_instant

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.schedule_users import Life
    from tidegate_core.rows.ledger import LedgerRow

HORIZON_MS = 3_600_000
"""Further ahead of a receipt than the instants that it shows; of rare ones as many periods."""
PERIODS_AHEAD = 5
MERGED = "coalesced"


def check_fires(case: Case) -> Iterator[str]:
    for life in case.lives:
        rows = case.rows_of.get(life.name, [])
        if life.definition.is_timed:
            yield from _check_timed(case, life, [row for row in rows if row.trigger == "time"])
            for segment in case.segments(life):
                yield from check_shown(life, segment)
        yield from _check_manual(case, life, [row for row in rows if row.trigger == "manual"])


def _check_timed(case: Case, life: Life, rows: list[LedgerRow]) -> Iterator[str]:
    segments, ended_at = case.segments(life), case.world.ended_at
    must: Counter[int] = Counter()
    may: Counter[int] = Counter()
    for incarnation in sorted({segment.begin.incarnation for segment in segments}):
        mine = [segment for segment in segments if segment.begin.incarnation == incarnation]
        must.update({instant for segment in mine for instant in surely_due(case, life, segment, ended_at)})
        may.update({instant for segment in mine for instant in maybe_due(life, segment, ended_at)})
    stood_for = list(
        accounted(
            partial(case.trigger_of_row, life),
            rows,
            lambda at: may[at] > 0 and not case.wide.maybe_due(NAMESPACE, at),
        )
    )
    entries = Counter(stood_for)
    yield from (f"I1: {life.name} {at_text(at)} has {n} entries" for (_, at), n in entries.items() if n > 1)
    made = Counter(instant for _, instant in stood_for)
    for instant in sorted(must):
        if made[instant] < must[instant]:
            yield f"I1: {life.name} {at_text(instant)} was due and has {made[instant]} of {must[instant]} entries"
    for instant in sorted(made):
        if made[instant] > max(may[instant], must[instant]):
            yield f"I1: {life.name} {at_text(instant)} has {made[instant]} entries, at most {may[instant]} were due"


def surely_due(case: Case, life: Life, segment: Segment, ended_at: int) -> list[int]:
    """Instants at which nothing wider was suspended; a past one of an `at` comes with the update that brings it."""
    is_at = trigger_of(life, segment)["type"] == "at"
    begin, end = segment.begin.sent, segment.begin.done
    due = _due(life, segment, ended_at)
    spans = [(min(each, begin), max(each, end)) if is_at else (each, each) for each in due]
    # What is due with an activation is due by its owner's clock; else an instant is held against the span itself.
    slack = SKEW_MS if is_at else 0
    stopped_at = None if segment.end is None else segment.end.sent
    return [
        each
        for each, span in zip(due, spans, strict=True)
        if not case.wide.maybe_due(NAMESPACE, *span, slack=slack, ended_at=stopped_at)
    ]


def _due(life: Life, segment: Segment, ended_at: int) -> list[int]:
    """Instants that lie inside whatever the nodes' clocks said, and those that the receipt promised."""
    end = ended_at - 2 * SKEW_MS if segment.end is None else segment.end.sent - SKEW_MS
    trigger = trigger_of(life, segment)
    begin = segment.begin.all_counted
    if trigger["type"] == "at":
        instant = parse_instant(trigger["instant"])
        return [instant] if instant <= end and begin <= end and (begin <= instant or not _resumed(segment)) else []
    return _instants(trigger, min([begin, *shown_in(segment)]), end)


def maybe_due(life: Life, segment: Segment, ended_at: int) -> list[int]:
    end = ended_at + SKEW_MS if segment.end is None else segment.end.done + SKEW_MS
    trigger = trigger_of(life, segment)
    if trigger["type"] == "at":
        instant = parse_instant(trigger["instant"])
        return [] if _resumed(segment) and instant < segment.begin.first_counted else [instant]
    return _instants(trigger, segment.begin.first_counted, end)


def _resumed(segment: Segment) -> bool:
    """Whether the schedule goes on from then: an `at` that lay in the suspended span is no miss."""
    return segment.begin.kind == "resume"


def check_shown(life: Life, segment: Segment) -> Iterator[str]:
    """The receipt shows the next instants: the trigger's own, one after the other, from its activation on."""
    trigger = trigger_of(life, segment)
    if trigger["type"] == "at" or not segment.begin.is_asked_for:
        return
    shown = shown_in(segment)
    begin = segment.begin.first_counted
    horizon = max(HORIZON_MS, PERIODS_AHEAD * parse_duration(trigger.get("period", "0s")))
    coming = _instants(trigger, begin, segment.begin.done + horizon)
    latest = next(instant for instant in coming if instant >= segment.begin.all_counted)
    if not shown and "exclude" in trigger:
        return  # Where the search was cut the answer shows what was found by then.
    if not shown or shown[0] > latest or shown != [each for each in coming if each >= shown[0]][: len(shown)]:
        request = f"{segment.begin.kind} {segment.begin.asked.id}"
        yield (
            f"I1: {life.name}: {request} was answered with the next instants {list(map(at_text, shown))}, "
            f"the first one is due by {at_text(latest)}"
        )


def shown_in(segment: Segment) -> list[int]:
    """Returns the instants that its receipt promised."""
    receipt = segment.begin.asked.receipt
    return [parse_instant(instant) for instant in (receipt.body.get("next") or [])] if receipt else []


def trigger_of(life: Life, segment: Segment) -> dict[str, Any]:
    """Returns the trigger that goes on in a segment: an update that changes it begins another one."""
    return life.shape(segment.begin.variant).trigger


def accounted(
    trigger_of: Callable[[LedgerRow], dict[str, Any]], rows: list[LedgerRow], may_be_due: Callable[[int], bool]
) -> Iterator[tuple[str, int]]:
    """Yields (incarnation, instant) for each instant of each entry that stands for it.

    What stands for an outage has the only entry of its instants; what was merged into another job has an entry of its own,
    and that other one only its own part of all that it says to stand for.

    Args:
        trigger_of: Tells the trigger of an entry's version.
        rows: Of its ledger.
        may_be_due: Of instants at which nothing was suspended.
    """
    into = merged_into(rows)
    settled: dict[str, set[int]] = {}
    for row in sorted(rows, key=lambda each: each.nominal):
        of_life = settled.setdefault(row.incarnation, set())
        own = _own_instants(trigger_of, row, into, rows, of_life, may_be_due)
        if row.job_id in into:
            of_life.update(own)
        for instant in own:
            yield row.incarnation, instant


def _own_instants(
    trigger_of: Callable[[LedgerRow], dict[str, Any]],
    row: LedgerRow,
    into: dict[str, list[LedgerRow]],
    rows: list[LedgerRow],
    settled: set[int],
    may_be_due: Callable[[int], bool],
) -> list[int]:
    """What it stands for may have holes: what ended by itself before the others were merged, be that something into which others
    were merged (`settled`, unless it says that more of its own are left than beside those), and what was suspended.
    """
    merged = into.get(row.job_id, [])
    if not merged or row.covered is None:
        return instants_of(trigger_of(row), row)
    mine = [each for each in rows if each.incarnation == row.incarnation]
    others = [each for each in mine if each in merged or each.job_id not in into]
    theirs = {instant for each in others for instant in instants_of(trigger_of(each), each)}
    own = [instant for instant in instants_of(trigger_of(row), row) if instant not in theirs]
    number = row.covered - sum(each.covered or 1 for each in merged)
    beside = [instant for instant in own if instant not in settled]
    own = beside if len(beside) >= number else own
    # It says how many they are, and they are the newest: whoever merges others has just been made.
    due = own if len(own) <= number else [each for each in own if each == row.nominal or may_be_due(each)]
    return due[max(0, len(due) - number) :]


def merged_into(rows: list[LedgerRow]) -> dict[str, list[LedgerRow]]:
    """Returns the entries of what was merged, by the job that it was merged into."""
    found: dict[str, list[LedgerRow]] = {}
    for row in rows:
        if row.disposition == MERGED:
            found.setdefault((row.detail or "").removeprefix("into "), []).append(row)
    return found


def instants_of(trigger: dict[str, Any], row: LedgerRow) -> list[int]:
    """Returns the instants that an entry stands for: its own, or all that it covers."""
    return [row.nominal] if row.covered_from is None else _instants(trigger, row.covered_from, row.nominal)


def _instants(trigger: dict[str, Any], begin: int, end: int) -> list[int]:
    """Returns the trigger's instants in `begin..end`, by arithmetic of this check's own."""
    if trigger["type"] == "every":
        period, phase = parse_duration(trigger["period"]), parse_duration(trigger.get("phase", "0s"))
        return list(range(-(-(begin - phase) // period) * period + phase, end + 1, period))
    if trigger["type"] == "times":
        return sorted({instant for spec in trigger["specs"] for instant in _instants(spec, begin, end)})
    span, every = trigger["expression"].split()[0].split("/")
    first = 0 if span == "*" else int(span.split("-")[0])
    seconds = range(-(-begin // 1_000), end // 1_000 + 1)
    named = [second * 1_000 for second in seconds if second % 60 >= first and (second % 60 - first) % int(every) == 0]
    return [instant for instant in named if not is_left_out(trigger, instant)]


def _check_manual(case: Case, life: Life, rows: list[LedgerRow]) -> Iterator[str]:
    wanted = Counter(
        str(step.asked.receipt.body["id"])
        for step in case.steps(life)
        if step.kind == "trigger" and step.asked.receipt and step.asked.status == "accepted"
    )
    found = Counter(row.job_id for row in rows)
    for job in sorted((wanted - found) + (found - wanted)):
        yield f"I1: {life.name}: manual job {job} has {found[job]} entries, {wanted[job]} were asked for"


def at_text(instant: int) -> str:
    return f"{(instant - START) / 1000:.3f}s"
