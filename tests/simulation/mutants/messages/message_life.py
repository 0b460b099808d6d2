"""Rules of a message's life (docs/protocol.md), each switched off in the interleaving that it is against."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import Stage, a_commit
from tests.support.builders import RECEIPTS, REQUESTS, REQUESTS_ID, SECOND, a_recurring, a_send, an_apply
from tests.support.harness.actor_harness import Bench
from tidegate_core.decisions import outage_watch
from tidegate_core.decisions.delivery_plane import retrying, sending
from tidegate_core.decisions.delivery_plane.checkpoints import CHECKPOINT_AFTER_FIRES, CHECKPOINT_AFTER_MS, Checkpoints
from tidegate_core.decisions.delivery_plane.firing import FIRED_TOGETHER
from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane
from tidegate_core.decisions.delivery_plane.slots import Slots
from tidegate_core.decisions.delivery_plane.waiting import Waiting
from tidegate_core.effects import Effect, NotProduced, Produce, Read, Write
from tidegate_core.model.position import Position
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.messages import Message, MessageTimer
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store.values import Check, Delete, Put, Transaction

EVERY_TIME = 10**9


def nothing_to_do(_: Any) -> Any:
    def done(*_: Any) -> Generator[Any, Any, tuple[()]]:
        yield from ()
        return ()

    return done


def without_siblings(take_loaded: Callable[..., None]) -> Any:
    def alone(plane: Any, timer: Any, **named: bool) -> None:
        plane.slots.of = lambda message_id: []
        try:
            take_loaded(plane, timer, **named)
        finally:
            del plane.slots.of

    return alone


def leaving_first(retry: Callable[..., Transaction]) -> Callable[..., Transaction]:
    """The other half would come behind it."""

    def half(*arguments: Any, **named: Any) -> Transaction:
        whole = retry(*arguments, **named)
        return replace(whole, actions=tuple(each for each in whole.actions if not isinstance(each, Put)))

    return half


def unfenced_of(*, stored: bool) -> Callable[[Callable[..., Transaction]], Callable[..., Transaction]]:
    """Of messages that are stored, or of fires, the move to the next attempt does not demand the epoch."""

    def unfenced(retry: Callable[..., Transaction]) -> Callable[..., Transaction]:
        def retried(*arguments: Any, **named: Any) -> Transaction:
            fenced = retry(*arguments, **named)
            if stored != any(isinstance(each, Delete) for each in fenced.actions):
                return fenced
            return replace(fenced, actions=tuple(each for each in fenced.actions if not isinstance(each, Check)))

        return retried

    return unfenced


def a_delivery(effect: Effect, payload: bytes = b"") -> bool:
    return isinstance(effect, Produce) and effect.topic == "out" and payload in effect.value


def a_batch(name: str) -> Any:
    return lambda effect: isinstance(effect, Write) and effect.batch.name == name


def lost(bench: Bench, wanted: int = 1) -> Iterable[str]:
    if len(bench.on("out")) < wanted:
        yield f"I8: {len(bench.on('out'))} of {wanted} messages were delivered"


# -- stories ----------------------------------------------------------------------------------------------------------------


def an_owner_falls_while_the_position_stands_still() -> Iterable[str]:
    """The create is written, and its position is not: it comes again."""
    bench = Stage().first
    bench.hold_back(a_commit("cursor"), times=9)
    bench.request(a_send("m-1", after="1s"))
    bench.run(20 * SECOND)
    bench.crash()
    bench.as_usual()
    bench.run(20 * SECOND)
    if len(bench.on("out")) > 1:
        yield "I8: a message was delivered again that a checkpoint had passed"


def an_owner_falls_with_a_message_of_the_past() -> Iterable[str]:
    """Its time lies behind what the checkpoint has passed."""
    bench = Stage(shards=1).first
    bench.request(a_send("m-1", after="5s"))
    bench.run(15 * SECOND)
    bench.hold_back(a_delivery)
    bench.request(a_send("m-2", deliver_at="2025-11-13T02:13:22Z"))
    bench.run(SECOND)
    bench.crash()
    bench.run(20 * SECOND)
    return lost(bench, 2)


def two_owners_write_one_message_at_two_slots() -> Iterable[str]:
    """The first one's batch arrives when the second one, which wrote it behind what it had sent, has fallen too."""
    bench = Stage(shards=1).first
    bench.request(a_send("m-0", after="20s"))
    bench.lose(a_batch("messages"), times=99)
    bench.request(a_send("m-1", key="k", after="10s"))
    late = bench.all_asked(Write)[-1].batch.actions
    bench.as_usual()
    bench.hold_back(lambda effect: a_delivery(effect, b"m-1"))
    bench.away(30 * SECOND)
    bench.run(SECOND)
    assert bench.holds_something
    bench.store.write(late)
    bench.crash()
    bench.as_usual()
    bench.run(20 * SECOND)
    delivered = [each for each in bench.on("out") if b"m-1" in each.value]
    if len(delivered) > 1:
        yield "I8: one owner delivered a message twice"


def a_replacement_comes_while_the_older_version_is_on_the_wire() -> Iterable[str]:
    bench = Stage().first
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.hold_back(a_delivery)
    bench.run(2 * SECOND)
    bench.request(a_send("m-2", key="k", after="30s"))
    bench.run(SECOND)
    bench.release()
    bench.run(SECOND)
    order = [each.topic for each in bench.sent if each.topic in {RECEIPTS, "out"}]
    if order[:2] == [RECEIPTS, "out"]:
        yield "I7: a message arrived after its replacement was acknowledged"


def an_owner_falls_while_it_moves_a_refused_message() -> Iterable[str]:
    bench = Stage().first
    bench.request(a_send("m-1", after="1s"))
    bench.answer_with(a_delivery, NotProduced("refused", "no such topic"))
    bench.hold_back(a_commit("retry"), answer_only=True)
    bench.run(2 * SECOND)
    assert bench.holds_something
    bench.crash()
    bench.run(60 * SECOND)
    return lost(bench)


def two_take_overs_while_a_refused_message_moves() -> Iterable[str]:
    """The second owner has sent it from its place, and hands over in order; then what the first one sent arrives."""
    bench = Stage(shards=1).first
    bench.request(a_send("m-1", after="1s"))
    bench.answer_with(a_delivery, NotProduced("refused", "no such topic"))
    bench.hold_back(a_commit("retry"))
    bench.run(2 * SECOND)
    (late,) = bench.commits("retry")
    bench.crash()
    bench.run(SECOND)
    assert len(bench.on("out")) == 1
    bench.drain()
    bench.run(SECOND)
    bench.transact(late)
    bench.crash()
    bench.run(60 * SECOND)
    if len(bench.on("out")) > 1:
        yield "I8: a message was delivered again, by a row of an owner of before, after an orderly hand-over"


def rows_of_a_refused_repeat_come_late() -> Iterable[str]:
    """The younger of a request's two records: its first reader fell with the batch on its way."""
    bench = Stage(shards=1).first
    document = a_send("m-1", key="k", after="300s")
    bench.request(document)
    bench.run(SECOND)
    rows = (
        [from_item(Message, row) for row in bench.rows("M#")],
        [from_item(MessageTimer, row) for row in bench.rows("D#")],
    )
    origin = Position(bench.now + SECOND, REQUESTS_ID, 7, 1).text()
    repeat = InboxRow(namespace="orders", name="x", kind="M", origin=origin, body=json.dumps(document))
    bench.store.write([Put(repeat.key(0), {**to_item(repeat, repeat.key(0)), "rev": 1})])
    bench.run(20 * SECOND)
    for late in (replace(row, version=origin, origin=origin) for kind in rows for row in kind):
        bench.store.write([Put(late.key(0), to_item(late, late.key(0)))])
    bench.crash()
    bench.run(400 * SECOND)
    if len({each.headers["tidegate-id"] for each in bench.on("out")}) > 1:
        yield "I8: a message was delivered under two ids"


def an_owner_stands_still_for_an_hour() -> Iterable[str]:
    """One that was there all along."""
    bench = Stage(shards=1).first
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    bench.now += 3_600 * SECOND
    bench.run(30 * SECOND)
    alone = [each for each in bench.on("out") if "tidegate-covered-count" not in each.headers]
    if len(alone) > 6:
        yield f"I1: {len(alone)} messages were sent one by one after an outage"


def payloads_are_read_for_as_long_as_no_checkpoint_comes() -> Iterable[str]:
    bench = Bench(shards=1)
    bench.run(SECOND)
    for _ in range(8):
        bench.append(REQUESTS, 0, *(a_send(None, after="80s") for _ in range(FIRED_TOGETHER)))
    bench.lose(a_commit("checkpoint"), times=EVERY_TIME)
    read = [0]

    def after_half(effect: Effect) -> bool:
        if not (isinstance(effect, Read) and effect.keys[0].sk.startswith("M#")):
            return False
        read[0] += len(effect.keys)
        return read[0] > 4 * FIRED_TOGETHER

    bench.hold_back(after_half, times=EVERY_TIME)
    bench.run(100 * SECOND)
    bench.release()
    bench.run(SECOND)
    sent = [each.at for each in bench.on("out")]
    if len(sent) > CHECKPOINT_AFTER_FIRES and max(sent) - min(sent) > CHECKPOINT_AFTER_MS:
        yield f"I8: {len(sent)} messages would be sent again, which were sent within {max(sent) - min(sent)} ms"


RULES_OF_MESSAGES = (
    Mutant(
        "bound at the taking",
        "what was taken before I8's bound was reached is sent behind it, once its payloads are read",
        breaks="I8",
        patches=(Patch(Checkpoints, "parted", lambda _: lambda _checkpoints, wanted: (wanted, [])),),
        scenario=payloads_are_read_for_as_long_as_no_checkpoint_comes,
    ),
    Mutant(
        "late fires go on",
        "an owner that stood still sends what it missed, one by one, before it has written down that it was away",
        breaks="I1",
        patches=(Patch(Slots, "_is_late_fire", lambda _: lambda slots, row, now: False),),
        scenario=an_owner_stands_still_for_an_hour,
    ),
    Mutant(
        "gap of a silence",
        "an owner that stood still writes down that it was away, and sends what it missed one by one",
        breaks="I1",
        patches=(Patch(outage_watch, "with_gap", lambda _: lambda *_: []),),
        scenario=an_owner_stands_still_for_an_hour,
    ),
    Mutant(
        "refused version",
        "rows of a create that was refused in a replay come late, and are sent",
        breaks="I8",
        patches=(Patch(sending, "_cover_refused", nothing_to_do),),
        scenario=rows_of_a_refused_repeat_come_late,
    ),
    Mutant(
        "position not durable",
        "a message is sent, and passed, while its create may come again",
        breaks="I8",
        patches=(Patch(Waiting, "_reason", lambda _: lambda waiting, origin: None),),
        scenario=an_owner_falls_while_the_position_stands_still,
    ),
    Mutant(
        "slot in the past",
        "a late create gets a slot that a checkpoint has passed, and no successor finds it",
        breaks="I8",
        patches=(Patch(Checkpoints, "slot_for", lambda _: lambda checkpoints, nominal: nominal),),
        scenario=an_owner_falls_with_a_message_of_the_past,
    ),
    Mutant(
        "two slots",
        "rows of one message at two slots are both sent",
        breaks="I8",
        patches=(Patch(DeliveryPlane, "take_loaded", without_siblings),),
        scenario=two_owners_write_one_message_at_two_slots,
    ),
    Mutant(
        "on the wire",
        "a replacement is acknowledged while the older version is on its way",
        breaks="I7",
        patches=(Patch(sending, "_wait_for_the_wire", nothing_to_do),),
        scenario=a_replacement_comes_while_the_older_version_is_on_the_wire,
    ),
    Mutant(
        "half a move",
        "a refused message leaves its place before its next attempt has one in the store",
        breaks="I8",
        patches=(Patch(retrying, "retry", leaving_first),),
        scenario=an_owner_falls_while_it_moves_a_refused_message,
    ),
    Mutant(
        "retry unfenced",
        "a former owner gives a next attempt to a refused message that its successor has sent from its place",
        breaks="I8",
        patches=(Patch(retrying, "retry", unfenced_of(stored=True)),),
        scenario=two_take_overs_while_a_refused_message_moves,
    ),
)
