"""Bugs in a hand-over: in whom it is told, in what it takes no more, and in what it waits for, rows of a predecessor and fires of
held schedules that stand before what was sent (docs/protocol.md, A message's life).

The predecessor wrote a message's rows and fell before its create was durable, so they wait for the create, in the inbox or in the
log; its successor sends what comes behind them, and is told to hand over before it has recovered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import Stage, a_commit
from tests.support.builders import REQUESTS, REQUESTS_ID, SECOND, a_recurring, a_request, a_send, an_apply, every
from tests.support.harness.actor_harness import Bench
from tidegate_core.decisions.delivery_plane.checkpoints import Checkpoints
from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane
from tidegate_core.decisions.inputs import Poked
from tidegate_core.decisions.operations import Operation
from tidegate_core.decisions.request_ingest import INBOX_ROWS_PER_MOVE, RequestIngest
from tidegate_core.decisions.run_plane.inbox import Inbox
from tidegate_core.decisions.shard_actor import ShardActor
from tidegate_core.decisions.topic_cursor import TopicCursor
from tidegate_core.effects import Effect, NotProduced, Produce, Read, ReadRange
from tidegate_core.model.position import Position
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store.values import Put

Hand = Callable[[Inbox], Operation[None]]


def forgetting_alone(_: Any) -> Any:
    def take_no_more(cursor: TopicCursor) -> None:
        cursor._buffer.clear()

    return take_no_more


def from_the_first(init: Callable[..., None]) -> Any:
    def made(cursor: TopicCursor, *args: Any, **named: Any) -> None:
        init(cursor, *args, **named)
        cursor._reads = True

    return made


def leaving_them_to_the_first_look(_: Hand) -> Hand:
    def expected(inbox: Inbox) -> Operation[None]:
        for item in (yield from inbox._lane.read_range("I#", "I#~")):
            row = from_item(InboxRow, item)
            if row.kind == "M":
                inbox._plane._waiting.expect(row.origin)

    return expected


def behind_the_batch(move_through: Callable[..., Operation[None]]) -> Callable[..., Operation[None]]:
    def moved(ingest: RequestIngest, inboxed: Sequence[Any]) -> Operation[None]:
        planes, ingest._planes = ingest._planes, {}
        yield from move_through(ingest, inboxed)
        ingest._planes = planes
        for plane in planes.values():
            plane.position_is(ingest.cursor.at.next)

    return moved


def never(_: Any) -> Any:
    return property(lambda plane: False)


def sending_what_was_taken(parted: Callable[..., Any]) -> Any:
    """As far as the bound allows, hand-over or not."""

    def all_of(checkpoints: Checkpoints, wanted: Any) -> Any:
        closed, checkpoints.closed = checkpoints.closed, False
        parts = parted(checkpoints, wanted)
        checkpoints.closed = closed
        return parts

    return all_of


def behind_outages_alone(_: Any) -> Any:
    return lambda plane: plane.slots.late_fires_wait


def telling_delivery_planes_alone(_: Any) -> Any:
    def drain(_: ShardActor) -> Operation[None]:
        yield from ()

    return drain


def payloads_read(effect: Effect) -> bool:
    return isinstance(effect, Read) and effect.keys[0].sk.startswith("M#")


def jobs_read(effect: Effect) -> bool:
    """Recovery reads them when the delivery plane serves already."""
    return isinstance(effect, ReadRange) and effect.range.low == "J#"


def a_definition_is_read(effect: Effect) -> bool:
    """Of a request that is about to hold its schedule: the last thing that it asks before."""
    return isinstance(effect, Read) and effect.keys[0].sk.startswith("DEF#")


def produced_to_its_sink(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def repeats_of_a_hand_over(bench: Bench) -> Iterable[str]:
    """From when the owner of a message's rows fell: the next one hands over before all is recovered, the third one sends."""
    bench.as_usual()
    bench.crash()
    return repeats_of_a_hand_over_amid(bench)


def repeats_of_a_hand_over_amid(bench: Bench) -> Iterable[str]:
    """Of the recovery of an owner that has just begun."""
    bench.hold_back(jobs_read, times=1_000)
    bench.run(10 * SECOND)
    bench.drain()
    bench.run(SECOND)
    return repeats_of_the_next_owner(bench)


def repeats_of_the_next_owner(bench: Bench) -> Iterable[str]:
    bench.as_usual()
    bench.run(SECOND)
    bench.crash()
    bench.run(10 * SECOND)
    sent = [each.headers["tidegate-id"] for sink in ("out", "elsewhere") for each in bench.on(sink)]
    if len(sent) > len(set(sent)):
        yield "I8: messages were sent again after an orderly hand-over"


def a_bench() -> Bench:
    """With a schedule whose fires go out one after the other, whatever stands in front of them."""
    bench = Stage(shards=1).first
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    return bench


def its_create_lies_in_the_inbox() -> Iterable[str]:
    bench = a_bench()
    origin = Position(bench.now, REQUESTS_ID, 7, 1).text()
    body = json.dumps(a_send("m-1", after="3s", topic="elsewhere"))
    row = InboxRow(namespace="orders", name="x", kind="M", origin=origin, body=body)
    bench.lose(a_commit("inboxed"), times=1_000)
    bench.store.write([Put(row.key(0), to_item(row, row.key(0)))])
    bench.give(Poked(0))
    return repeats_of_a_hand_over(bench)


def its_create_lies_in_the_log() -> Iterable[str]:
    bench = a_bench()
    bench.lose(a_commit("cursor"), times=1_000)
    bench.request(a_send("m-1", after="3s", topic="elsewhere"))
    return repeats_of_a_hand_over(bench)


def a_payload_is_being_read() -> Iterable[str]:
    bench = Stage(shards=1).first
    bench.request(a_send("m-2", after="10s"))
    bench.run(SECOND)
    bench.lose(a_commit("cursor"), times=1_000)
    bench.request(a_send("m-1", after="5s", topic="elsewhere"))
    bench.crash()
    bench.hold_back(payloads_read, times=1_000)
    return repeats_of_a_hand_over_amid(bench)


def a_record_waits_while_its_reader_begins_anew() -> Iterable[str]:
    """Two are appended while a holder recovers; the second one comes from a node's queue, of a reading that has ended."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.hold_back(jobs_read, times=1_000)
    bench.crash()
    bench.run(SECOND)
    for name in ("m-1", "m-2"):
        bench.request(a_send(name, after="5s"))
    bench.give(bench.arrived(REQUESTS, 0, 1))
    bench.as_usual()
    bench.release()
    bench.run(10 * SECOND)
    if len(bench.on("out")) < 2:
        yield "I1: a request that was appended while its reader recovered was never read"


def a_record_arrives_behind_a_drain() -> Iterable[str]:
    """The second one waits behind a move that is under way, and is forgotten; the third comes from a node's queue."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    for name in ("m-1", "m-2"):
        bench.request(a_send(name, after="5s"))
    bench.drain()
    bench.request(a_send("m-3", after="5s"))
    bench.give(bench.arrived(REQUESTS, 0, 2))
    bench.as_usual()
    bench.release()
    bench.run(5 * SECOND)
    bench.new_actor()
    bench.run(20 * SECOND)
    if len(bench.on("out")) < 3:
        yield "I1: a request that a drain forgot was never read"


def a_batch_takes_long_behind_a_message() -> Iterable[str]:
    """Its record is passed; the requests behind it are more than one transaction takes, and the second one gets no answer."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    others = [a_request("suspend", f"s-{number}", f"r-{number}") for number in range(INBOX_ROWS_PER_MOVE + 1)]
    is_cursor, last = a_commit("cursor"), others[-1]["id"]
    bench.hold_back(lambda effect: is_cursor(effect) and last in str(effect), times=1_000)
    bench.append(REQUESTS, 0, a_send("m-1", after="1s"), *others)
    bench.run(30 * SECOND)
    if not bench.on("out"):
        yield "I8: a message whose record is passed is 29 s late, whatever its store does with requests behind it"


def with_a_fire_that_gets_no_acknowledgement() -> Bench:
    """It stands between two messages that go elsewhere."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    ahead = 20 - bench.now // SECOND % 20
    bench.request(an_apply(a_recurring(trigger=every("20s"))))
    bench.request(a_send("m-1", after=f"{ahead - 1}s", topic="elsewhere"))
    bench.request(a_send("m-2", after=f"{ahead + 1}s", topic="elsewhere"))
    bench.answer_with(produced_to_its_sink, NotProduced("unavailable", "transport"), times=1_000)
    return bench


def a_request_holds_a_schedule_amid_a_hand_over() -> Iterable[str]:
    """Its fire was taken for what is left to be sent, and is put back when the request has gone on."""
    bench = with_a_fire_that_gets_no_acknowledgement()
    bench.run(20 * SECOND)
    for each in (a_definition_is_read, a_commit("checkpoint"), a_commit("control")):
        bench.hold_back(each)
    bench.request(an_apply(a_recurring(trigger=every("1h")), "update"))
    bench.drain()
    bench.run(SECOND)
    bench.release()  # The request goes on, and then the checkpoint, which covers the first message.
    bench.run(SECOND)
    return repeats_of_the_next_owner(bench)


def a_hand_over_comes_before_all_is_recovered() -> Iterable[str]:
    """A request that holds a schedule lies in the inbox by then."""
    bench = with_a_fire_that_gets_no_acknowledgement()
    bench.lose(a_commit("control"), times=1_000)
    bench.request(an_apply(a_recurring(trigger=every("1h")), "update"))
    bench.new_actor()
    bench.hold_back(jobs_read, times=1_000)
    bench.run(20 * SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.release()
    bench.run(SECOND)
    return repeats_of_the_next_owner(bench)


HAND_OVERS = (
    Mutant(
        "held in front of what was sent",
        "a fire that a request holds amid a hand-over is taken for done, and what was sent behind it is sent again",
        breaks="I8",
        patches=(Patch(DeliveryPlane, "_holds_fires_up", behind_outages_alone),),
        scenario=a_request_holds_a_schedule_amid_a_hand_over,
    ),
    Mutant(
        "told to delivery planes alone",
        "a shard that is recovered amid a hand-over begins what lies in its inbox",
        breaks="I8",
        patches=(Patch(ShardActor, "drain", telling_delivery_planes_alone),),
        beside=(Patch(DeliveryPlane, "_holds_fires_up", behind_outages_alone),),
        scenario=a_hand_over_comes_before_all_is_recovered,
    ),
    Mutant(
        "told behind the batch",
        "a message waits for requests that were read with it, though its own record is passed",
        breaks="I8",
        patches=(Patch(RequestIngest, "_move_through", behind_the_batch),),
        scenario=a_batch_takes_long_behind_a_message,
    ),
    Mutant(
        "sent amid a hand-over",
        "what was taken before a hand-over goes out behind a predecessor's row, and again by the next owner",
        breaks="I8",
        patches=(Patch(Checkpoints, "parted", sending_what_was_taken),),
        scenario=a_payload_is_being_read,
    ),
    Mutant(
        "records behind a drain",
        "what waited in a busy node's queue while a drain forgot what was read before it moves the position past that",
        breaks="I1",
        patches=(Patch(TopicCursor, "take_no_more", forgetting_alone),),
        scenario=a_record_arrives_behind_a_drain,
    ),
    Mutant(
        "records before a reading",
        "what waited in a busy node's queue while its reader began anew moves the position past what lies before it",
        breaks="I1",
        patches=(Patch(TopicCursor, "__init__", from_the_first),),
        scenario=a_record_waits_while_its_reader_begins_anew,
    ),
    Mutant(
        "inbox left to its first look",
        "a hand-over comes before that has its end, and what was sent behind a predecessor's row is sent again",
        breaks="I8",
        patches=(Patch(Inbox, "hand_messages", leaving_them_to_the_first_look),),
        scenario=its_create_lies_in_the_inbox,
    ),
    Mutant(
        "log left before it is read again",
        "a hand-over in the middle of a take-over: what was sent behind a predecessor's row is sent again",
        breaks="I8",
        patches=(Patch(DeliveryPlane, "waits_for_the_log", never),),
        scenario=its_create_lies_in_the_log,
    ),
)
