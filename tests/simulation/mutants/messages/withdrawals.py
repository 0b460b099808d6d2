"""Rules of what becomes of a message that is withdrawn while it is on no plain way (docs/protocol.md): refused by its broker and moved ahead, or
loaded while its guard is raised. Each is switched off in the interleaving that it is against.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.support.builders import MINUTE, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_commit, a_produce
from tidegate_core.decisions.delivery_plane import cancelling, guarding, plane, retrying
from tidegate_core.decisions.delivery_plane.guarding import Fate, Guards
from tidegate_core.decisions.delivery_plane.next_attempts import NextAttempts
from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane
from tidegate_core.decisions.delivery_plane.slots import Slotted, Stage
from tidegate_core.effects import NotProduced
from tidegate_core.records.messages import Guard, Message, MessageTimer

NO_ROOM = Patch(plane, "ROWS_MAX", lambda _: 0)
"""What lies ahead is not kept in memory."""

# -- bugs -----------------------------------------------------------------------------------------------------------------


def as_the_store_says(_: Any) -> Any:
    def keep_out(guards: Guards, found: Guard | None, version: str) -> bool:
        return found is not None and found.covers(version)

    return keep_out


def reading_none(_: Any) -> Any:
    def learn(attempts: NextAttempts, messages: Iterable[Message]) -> Generator[Any]:
        yield from ()

    return learn


def withdrawn_where_it_was(move_on: Callable[..., None]) -> Any:
    def moved(plane: DeliveryPlane, row: Slotted, timer: MessageTimer) -> None:
        if row.occurrence is None and plane.has_ended(row):
            plane.withdraw(row)
        else:
            move_on(plane, row, timer)

    return moved


def taken_for_withdrawn(take_out: Callable[..., Fate]) -> Any:
    def taken(plane: DeliveryPlane, message: Message) -> Fate:
        fate, rows = take_out(plane, message), plane.slots.of(message.id)
        if rows and all(row.stage is Stage.GONE for row in rows):
            return Fate(not fate.maybe_sent, fate.maybe_sent)
        return fate

    return taken


# -- scenarios --------------------------------------------------------------------------------------------------------------


def a_bench() -> Bench:
    bench = Bench(shards=1)
    bench.run(SECOND)
    return bench


def a_refused_one() -> Bench:
    """Its broker takes it at its sixth attempt, in a few minutes."""
    bench = a_bench()
    bench.answer_with(a_produce("out"), NotProduced("refused", "unknown topic"), times=5)
    bench.request(a_send("m-1", after="1s"))
    return bench


def untrue_of(bench: Bench) -> Iterable[str]:
    """Says where the answer of the one cancel, the deliveries and the tally do not say the same of one message."""
    rows = [*bench.rows("PROGRESS"), *bench.rows("Y#")]
    delivered, cancelled = (sum(int(str(row[name])) for row in rows) for name in ("delivered", "cancelled"))
    status, sent = bench.status_of("c-1"), len(bench.on("out"))
    if status != ("too_late" if sent else "cancelled"):
        yield f"I8: a message was sent {sent} times, and its cancel was answered {status}"
    if (delivered, cancelled) != (min(sent, 1), 1 - min(sent, 1)):
        yield f"I8: a message was sent {sent} times, and counted {delivered} times as delivered and {cancelled} as cancelled"


def a_page_is_loaded_while_a_guard_is_raised() -> Iterable[str]:
    """The guard is in the store, and its answer hangs until the message's time has passed, and a checkpoint as well."""
    bench = a_bench()
    bench.request(a_send("m-1", after="70s"))
    bench.request(a_send("m-2", after="72s", topic="elsewhere"))
    bench.hold_back(a_commit("guard"), answer_only=True)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(110 * SECOND)
    bench.as_usual()
    bench.run(30 * SECOND)
    if bench.status_of("c-1") == "too_late" and not bench.on("out"):
        yield "I8: a message was never sent, and its cancel was answered too_late"


def a_refused_message_has_no_room_at_its_next_place() -> Iterable[str]:
    bench = a_refused_one()
    bench.run(86 * SECOND)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(10 * MINUTE)
    return untrue_of(bench)


def a_refused_message_has_no_room_and_is_cancelled_at_once() -> Iterable[str]:
    """No checkpoint has passed its last attempt yet."""
    bench = a_refused_one()
    bench.run(77 * SECOND)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(10 * MINUTE)
    return untrue_of(bench)


def a_successor_cancels_what_was_refused() -> Iterable[str]:
    """Its next attempt lies beyond what the successor has loaded."""
    bench = a_refused_one()
    bench.run(90 * SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.new_actor()
    bench.run(SECOND)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(10 * MINUTE)
    return untrue_of(bench)


def a_refused_message_is_loaded_before_its_move_is_answered() -> Iterable[str]:
    bench = a_refused_one()
    bench.run(MINUTE)
    bench.hold_back(a_commit("retry"), answer_only=True)
    bench.run(MINUTE)
    bench.request(a_cancel(message_id="m-1"))
    bench.as_usual()
    bench.run(10 * MINUTE)
    return untrue_of(bench)


RULES_OF_FATES = (
    Mutant(
        "kept out by what is being raised",
        "a message that is loaded while its guard is raised is not in memory when that is known: it passes for sent, and never was",
        breaks="I8",
        patches=(Patch(Guards, "keep_out", as_the_store_says),),
        scenario=a_page_is_loaded_while_a_guard_is_raised,
    ),
    Mutant(
        "next attempts forgotten",
        "a refused message whose next attempt had no room in memory passes for sent, and its cancel keeps it from ever being sent",
        breaks="I8",
        patches=(Patch(NextAttempts, "of", lambda _: lambda attempts, message: None),),
        beside=(NO_ROOM,),
        scenario=a_refused_message_has_no_room_at_its_next_place,
    ),
    Mutant(
        "next attempts of predecessors",
        "a refused message whose next attempt a successor has not loaded passes for sent, and its cancel keeps it from ever being sent",
        breaks="I8",
        patches=(Patch(NextAttempts, "learn", reading_none),),
        scenario=a_successor_cancels_what_was_refused,
    ),
    Mutant(
        "gone, and withdrawn",
        "a refused message that has left memory is answered cancelled, and counted as nothing",
        breaks="I8",
        patches=(Patch(guarding, "take_out", taken_for_withdrawn), Patch(cancelling, "take_out", taken_for_withdrawn)),
        beside=(NO_ROOM,),
        scenario=a_refused_message_has_no_room_and_is_cancelled_at_once,
    ),
    Mutant(
        "withdrawn at both places",
        "a refused message that is loaded at its new place before its move is known is counted as cancelled twice",
        breaks="I8",
        patches=(Patch(retrying, "_move_on", withdrawn_where_it_was),),
        scenario=a_refused_message_is_loaded_before_its_move_is_answered,
    ),
)
