"""Publishes a terminal state to the schedules that subscribe to it: the outbox row is an event source.

One transaction writes the inbox rows of the subscribers and the mark on the outbox row. So each subscriber gets the
event once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tidegate_core.language.events.trigger_facts import RunFact, ScheduleGone, fact_from_json
from tidegate_core.language.values.states import RunState
from tidegate_core.rows import keys
from tidegate_core.rows.effects import WakeUp
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.run import OutboxRow
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.events.subscription_index import Subscription
from tidegate_core.writes.unit_of_work import UnitOfWork

LISTENERS_PER_PAGE = 80
"""Inbox rows in one transaction, below DynamoDB's 100 actions."""
PAGE_BYTES_MAX = 2_000_000
"""Bytes of their bodies, each with the run's report.

With the outbox row before and after they stay below DynamoDB's 4 MB.
"""
ACTIVATION_SLACK_MS = 1_000
"""Slack of the activation: a run counts when it was admitted at most 1 s before it (twice the allowed
clock difference).
"""


GONE = "deleted"
"""State of an outbox row that announces a deleted schedule."""


def gone_row(state: ScheduleState, asked_at: int | None, now: int) -> OutboxRow:
    """Returns the row that announces a deletion to subscribers; `asked_at` as in `ScheduleGone`."""
    fact = ScheduleGone.model_construct(
        namespace=state.namespace, schedule=state.name, incarnation=state.incarnation, asked_at=asked_at, at=now
    )
    return OutboxRow(run_id=state.incarnation, attempt=0, state=GONE, record="", fact=fact.canonical_json())


def event_of_row(row: OutboxRow) -> RunFact | ScheduleGone:
    """Returns the event in an outbox row."""
    if row.state == GONE:
        return ScheduleGone.model_validate_json(row.fact)
    fact = fact_from_json(row.fact)
    assert isinstance(fact, RunFact)
    return fact


@dataclass(frozen=True, slots=True)
class FanOut:
    """Writes the next page of inbox rows for one terminal state.

    Attributes:
        gone: Called when the row no longer exists: a former owner, for which no schedule subscribed, removed it late.
    """

    key: Key
    listeners: Sequence[Subscription]
    shard: int
    gone: Callable[[], None]
    stale: tuple[Key, ...] = ()
    name: str = "distribute"

    @property
    def about(self) -> str:
        return self.key.sk

    def decide(self, unit: UnitOfWork, now: int) -> None:
        row = unit.record(OutboxRow, self.key)
        if row is None:
            unit.after(self.gone)
            return
        if row.matched:
            return
        news = event_of_row(row)
        wanted = self._by_schedule(news, row.page)
        # An inbox row of an earlier `lost` attempt may still exist, or be in use at present. There may be thousands,
        # so none is read.
        lay = unit.set_row if row.state == RunState.LOST else unit.put_new
        page, served, size = row.page, 0, 0
        for ref, listeners in list(wanted.items())[:LISTENERS_PER_PAGE]:
            inbox = _inbox_row(row, listeners, news, now)  # It includes the start when that was not published before.
            size += inbox.size
            if served and size > PAGE_BYTES_MAX:
                break
            shard = listeners[0].row.shard
            lay(inbox, inbox.key(shard))
            unit.after(WakeUp(shard))
            page, served = ref, served + 1
        unit.put(replace(row, page=page, matched=served == len(wanted)), self.key)

    def _by_schedule(self, news: RunFact | ScheduleGone, after: str) -> dict[str, list[Subscription]]:
        """Returns the accepting subscriptions by schedule, in the order of pages; `after` is the last schedule served.

        All leaves and generations of a schedule share one inbox row. During an update the index has rows of both
        generations. The owner counts for the generation that is present when it takes the row, so once (I3).
        """
        wanted: dict[str, list[Subscription]] = {}
        for listener in sorted(self.listeners, key=lambda each: (_ref(each), each.row.key().sk)):
            if _hears(listener, news) and _ref(listener) > after:
                wanted.setdefault(_ref(listener), []).append(listener)
        return wanted


def has_no_subscriber(row: OutboxRow, listeners: Sequence[Subscription]) -> bool:
    """Returns whether no subscription accepts the event, now or in an earlier page."""
    return not row.page and not any(_hears(listener, event_of_row(row)) for listener in listeners)


def _hears(listener: Subscription, news: RunFact | ScheduleGone) -> bool:
    if isinstance(news, ScheduleGone):
        return _loses(listener, news)
    if news.state is RunState.RUNNING and not listener.row.starts:
        return False
    return news.admitted_at >= listener.row.told_from - ACTIVATION_SLACK_MS


def _loses(listener: Subscription, news: ScheduleGone) -> bool:
    """Returns whether a deletion concerns a subscription; one that was activated later waits for the next schedule of
    that name.

    Append times decide, also between requests within a second. The nodes' clocks decide, with twice their difference
    as slack, in two cases: no request asked for the deletion, or the activation is not the time of a request.
    """
    if news.asked_at is not None and listener.row.asked_at > news.asked_at:
        return False
    return news.at >= listener.row.told_from - ACTIVATION_SLACK_MS


def _matched(listeners: Sequence[Subscription], fact: str, at: int, origin: str) -> list[dict[str, object]]:
    matched: list[dict[str, object]] = [
        {
            "leaf": listener.row.leaf,
            "incarnation": listener.row.incarnation,
            "generation": listener.row.generation,
            "at": at,
            "origin": origin,
        }
        for listener in listeners
    ]
    # Once for all of them: with the run's report it may have 64 KB, and an item 400 KB.
    matched[0]["fact"] = fact
    return matched


def _ref(listener: Subscription) -> str:
    return keys.schedule_ref(listener.row.namespace, listener.row.name)


def _inbox_row(row: OutboxRow, listeners: Sequence[Subscription], news: RunFact | ScheduleGone, now: int) -> InboxRow:
    at = (news.ended_at or now) if isinstance(news, RunFact) else news.at
    origin = f"{row.run_id}.{row.attempt:04d}.{row.state}"
    matched = _matched(listeners, row.fact, at, origin)
    starts = [listener for listener in listeners if listener.row.starts]
    if row.started is not None and starts and isinstance(news, RunFact):
        began = news.model_copy(update={"state": RunState.RUNNING, "outputs": {}, "ended_at": row.started})
        matched = _matched(starts, began.canonical_json(), row.started, origin) + matched
    return InboxRow(
        namespace=listeners[0].row.namespace,
        name=listeners[0].row.name,
        kind=keys.EVENTS_INBOX if isinstance(news, RunFact) else keys.UPSTREAM_DELETED_INBOX,
        origin=origin,
        body=json.dumps(matched, separators=(",", ":"), ensure_ascii=False),
    )
