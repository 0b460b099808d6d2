"""Rules of what a cancel is told, and of what it covers (docs/protocol.md), each switched off in the interleaving that it is against."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.messages.message_life import EVERY_TIME, a_delivery
from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import Stage, a_commit, comes_through_the_inbox
from tests.support.builders import MINUTE, REQUESTS, REQUESTS_ID, SECOND, a_cancel, a_recurring, a_send, an_apply, every
from tests.support.harness.actor_harness import Bench
from tests.support.harness.scripted_answers import Rule
from tidegate_core.decisions.delivery_plane import guarding, plane, retrying
from tidegate_core.decisions.delivery_plane.guarding import Guards
from tidegate_core.decisions.inputs import LogRecord, Poked
from tidegate_core.decisions.request_ingest import RequestIngest
from tidegate_core.effects import Ask, Effect, EndOffsets, NotProduced, Read, ReadEndOffsets, ReadRange
from tidegate_core.model.instants import format_instant
from tidegate_core.records.messages import MessageTimer

CLOCKS_APART_MS = 500
LONG_AGO_MS = 10**12


def by_its_time(_: Any) -> Any:
    return lambda plane, message: plane.is_passed(message.nominal, message.id, message.version)


def as_if_unsent(original: Callable[..., MessageTimer]) -> Any:
    return lambda row, message, slot: replace(original(row, message, slot), maybe_sent=None)


def above_what_is_told(_: Any) -> Any:
    def may_be_written(ingest: RequestIngest, record: LogRecord) -> bool:
        return record.offset < max(ingest._log_end or 0, ingest._begun_through)

    return may_be_written


def a_read_of_guards(effect: Effect) -> bool:
    return isinstance(effect, Read) and all(key.sk.startswith("G#") for key in effect.keys)


def a_cancel_comes_while_a_page_is_loaded() -> Iterable[str]:
    """The page's guards were read before it."""
    bench = Stage().first
    bench.request(a_send("m-1", after="80s"))
    bench.hold_back(a_read_of_guards, answer_only=True)
    bench.run(35 * SECOND)
    assert bench.holds_something
    bench.request(a_cancel(message_id="m-1"))
    bench.release()
    bench.run(60 * SECOND)
    if bench.status_of("c-1") == "cancelled" and bench.on("out"):
        yield "I7: a message was delivered after its cancel was acknowledged"


def a_cancel_comes_to_a_successor() -> Iterable[str]:
    """The message is on its topic, nothing in the store says so, and by the successor's clock its time is still to come."""
    bench = Stage().first
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(a_delivery, answer_only=True)
    bench.run(SECOND)
    bench.crash()
    bench.now -= CLOCKS_APART_MS
    bench.run(10)
    bench.request(a_cancel(message_id="m-1"))
    if bench.status_of("c-1") == "cancelled" and bench.on("out"):
        yield "I7: a message that was delivered was acknowledged as cancelled"


def a_cancel_comes_to_the_successor_of_one_that_tries_again() -> Iterable[str]:
    """A delivery arrives and is not acknowledged, the next one is refused; its owner falls before the one after that (seed 20502306)."""
    bench = Stage().first
    bench.request(a_send("m-1", after="1s"))

    def arrives_unanswered(ask: Ask) -> None:
        bench._result(ask)
        bench._answer(ask, NotProduced("unavailable", "scripted"))

    bench._rules.append(Rule(a_delivery, 1, arrives_unanswered))
    bench.answer_with(a_delivery, NotProduced("refused", "not allowed"))
    bench.run(3 * SECOND)
    bench.crash()
    bench.run(SECOND)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(60 * SECOND)
    status = bench.receipts()["c-1"]["status"]
    if bench.on("out") and status == "cancelled":
        yield "I7: a message was delivered, and its cancel was answered cancelled"


def a_cancel_comes_while_loads_are_far_behind() -> Iterable[str]:
    """What fires without rows goes on meanwhile: a message of the past has its place behind that, and beyond what is loaded."""
    bench = Stage(shards=1).first
    bench.request(an_apply(a_recurring(trigger=every("10s"))))
    begun = bench.now
    bench.run(28 * SECOND)
    bench.lose(lambda effect: isinstance(effect, ReadRange) and effect.range.low.startswith("D#"), times=EVERY_TIME)
    bench.run(100 * SECOND)
    bench.request(a_send("m-1", deliver_at=format_instant(begun + 30 * SECOND)))
    bench.request(a_cancel(message_id="m-1"))
    if bench.status_of("c-1") == "too_late" and not any(each.document == {"of": "m-1"} for each in bench.on("out")):
        yield "I8: a message was not sent, and its cancel was answered too_late"


def a_cancel_comes_before_a_topic_partition_is_told_of() -> Iterable[str]:
    """The requests topic had grown by it just before. A create without an id is read again there, and nobody looks for its guard."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"), times=EVERY_TIME)
    bench.request(a_send(None, after="30s"))
    bench.run(SECOND)
    (row,) = bench.rows("M#")
    cancel = a_cancel(message_id=f"0000-{str(row['sk']).split('#')[1]}")
    comes_through_the_inbox(bench, cancel, bench.now)
    bench.give(Poked(0))
    bench.run(2 * SECOND)
    bench.end_scripts()
    bench.crash()
    bench.answer_with(lambda effect: effect == ReadEndOffsets(REQUESTS), EndOffsets({f"{REQUESTS_ID}/1": 0}), times=3)
    bench.run(5 * MINUTE)
    if bench.status_of("c-1") == "cancelled" and bench.on("out"):
        yield "I7: a message was delivered after its cancel was acknowledged"


RULES_OF_CANCELS = (
    Mutant(
        "log end untold",
        "while brokers do not tell where the requests end, a successor takes what it reads again for new: what was cancelled is sent",
        breaks="I7",
        patches=(Patch(RequestIngest, "_may_be_written", above_what_is_told),),
        scenario=a_cancel_comes_before_a_topic_partition_is_told_of,
    ),
    Mutant(
        "guards in memory",
        "a cancel that comes while a page is loaded is not known to whoever takes the page in",
        breaks="I7",
        patches=(Patch(Guards, "cover", lambda _: lambda guards, message_id, version: False),),
        scenario=a_cancel_comes_while_a_page_is_loaded,
    ),
    Mutant(
        "maybe sent",
        "an owner takes for unsent what its predecessor may have sent",
        breaks="I7",
        patches=(Patch(plane, "CLOCKS_APART_MS", lambda _: -LONG_AGO_MS),),
        scenario=a_cancel_comes_to_a_successor,
    ),
    Mutant(
        "maybe sent before its slot",
        "a message that its owner may have sent, and had moved to a later slot, is a successor's to cancel",
        breaks="I7",
        patches=(Patch(retrying, "_next_timer", as_if_unsent),),
        scenario=a_cancel_comes_to_the_successor_of_one_that_tries_again,
    ),
    Mutant(
        "of before, or passed",
        "a message that lies beyond what is loaded is taken for sent, because its time has passed",
        breaks="I8",
        patches=(Patch(guarding, "_is_passed", by_its_time),),
        scenario=a_cancel_comes_while_loads_are_far_behind,
    ),
)
