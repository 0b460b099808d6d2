"""Bugs in what becomes of a late row of a message that has another one: it is taken in closed (docs/protocol.md, A message's life).

A former owner, frozen while it made the rows of a create, puts them at another slot, behind all that its successor sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import Stage
from tests.support.builders import MINUTE, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import Bench
from tidegate_core.decisions.delivery_plane.slots import Slots, Slotted
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.messages import MessageTimer
from tidegate_core.store.values import Put

Add = Callable[[Slots, Slotted], bool]
BEHIND_MS = 20 * SECOND


def leaving_it_out(add: Add) -> Add:
    return lambda slots, row: False if row.double else add(slots, row)


def believing_it(add: Add) -> Add:
    def added(slots: Slots, row: Slotted) -> bool:
        row.double = False
        return add(slots, row)

    return added


def with_a_late_row() -> Bench:
    """A message of 30 s from now, a row of it 20 s behind its own, and an owner that has loaded both."""
    bench = Stage(shards=1).first
    bench.request(a_send("m-1", after="30s"))
    bench.run(SECOND)
    (row,) = bench.rows("D#")
    timer = from_item(MessageTimer, row)
    changed: dict[str, Any] = {**to_item(timer, timer.key(0)), "slot": timer.slot + BEHIND_MS}
    key = from_item(MessageTimer, changed).key(0)
    bench.store.write((Put(key, {**changed, "pk": key.pk, "sk": key.sk}),))
    bench.crash()
    bench.run(SECOND)
    return bench


def its_owner_hands_over_before_the_late_rows_slot() -> Iterable[str]:
    bench = with_a_late_row()
    bench.run(MINUTE)
    bench.drain()
    bench.run(SECOND)
    bench.crash()
    bench.run(MINUTE)
    if len(bench.on("out")) > 1:
        yield "I8: a message was sent again after an orderly hand-over"


def its_message_is_cancelled_when_it_was_sent() -> Iterable[str]:
    """The row that was sent is passed and forgotten; the late one is still in memory."""
    bench = with_a_late_row()
    bench.run(40 * SECOND)
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.run(SECOND)
    if bench.status_of("c-1") == "cancelled" and bench.on("out"):
        yield "I7: a message that was delivered was acknowledged as cancelled"


LATE_ROWS = (
    Mutant(
        "late row left out",
        "a late row is not taken in, no checkpoint passes it, and the next owner sends its message again",
        breaks="I8",
        patches=(Patch(Slots, "add", leaving_it_out),),
        scenario=its_owner_hands_over_before_the_late_rows_slot,
    ),
    Mutant(
        "late row believed",
        "a late row that is closed passes for a message that was taken back",
        breaks="I7",
        patches=(Patch(Slots, "add", believing_it),),
        scenario=its_message_is_cancelled_when_it_was_sent,
    ),
)
