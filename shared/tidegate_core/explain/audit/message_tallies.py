"""Audit of messages: each accepted message has rows and gets delivered, and each closed tally equals the sum of its rows.

Rows stay for 30 days after their slot, delivered or not. So the audit can read which messages should have been delivered. A row does not say
how its message ended: delivered, expired or as a dead letter. The tallies say how many, and the topics say which.

A requests topic may be recreated before the cursor has passed a create. Rows of that create do not count: its message is never delivered, and no
receipt was written (`messages/wire/withheld_rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

from tidegate_core.explain.audit.findings import Behind, Findings, Unjudged
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.log_position import Position
from tidegate_core.messages.one_shot.cancellation import CANCEL_MARK
from tidegate_core.messages.wire.due_queue import NOTHING, Place
from tidegate_core.messages.wire.message_record import delivered_as
from tidegate_core.rows.message import MessageFence, MessageName, MessageTimer, public_id
from tidegate_core.rows.recurring_message import Interval
from tidegate_core.shard.map_transition import Positions
from tidegate_core.writes.message_delivery import Tally

Named: TypeAlias = tuple[str, str]
"""Id and version."""
OF_RECURRING: Final = (
    "tallies in whose two minutes recurring messages fired: they are compared from below only; --sink looks at each"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow:
    """Message row without its payload.

    Attributes:
        origin: Position of its create.
        slot: Slot of its first timer row.
    """

    origin: str
    namespace: str
    nominal: int
    slot: int
    topic: str
    keyed: bool
    expires: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTally:
    """Tally of the deliveries after the former tally, up to and including a place.

    Attributes:
        through: Last place that it counts; None: a row of an older version, which does not say it.
    """

    through: Place | None
    tally: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFacts:
    """Rows of the messages of one shard.

    Attributes:
        position: Delivery position: all up to and including this place is complete.
        namespace: Namespace that is audited; None: all. Tallies count all namespaces, so only then are they compared.
        timers: Timer rows by id and version; a message that got another slot may have several.
        tallies: Tallies in the order of their places.
        intervals: Intervals of recurring messages, also past ones, with the schedule's `<ns>/<name>`.
        answers: Statuses of the receipts of cancels, by namespace and request id.
        gone_from: Offset from which creates are never read, for each former topic partition of requests that was recreated since.
    """

    shard: int
    position: Place
    namespace: str | None = None
    rows: Mapping[Named, MessageRow] = field(default_factory=dict)
    timers: Mapping[Named, Sequence[MessageTimer]] = field(default_factory=dict)
    guards: Mapping[str, MessageFence] = field(default_factory=dict)
    held: frozenset[Named] = frozenset()
    tallies: Sequence[ClosedTally] = ()
    intervals: Sequence[tuple[str, Interval]] = ()
    answers: Mapping[tuple[str, str], str] = field(default_factory=dict)
    gone_from: Positions = field(default_factory=dict)

    def answer_to_cancel(self, named: Named) -> tuple[str, str] | None:
        """Returns the request id of the cancel of a version, and its status; None: there was no cancel, or it is not known."""
        guard, row = self.guards.get(named[0]), self.rows.get(named)
        if guard is None or row is None or not (guard.request_id or "").startswith(CANCEL_MARK):
            return None
        if not guard.before <= named[1] < guard.live_from and named[1] not in guard.late:
            return None  # An earlier cancel may have been about this version.
        request_id = (guard.request_id or "").removeprefix(CANCEL_MARK)
        status = self.answers.get((row.namespace, request_id))
        return None if status is None else (request_id, status)

    def is_covered(self, named: Named) -> bool:
        """Whether a message was cancelled, replaced or refused; it may have been delivered before."""
        guard = self.guards.get(named[0])
        return guard is not None and guard.covers(named[1])

    def is_gone(self, named: Named) -> bool:
        """Whether all rows of a message come from creates that were lost with their topic; it may have been delivered before."""
        if not self.gone_from:
            return False
        row = self.rows.get(named)
        origins = [each.origin for each in self.timers.get(named, ())] + ([] if row is None else [row.origin])
        return all(self._went_with_its_topic(Position.parse(origin)) for origin in origins)

    def _went_with_its_topic(self, create: Position) -> bool:
        begin = self.gone_from.get((create.topic_id, create.topic_partition))
        return begin is not None and create.offset >= begin

    def id_of(self, named: Named) -> str:
        """Returns the id in the delivered record."""
        return public_id(self.shard, MessageName(named[0], self.rows[named].keyed), named[1])


def judge_messages(facts: MessageFacts, window: Window) -> Findings:
    """Returns the findings about the messages of a shard."""
    findings = Findings()
    for named, row in facts.rows.items():
        if window.has(row.nominal):
            _judge_row(facts, named, row, window, findings)
    for named, timers in facts.timers.items():
        waits = [each for each in timers if window.has(each.slot)]
        # Unfinished rows of a recurring message do not matter: the occurrence is computed again.
        if not waits or waits[0].ref is not None or named in facts.rows or facts.is_covered(named):
            continue
        if facts.is_gone(named):
            findings.counts["gone"] += 1
        else:
            _lost(facts, findings, named[0], waits[0].slot, "its payload (M#)", "its timer row (D#) alone")
    if facts.namespace is None:
        _judge_tallies(facts, window, findings)
    return findings


def _judge_row(facts: MessageFacts, named: Named, row: MessageRow, window: Window, findings: Findings) -> None:
    timers = facts.timers.get(named, ())
    _judge_answer(facts, named, row, findings)
    if facts.is_covered(named):
        findings.counts["taken_back"] += 1
    elif named in facts.held:
        findings.counts["held"] += 1
    elif facts.is_gone(named):
        findings.counts["gone"] += 1
    elif not timers:
        found = "its payload (M#) alone"
        _lost(facts, findings, facts.id_of(named), row.nominal, "a timer row (D#), or to be held back (H#)", found)
    elif is_passed(facts, named):
        findings.counts["passed"] += 1
    else:
        findings.counts["pending"] += 1
        if max(each.slot for each in timers) <= window.end:
            findings.behind.append(Behind(facts.shard, "messages", facts.position[0]))


def _judge_answer(facts: MessageFacts, named: Named, row: MessageRow, findings: Findings) -> None:
    """Compares the status of a cancel with the message fence: after `too_late` the message is delivered, after `cancelled` the fence covers it."""
    answer = facts.answer_to_cancel(named)
    if answer is None:
        return
    request_id, status = answer
    late = sorted(facts.guards[named[0]].late)
    if (status == "too_late") == bool(late):
        return
    expected = "to be delivered, or a dead letter" if status == "too_late" else "never to be delivered"
    found = "withdrawn" if status == "too_late" else "still to be delivered"
    occurrence = f"{facts.id_of(named)} {format_instant(row.nominal)}"
    findings.differs(
        "answer_differs", f"shard {facts.shard}", occurrence, f"{expected} (cancel {request_id}: {status})", found
    )


def is_passed(facts: MessageFacts, named: Named) -> bool:
    """Whether the delivery position has passed all timer rows of a message."""
    places = [_place(each) for each in facts.timers.get(named, ())]
    return bool(places) and max(places) <= facts.position


def _lost(facts: MessageFacts, findings: Findings, name: str, at: int, expected: str, found: str) -> None:
    counted = findings.counts
    counted["missing"] += 1
    findings.differs("message_lost", f"shard {facts.shard}", f"{name} {format_instant(at)}", expected, found)


# -- tallies -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Added:
    """Sum of the rows between two places.

    Attributes:
        sure: Messages that were delivered, expired or became dead letters.
        digest: Digest of their ids.
        maybe: Messages that may have ended so, and need not.
    """

    sure: int = 0
    maybe: int = 0
    digest: Tally = NOTHING


def _judge_tallies(facts: MessageFacts, window: Window, findings: Findings) -> None:
    places = [each for each in facts.tallies if each.through is not None]
    unclear, has_recurring = 0, bool(facts.intervals)
    by_place = sorted(_places(facts))
    # A cancel that came too late has removed the timer row of a delivered message.
    taken_back = [row.slot for named, row in facts.rows.items() if named not in facts.timers]
    for before, closed in pairwise(places):
        assert before.through is not None
        assert closed.through is not None
        if not window.has(before.through[0]) or not window.has(closed.through[0]):
            continue
        added = _added(facts, [named for place, named in by_place if before.through < place <= closed.through])
        added.maybe += sum(1 for slot in taken_back if slot <= closed.through[0])
        unclear += has_recurring
        problem = _problem(added, closed.tally, exact=not has_recurring)
        if problem is not None:
            subject, occurrence = f"shard {facts.shard}", f"up to {format_instant(closed.through[0])}"
            findings.differs("tally_differs", subject, occurrence, problem[0], problem[1])
    if unclear:
        findings.unjudged.append(Unjudged(OF_RECURRING, f"shard {facts.shard}", unclear))


def _places(facts: MessageFacts) -> Iterator[tuple[Place, Named]]:
    for named, timers in facts.timers.items():
        for each in timers:
            yield _place(each), named


def _added(facts: MessageFacts, named: Sequence[Named]) -> _Added:
    added = _Added()
    for each in named:
        rows = facts.timers[each]
        is_sure = each in facts.rows and not facts.is_covered(each) and not facts.is_gone(each)
        if not is_sure or len(rows) > 1 or rows[0].ref is not None:
            added.maybe += 1
        else:
            added.sure += 1
            added.digest = added.digest.plus(delivered_as(facts.id_of(each)))
    return added


def _problem(added: _Added, tally: Tally, *, exact: bool) -> tuple[str, str] | None:
    """Returns the expected and the found text; None: they agree."""
    ended = tally.delivered + tally.expired + tally.dead
    if ended < added.sure:
        return f"{added.sure} delivered, expired or dead", f"{ended} counted"
    if exact and ended > added.sure + added.maybe:
        return f"at most {added.sure + added.maybe} delivered, expired or dead", f"{ended} counted"
    is_whole = exact and added.maybe == 0 and tally.delivered == added.sure == ended and not tally.cancelled
    if is_whole and tally.digest != added.digest.digest:
        return f"digest {added.digest.digest} of {added.sure} ids", f"digest {tally.digest}"
    return None


def _place(timer: MessageTimer) -> Place:
    return (timer.slot, timer.id, timer.version)
