"""Bugs in the delivery plane."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, operation_returning, returning
from tidegate_core.engine.operations import Operation
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.messages import message_scheduler
from tidegate_core.messages.message_scheduler import MessageScheduler
from tidegate_core.messages.one_shot import cancellation
from tidegate_core.messages.wire import delivery
from tidegate_core.messages.wire.checkpoints import Checkpoints
from tidegate_core.messages.wire.due_queue import EVERYWHERE, DueQueue, QueuedMessage, Stage
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.ownership.partition_actor import PartitionActor

TESTS = "unit/tidegate_core/ownership/test_partition_actor.py"
EARLY_MS = 300


def knowing_no_window(init: Callable[..., None], checkpoints: Checkpoints, *arguments: Any) -> None:
    *others, _loaded_through, changed = arguments
    init(checkpoints, *others, lambda: EVERYWHERE, changed)


def leaving_the_last_out(
    write: Callable[..., Generator[Any, Any, None]], checkpoints: Checkpoints, *, last: bool = False
) -> Generator[Any, Any, None]:
    if not last:
        yield from write(checkpoints)


def expiring_at_once(in_order: Callable[..., Any], messages: ShardMessages, rows: Sequence[QueuedMessage]) -> Any:
    for row in rows:
        if row.message is not None and row.message.expires is not None:
            messages.close(row, Stage.DONE)
    return in_order(messages, rows)


def denying(cancel: Callable[..., Operation[tuple[ReceiptStatus, Any]]], *arguments: Any) -> Operation[Any]:
    status, problems = yield from cancel(*arguments)
    return ReceiptStatus.TOO_LATE if status == ReceiptStatus.CANCELLED else status, problems


def too_early(take_due: Callable[..., list[QueuedMessage]]) -> Any:
    return lambda slots, now, *rest: take_due(slots, now + EARLY_MS, *rest)


MESSAGES = (
    Mutant(
        "old assignment",
        "a process that stood still since it was assigned something serves it beside the rightful owner",
        breaks="I7",
        patches=(Patch(PartitionActor, "_is_member", operation_returning(True)),),
        killed_by=f"{TESTS}::test_given_no_proof_of_membership_after_the_fence_then_nothing_is_read_or_answered[False]",
    ),
    Mutant(
        "load",
        "a timer row written late, after its cancel, is loaded by the next owner and sent",
        breaks="I7",
        patches=(Patch(message_scheduler, "read_fences", operation_returning({})),),
        killed_by=Seeds(within=120, directed=(11,), trap="echoes"),
    ),
    Mutant(
        "window",
        "a checkpoint passes rows that are not loaded",
        breaks="I8",
        patches=(Patch(Checkpoints, "__init__", around(knowing_no_window)),),
        killed_by=Seeds(within=2, trap="stalled_loads"),
    ),
    Mutant(
        "unwritten create",
        "a checkpoint passes rows that are not written",
        breaks="I8",
        patches=(Patch(DueQueue, "hold", returning(None)),),
        killed_by=Seeds(within=3, directed=(2,), trap="stalled_batches"),
    ),
    Mutant(
        "repeats",
        "sending goes on while no checkpoint gets through",
        breaks="I8",
        patches=(Patch(Checkpoints, "_is_late", returning(False)),),
        killed_by=Seeds(within=1, trap="stalled_checkpoints"),
    ),
    Mutant(
        "last checkpoint",
        "a drain writes no checkpoint, and the next owner sends again what was sent",
        breaks="I8",
        patches=(Patch(Checkpoints, "write", around(leaving_the_last_out)),),
        killed_by=Seeds(within=20),
    ),
    Mutant(
        "sent ahead",
        "an owner hands over before its last checkpoint can pass what it has sent",
        breaks="I8",
        patches=(Patch(MessageScheduler, "_is_sent_ahead", returning(False)),),
        killed_by=Seeds(within=3, trap="stalled_loads"),
    ),
    Mutant(
        "early",
        "messages are taken before their time",
        breaks="I8",
        patches=(Patch(DueQueue, "take_due", too_early),),
        killed_by=Seeds(within=4),
    ),
    Mutant(
        "expiry",
        "a message that may expire is never sent",
        breaks="I8",
        patches=(Patch(delivery, "_in_order", around(expiring_at_once)),),
        killed_by=Seeds(within=75),
    ),
    Mutant(
        "denied cancel",
        "a cancel that took a message back says that it was too late",
        breaks="I8",
        patches=(Patch(cancellation, "_cancel", around(denying)),),
        killed_by=Seeds(within=27, directed=(2,)),
    ),
)
