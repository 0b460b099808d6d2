"""Timer rows of recurring messages that the broker refused once: live while their schedule has the generation they are of."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate_core.engine.operations import Operation
from tidegate_core.messages.wire.due_queue import Occurrence, QueuedMessage, Stage
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import MessageTimer
from tidegate_core.rows.recurring_message import SUMMONS
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.writes.message_delivery import Tally


def sort_out(messages: ShardMessages, items: Sequence[Item]) -> Operation[list[MessageTimer]]:
    """Takes the summons out of a page, and closes what belongs to a generation that was ended; returns the rest."""
    timers = [from_item(MessageTimer, item) for item in items if not is_wake_row(item)]
    wanted = {timer.ref: _state_key(messages.shard, timer.ref) for timer in timers if timer.ref is not None}
    if not wanted:
        return timers
    answer = yield from messages.host.read_for_good(Read(tuple(wanted.values())))
    assert isinstance(answer, Items)
    live: list[MessageTimer] = []
    for timer in timers:
        if timer.ref is None or _is_live(timer, answer.found.get(wanted[timer.ref])):
            live.append(timer)
        elif not messages.is_checkpointed(timer.slot, timer.id, timer.version):
            _close_loaded(messages, timer)
    return live


def is_wake_row(item: Item) -> bool:
    """Whether a timer row announces a far schedule, and is no message's."""
    return str(item["sk"]).endswith(f"#{SUMMONS}")


def _close_loaded(messages: ShardMessages, timer: MessageTimer) -> None:
    """It was refused by the broker once, and ended while it waited for its next attempt."""
    row = QueuedMessage(timer.slot, timer.id, timer.version, timer.origin, timer.attempt, Stage.GONE, from_store=True)
    row.ended, row.occurrence = Tally(cancelled=timer.covered or 1), Occurrence.of(timer)
    messages.checkpoints.tell(timer.slot)
    messages.slots.add(row)


def _state_key(shard: int, ref: str) -> Key:
    namespace, name = ref.split("/", 1)
    return keys.schedule_state(shard, namespace, name)


def _is_live(timer: MessageTimer, state_item: Item | None) -> bool:
    state = None if state_item is None else from_item(ScheduleState, state_item)
    return state is not None and state.status == "active" and state.generation == timer.generation
