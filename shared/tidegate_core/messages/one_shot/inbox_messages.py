"""Sends and cancels that another holder read: they are applied together, and only then leave the shard's inbox (DESIGN 5)."""

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
"""Sends and cancels that are written and removed together; below DynamoDB's 100 actions, and 10 MB at the largest payloads."""

_Row: TypeAlias = tuple[InboxRow, Callable[[Key], None]]


class InboxMessages:
    """One per delivery messages.

    Args:
        plane: The shard's.
        again: Has `apply` called once more, in its turn.
    """

    def __init__(self, messages: ShardMessages, again: Callable[[], None]) -> None:
        self._messages = messages
        self._waiting = messages.uncommitted
        self._again = again
        self._rows: deque[_Row] = deque()
        self._leaning: dict[str, tuple[Create, str]] = {}
        self._passed = Signal(f"position {messages.shard}")

    def take(self, rows: Sequence[InboxRow], gone: Callable[[Key], None]) -> None:
        """Applies sends and cancels that another holder read, and removes their inbox rows; calls back for each one."""
        for row in rows:
            self._waiting.expect(row.origin)
        self._rows.extend((row, gone) for row in rows)
        self._again()

    def depends_on_log(self, repeat: Create) -> bool:
        """Of two records of one request the later one made nothing. What came through the inbox stays there until the other one
        is durable: should its topic be made anew before, nobody will ever read it, and the repeat is the first one.

        Returns whether it stays: then its version is not refused for good yet.
        """
        origin, original = repeat.sending.position.text(), repeat.leans_on
        if original is None or not self._waiting.expects(origin) or not self._waiting.is_behind(original):
            return False
        self._leaning[origin] = repeat, original
        return True

    def is_refused_for_now(self, version: Message) -> bool:
        """Whether a former owner wrote this of a repeat that stays: it comes to nothing, unless the record that it repeats is lost."""
        leaning = self._leaning.get(version.origin)
        return leaning is not None and leaning[0].has_its_own_version

    def position_moved(self) -> None:
        self._messages.host.operations.raise_(self._passed)

    def apply(self) -> Operation[None]:
        """All that came meanwhile, together: after an outage a shard's rows come in small groups from every topic partition."""
        taken = [self._rows.popleft() for _ in range(min(len(self._rows), INBOXED_TOGETHER_MAX))]
        if not taken:
            return  # They went with earlier ones.
        if self._rows:
            self._again()
        refusals = dict((yield from apply_inboxed(self._messages, [row for row, _ in taken], self.depends_on_log)))
        for each in (each for each in taken if each[0] in refusals):
            # Beside the others: none of them waits until the topic of dead letters takes it.
            self._messages.host.start_safely("dead_letter", each[0].origin, self._bury(each, refusals[each[0]]))
        done = [each for each in taken if each[0] not in refusals]
        leaning = [each for each in done if each[0].origin in self._leaning]
        if leaning:
            self._messages.host.operations.start(self._remove_in_time(leaning))
        if len(leaning) < len(done):
            yield from self._remove([each for each in done if each not in leaning])

    def _bury(self, taken: _Row, refused: RefusedRecord) -> Operation[None]:
        """Its row goes behind its dead letter."""
        yield from dead_letter(self._messages, taken[0], refused)
        yield from self._remove([taken])

    def _remove_in_time(self, taken: Sequence[_Row]) -> Operation[None]:
        leaning = [self._leaning[row.origin] for row, _ in taken]
        while any(self._waiting.is_behind(original) for _, original in leaning):
            yield self._passed
        if self._messages.is_draining:
            return  # The successor finds them there.
        try:
            yield from refuse_repeats(self._messages, [repeat for repeat, _ in leaning])
            for row, _ in taken:
                del self._leaning[row.origin]
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
