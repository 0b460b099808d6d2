"""Applies creates and cancels from the shard's inbox, and removes their rows only after all effects are durable.

Other owners read these requests and wrote the inbox rows. The inbox reader calls `take`; the scheduler runs `apply` in its turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tidegate_core.engine.actor_context import InvalidWrite
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.language.values.problems import RefusedRecord
from tidegate_core.messages.one_shot.cancellation import apply_inboxed, dead_letter
from tidegate_core.messages.one_shot.create_lookup import Create
from tidegate_core.messages.one_shot.create_writer import refuse_repeats
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.message import Message
from tidegate_core.rows.store_operations import Key
from tidegate_core.writes.message_delivery import remove_inboxed

INBOXED_TOGETHER_MAX = 40
"""Creates and cancels that are written and removed together: below DynamoDB's 100 actions, and 10 MB at the largest payloads."""

_Row: TypeAlias = tuple[InboxRow, Callable[[Key], None]]


class InboxMessages:
    """The inbox rows of a shard that are about messages.

    Args:
        messages: The shard's messages.
        again: Queues another call of `apply`.
    """

    def __init__(self, messages: ShardMessages, again: Callable[[], None]) -> None:
        self._messages = messages
        self._waiting = messages.uncommitted
        self._again = again
        self._rows: deque[_Row] = deque()
        self._dependent: dict[str, tuple[Create, str]] = {}
        self._passed = Signal(f"position {messages.shard}")

    def take(self, rows: Sequence[InboxRow], gone: Callable[[Key], None]) -> None:
        """Queues inbox rows; calls `gone` for each row once it is removed."""
        for row in rows:
            self._waiting.expect(row.origin)
        self._rows.extend((row, gone) for row in rows)
        self._again()

    def depends_on_log(self, repeat: Create) -> bool:
        """Returns whether a repeat stays in the inbox until the position passes the record that it repeats.

        If the topic of that record is recreated first, nothing reads the record any more, and the repeat becomes the request. So
        the version of the repeat is not refused for good while it stays.
        """
        origin, original = repeat.sending.position.text(), repeat.leans_on
        if original is None or not self._waiting.expects(origin) or not self._waiting.is_behind(original):
            return False
        self._dependent[origin] = repeat, original
        return True

    def is_refused_for_now(self, version: Message) -> bool:
        """Returns whether a former owner wrote this version for a repeat that stays: it counts only if the repeated record is lost."""
        dependent = self._dependent.get(version.origin)
        return dependent is not None and dependent[0].has_its_own_version

    def position_moved(self) -> None:
        self._messages.host.operations.raise_(self._passed)

    def apply(self) -> Operation[None]:
        """Applies the queued rows together: after an outage they come in small groups from every topic partition."""
        taken = [self._rows.popleft() for _ in range(min(len(self._rows), INBOXED_TOGETHER_MAX))]
        if not taken:
            return  # An earlier call has applied them.
        if self._rows:
            self._again()
        refusals = dict((yield from apply_inboxed(self._messages, [row for row, _ in taken], self.depends_on_log)))
        for each in (each for each in taken if each[0] in refusals):
            # Runs concurrently: no other row waits for the topic of dead letters.
            self._messages.host.start_safely("dead_letter", each[0].origin, self._dead_letter(each, refusals[each[0]]))
        done = [each for each in taken if each[0] not in refusals]
        dependent = [each for each in done if each[0].origin in self._dependent]
        if dependent:
            self._messages.host.operations.start(self._remove_in_time(dependent))
        if len(dependent) < len(done):
            yield from self._remove([each for each in done if each not in dependent])

    def _dead_letter(self, taken: _Row, refused: RefusedRecord) -> Operation[None]:
        """Removes the row after its dead letter is acknowledged."""
        yield from dead_letter(self._messages, taken[0], refused)
        yield from self._remove([taken])

    def _remove_in_time(self, taken: Sequence[_Row]) -> Operation[None]:
        dependent = [self._dependent[row.origin] for row, _ in taken]
        while any(self._waiting.is_behind(original) for _, original in dependent):
            yield self._passed
        if self._messages.is_draining:
            return  # The successor finds the rows in the inbox.
        try:
            yield from refuse_repeats(self._messages, [repeat for repeat, _ in dependent])
            for row, _ in taken:
                del self._dependent[row.origin]
            yield from self._remove(taken)
        except InvalidWrite as error:
            self._messages.host.failed("inboxed", f"shard {self._messages.shard}", error)

    def _remove(self, taken: Sequence[_Row]) -> Operation[None]:
        messages = self._messages
        rows = [row.key(messages.shard) for row, _ in taken]
        yield from messages.commit(
            remove_inboxed(messages.shard, messages.checkpoints.durable.epoch, rows, messages.host.token())
        )
        for row, gone in taken:
            gone(row.key(messages.shard))
            self._waiting.inbox_row_gone(row.origin)
        messages.host.operations.raise_(messages.changed)
