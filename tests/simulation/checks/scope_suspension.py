"""I7 for wide controls: between the receipt of a suspend and the request of its resume nothing of its scope starts.

Nothing of the run plane starts, no message is sent, no instant is made, no event is counted. That all goes on after the resume is
what the other checks say: they make an exception for suspended spans only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.users.message_senders import NAMESPACE as POST
from tests.simulation.users.schedule_definitions import NAMESPACE

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.scope_users import WideSpan


class WideSpans:
    """The suspended spans of a world, as their users know them."""

    def __init__(self, spans: Iterable[WideSpan]) -> None:
        self._spans = list(spans)

    def maybe(self, namespace: str, begin: int, end: int | None = None) -> bool:
        """Whether something of the namespace may have been suspended at some time between two instants."""
        end = begin if end is None else end
        return any(
            span.begin.sent_at - SKEW_MS <= end and begin <= _ended(span) + SKEW_MS for span in self._of(namespace)
        )

    def maybe_due(
        self, namespace: str, begin: int, end: int | None = None, *, slack: int = 0, ended_at: int | None = None
    ) -> bool:
        """Whether what came due at some time between two instants may have been due in a suspended span.

        A span ends with the append time of its resume, however late a shard hears of that. Only a request on the schedule that
        was asked for before the answer may be dealt with by who has not heard of it yet.

        Args:
            namespace: Whose.
            begin: The first one.
            end: The last one; by default the first.
            slack: How far off the clock may be by which it came due.
            ended_at: When the request was asked for that made an end of what was due.
        """
        end = begin if end is None else end
        return any(
            span.begin.sent_at - SKEW_MS <= end and begin < _true_end(span, ended_at) + slack
            for span in self._of(namespace)
        )

    def surely(self, namespace: str, begin: int, end: int | None = None) -> bool:
        """Whether the namespace was suspended all the time between two instants."""
        end = begin if end is None else end
        return any(
            span.begin.receipt is not None and span.begin.acked_at < begin and end < _asked_for(span)
            for span in self._of(namespace)
        )

    def next_begin(self, namespace: str, instant: int) -> int | None:
        """Returns when the first suspend was asked for that may have ended what was due at this instant and not done."""
        return min(
            (span.begin.sent_at for span in self._of(namespace) if instant <= _ended(span) + SKEW_MS), default=None
        )

    def over_before(self, namespace: str, instant: int) -> bool:
        """Whether all that was ever suspended had been resumed before, and said so."""
        return all(_ended(span) < instant for span in self._of(namespace))

    def ended(self, namespace: str, nominal: int, at: int) -> bool:
        """Whether some suspend may have ended, at that time, what was due at `nominal`."""
        return any(
            span.begin.sent_at - SKEW_MS <= at and nominal <= _ended(span) + SKEW_MS for span in self._of(namespace)
        )

    def _of(self, namespace: str) -> list[WideSpan]:
        return [span for span in self._spans if span.namespace in (None, namespace)]


def _ended(span: WideSpan) -> int:
    return 1 << 60 if span.end is None or span.end.receipt is None else span.end.acked_at


def _true_end(span: WideSpan, ended_at: int | None) -> int:
    if span.end is None or span.end.receipt is None or (ended_at is not None and ended_at <= span.end.acked_at):
        return _ended(span) + SKEW_MS
    return max(span.end.appended)


def _asked_for(span: WideSpan) -> int:
    return 1 << 60 if span.end is None else span.end.sent_at


def check_controls(case: Case) -> Iterator[str]:
    for user in case.world.controllers:
        for asked in user.repeats:
            if asked.receipt is not None and asked.status != "unchanged":
                yield f"answers: {asked.document['type']} {asked.id} was answered {asked.status}, not unchanged"
        for span in user.spans:
            for request in (span.begin, span.end):
                if request is not None and request.receipt is not None and request.status != "accepted":
                    yield f"answers: {request.document['type']} {request.id} was answered {request.status}, not accepted"
    if any(user.spans for user in case.world.controllers):
        yield from _check_starts(case)
        yield from _check_deliveries(case)
        yield from _check_instants(case)
        yield from _check_events(case)


def _check_starts(case: Case) -> Iterator[str]:
    listed = {
        run
        for user in case.world.controllers
        for span in user.spans
        for run in (span.begin.receipt.running if span.begin.receipt else ())
    }
    for body in case.record.bodies:
        if body.run_id not in listed and case.wide.surely(NAMESPACE, body.start):
            yield f"I7: {body.run_id} of {body.schedule} started while all of its namespace was suspended"


def _check_deliveries(case: Case) -> Iterator[str]:
    recurring = {life.name for life in case.recurring}
    for delivery in case.record.deliveries:
        namespace = NAMESPACE if delivery.message.split("/")[0] in recurring else POST
        if case.wide.surely(namespace, delivery.sent.at):
            yield f"I7: {delivery.message} was sent by {delivery.sent.stint} while its namespace was suspended"


def _check_instants(case: Case) -> Iterator[str]:
    """A past `at` counts at each update, so its instant says nothing."""
    timed = {life.name for life in case.lives if life.definition.trigger["type"] in {"every", "cron", "times"}}
    for row in case.rows:
        if row.trigger == "time" and row.name in timed:
            begin, end = row.nominal - SKEW_MS, row.nominal + SKEW_MS
            if case.wide.surely(row.namespace, begin, end):
                yield f"I7: {row.job_id} of {row.name} was made of an instant at which it was suspended"


def _check_events(case: Case) -> Iterator[str]:
    for schedule, found in case.entries_of.items():
        for entry in (entry for entries in found.values() for entry in entries):
            announced = case.world.producers.announced.get(str(entry.get("event_id")))
            if announced is not None and all(case.wide.surely(NAMESPACE, at) for at in announced.appended):
                yield f"I3: {schedule} counted {announced.id}, which came while it was suspended"
