"""Relays a run's outbox rows to the schedules that subscribe, and to `tidegate.runs`. Neither waits for the other.

Called by the shard actor. It deletes an outbox row after both are done, so a crash may repeat records but loses none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.events.trigger_facts import ScheduleGone
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Produce
from tidegate_core.rows.run import OutboxRow
from tidegate_core.rows.store_operations import Batch, Delete, Key
from tidegate_core.runs.attempts import Attempts
from tidegate_core.shard.events.outbox import GONE, FanOut, event_of_row, has_no_subscriber
from tidegate_core.shard.events.subscription_index import Subscription, SubscriptionIndex
from tidegate_core.shard.shard_cache import ShardCache


class OutboxRelay:
    """One per shard."""

    def __init__(self, writer: ShardWriter, memory: ShardCache, index: SubscriptionIndex, attempts: Attempts) -> None:
        self._writer = writer
        self._host = writer.host
        self._memory = memory
        self._index = index
        self._attempts = attempts
        self._matched: dict[Key, Signal] = {}
        self._listeners: dict[Key, Sequence[Subscription]] = {}

    def recover(self) -> None:
        found = list(self._memory.outbox)
        # Registered first, because one row may wait for others.
        self._matched |= {key: Signal(f"matched {key.sk}") for key in found}
        for key in found:
            self._begin(key)

    def follow(self, key: Key, known: bool) -> None:
        """The row was written: for the first time, or with a further page of its subscribers."""
        if not known:
            self._matched[key] = Signal(f"matched {key.sk}")
            self._begin(key)
        elif self._memory.outbox[key].matched:
            self._listeners.pop(key, None)
            self._host.operations.raise_(self._matched[key])
        else:
            self._distribute(key)  # The next page.

    def _begin(self, key: Key) -> None:
        row = self._memory.outbox[key]
        self._host.start_safely("match", key.sk, self._match(key, row))
        self._host.start_safely("send_out", key.sk, self._send_out(key, row))

    def _send_out(self, key: Key, row: OutboxRow) -> Operation[None]:
        if row.record:
            yield from self._publish(row)
        while not self._memory.outbox[key].matched:
            yield self._matched[key]
        yield from self._host.write_for_good(Batch("outbox_done", (Delete(key),)))
        self._memory.outbox.pop(key, None)
        self._matched.pop(key, None)
        self._writer.view.forget([key])

    def _publish(self, row: OutboxRow) -> Operation[None]:
        topics, key, record = self._host.holding, row.run_id.encode(), row.record.encode()
        letters = [Produce(topics.runs_topic, key, record)]
        if row.given_up is not None:
            headers = (
                ("tidegate.error.topic", topics.runs_topic.encode()),
                ("tidegate.error.class", (row.error_class or "unknown").encode()),
                ("tidegate.error.message", row.given_up.encode()),
                ("tidegate.error.at", format_instant(self._host.now).encode()),
            )
            letters.append(Produce(topics.runs_dlq_topic, key, record, headers))
        for letter in letters:
            refusal = yield from self._host.produce_for_good(letter)
            if refusal is not None:
                self._host.note("produce_refused", topic=letter.topic, id=row.run_id, message=refusal)

    def _match(self, key: Key, row: OutboxRow) -> Operation[None]:
        if row.matched:
            return
        news = event_of_row(row)
        event_key = news.event_key
        if isinstance(news, ScheduleGone):
            yield from self._behind_others(key, news)
        matched = yield from self._index.match(self._host, [event_key])
        self._listeners[key] = matched[event_key]
        if has_no_subscriber(row, matched[event_key]):
            self._close(key)  # True for most runs. Storing that would cost more than matching again after a crash.
        else:
            self._distribute(key)

    def _distribute(self, key: Key) -> None:
        self._writer.add(FanOut(key, self._listeners[key], self._writer.shard, partial(self._close, key)))

    def _close(self, key: Key) -> None:
        """No subscriber is left for the row, so no step waits for it any more."""
        self._memory.outbox[key] = replace(self._memory.outbox[key], matched=True)
        self._listeners.pop(key)
        self._host.operations.raise_(self._matched[key])

    def _behind_others(self, key: Key, gone: ScheduleGone) -> Operation[None]:
        """Waits until runs that ended before the schedule was deleted are distributed, so that they count before the
        deletion.
        """
        # The owner may not know of these ends: wake-ups are late, or lost. The check runs after the delete, so that no
        # report falls between the two, and a successor repeats it. A report after this check counts as after the
        # delete.
        yield from self._attempts.check_liveness(keys.schedule_ref(gone.namespace, gone.schedule), gone.incarnation)
        others = [other for other, row in self._memory.outbox.items() if other != key and row.state != GONE]
        for other in others:
            while (row := self._memory.outbox.get(other)) is not None and not row.matched:
                if event_of_row(row).event_key != gone.event_key:
                    break
                yield self._matched[other]
