"""Rules of when a recurring message is sent, each switched off in the interleaving that it is against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from tests.simulation.mutants.messages.message_life import unfenced_of
from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import a_commit
from tests.support.builders import MINUTE, NOW, SECOND, a_recurring, a_send, an_apply, every
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_produce
from tests.support.harness.recorded_effects import Sent
from tidegate_core.decisions.delivery_plane import delivering, retrying
from tidegate_core.decisions.delivery_plane.recurring_change import RecurringChange
from tidegate_core.decisions.delivery_plane.slots import Slots
from tidegate_core.decisions.operations import Operation
from tidegate_core.decisions.shard_actor import ShardActor
from tidegate_core.effects import Effect, NotProduced, Produce, Read
from tidegate_core.model.instants import format_instant, parse_instant
from tidegate_core.store import keys
from tidegate_core.store.values import Put, Value

APART_MS = 400
"""Of two clocks, within what is allowed."""


def seeing_the_first_one(_: Callable[[Slots], int | None]) -> Callable[[Slots], int | None]:
    return lambda slots: slots._due[0][0] if slots._due else None


def at_once(_: Callable[[ShardActor], Operation[None]]) -> Callable[[ShardActor], Operation[None]]:
    def serve(actor: ShardActor) -> Operation[None]:
        yield from ()

    return serve


def behind_the_slot(boundary: Callable[..., int]) -> Callable[..., int]:
    return lambda change, record: max(change._source.promised[0] + 1, boundary(change, record))


def a_create_in_front_waits_for_its_position() -> Iterator[str]:
    bench = _a_bench("2s")
    bench.lose(a_commit("cursor"), times=1_000)
    bench.request(a_send("m-1", after="3s"))
    bench.run(20 * SECOND)
    late = [each for each in bench.on("out") if each.at >= _nominal(each) + SECOND]
    missing = bench.now // (2 * SECOND) - max(map(_nominal, bench.on("out")), default=0) // (2 * SECOND)
    if late or missing:
        yield f"I1: {len(late)} fires were sent late and {missing} not at all, with nothing in their way"


def an_outage_ended_by_a_clock_ahead() -> Iterator[str]:
    bench = _a_bench("10s")
    bench.run(25 * SECOND)
    begin, back = bench.now, (bench.now // MINUTE + 10) * MINUTE - APART_MS
    progress = bench.store.get([keys.progress(0)])[keys.progress(0)]
    fact: list[Value] = [f"{begin}-{back + APART_MS + 1}"]
    bench.store.write((Put(keys.progress(0), {**progress, "gaps": fact, "outages": fact}),))
    bench.away(back - begin)
    bench.run(SECOND)
    for each in bench.on("out"):
        if each.at < _nominal(each):
            yield f"I8: a fire was sent {_nominal(each) - each.at} ms early"


def an_update_finds_the_position_within_the_slot_of_what_it_ends() -> Iterator[str]:
    bench = Bench(shards=1)
    bench.run(SECOND)
    due = format_instant(bench.now + 10 * SECOND)
    bench.answer_with(_to_out, NotProduced("unavailable", "no acknowledgement"), times=10_000)
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": due}, payload="old")))
    for number in range(12):  # Some of them lie before the fire, by their ids.
        bench.request(a_send(f"m-{number}", deliver_at=due, topic="elsewhere"))
    bench.run(20 * SECOND)
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": due}, payload="new"), "update-ping"))
    bench.run(5 * SECOND)
    bench.as_usual()
    bench.run(MINUTE)
    if not bench.on("out"):
        yield "I1: what an update found due and not sent was never sent, by no version"


def two_take_overs_while_the_rows_of_a_refused_fire_are_on_their_way() -> Iterator[str]:
    """The second owner has sent it from its place, and hands over in order; then what the first one sent arrives."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.answer_with(_to_out, NotProduced("refused", "no such topic"))
    bench.hold_back(a_commit("retry"))
    bench.request(an_apply(a_recurring(trigger=every("1m"))))
    bench.run(MINUTE - bench.now % MINUTE + APART_MS)
    (late,) = bench.commits("retry")
    bench.crash()
    bench.run(SECOND)
    assert len(bench.on("out")) == 1
    bench.drain()
    bench.run(SECOND)
    bench.transact(late)
    bench.crash()
    bench.run(MINUTE // 2)
    if len(bench.on("out")) > 1:
        yield "I8: a fire was sent again, by rows of an owner of before, after an orderly hand-over"


def _to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def a_fire_is_taken_as_a_request_comes(
    trigger: dict[str, Any], *, late_ms: int = 0, read_ms: int, acknowledged_ms: int = 0, decided_ms: int = 0
) -> Iterator[str]:
    """A fire is due at an owner that has to read its definition first, and an update that changes the payload comes meanwhile.

    Args:
        trigger: Its second instant is that fire's.
        late_ms: How long after it the update comes.
        read_ms: How long after that the definition is there.
        acknowledged_ms: How long the broker takes for what is handed over.
        decided_ms: How long after the read the store takes the request's transaction.
    """
    bench = Bench(shards=1)
    bench.run(SECOND)
    due = NOW + 20 * SECOND
    bench.request(an_apply(a_recurring(trigger=trigger, payload="old")))
    bench.run(due - SECOND // 2 - bench.now)
    bench.hold_back(_a_read_of_a_definition, times=2)  # Ahead of time, and when it is due.
    bench.crash()
    bench.run(due + late_ms - bench.now)
    reads = list(bench._held)
    bench._held.clear()
    if decided_ms:
        bench.hold_back(a_commit("control"))
    if acknowledged_ms:
        bench.hold_back(a_produce("out"))
    bench.request(an_apply(a_recurring(trigger=trigger, payload="new"), "update"))
    bench.run(read_ms)
    for each in reads:
        each()
    bench.settle()
    bench.run(acknowledged_ms + decided_ms)
    bench.as_usual()
    bench.run(20 * SECOND)
    payloads: defaultdict[int, list[bytes]] = defaultdict(list)
    for sent in bench.on("out"):
        payloads[_nominal(sent)].append(sent.value)
    if due not in payloads:
        yield "I1: a fire was not sent, by neither of two versions"
    for nominal, values in payloads.items():
        if len(values) > 1:
            yield f"I8: the fire of {nominal} was sent as {values}"


def _a_read_of_a_definition(effect: Effect) -> bool:
    return isinstance(effect, Read) and any(key.sk.startswith("M#") for key in effect.keys)


def a_fire_is_taken_in_the_millisecond_of_an_update() -> Iterator[str]:
    return a_fire_is_taken_as_a_request_comes(every("10s"), read_ms=50)


def _a_bench(step: str) -> Bench:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every(step))))
    return bench


def _nominal(sent: Sent) -> int:
    return parse_instant(sent.headers["tidegate-nominal"])


RULES_OF_RECURRING = (
    Mutant(
        "sent under a hold",
        "a fire that was taken before a request held its schedule is handed over behind the boundary that the request saw",
        breaks="I8",
        patches=(Patch(delivering, "_without_held", lambda _: lambda plane, rows: rows),),
        scenario=a_fire_is_taken_in_the_millisecond_of_an_update,
    ),
    Mutant(
        "alarm behind what waits",
        "what falls due behind a message that is due and cannot be sent yet is sent when that one is",
        breaks="I1",
        patches=(Patch(Slots, "next_slot", seeing_the_first_one),),
        scenario=a_create_in_front_waits_for_its_position,
    ),
    Mutant(
        "early after an outage",
        "what stands for an outage is sent at once, although its end was told by a clock that is ahead",
        breaks="I8",
        patches=(Patch(ShardActor, "_wait_for_the_present", at_once),),
        scenario=an_outage_ended_by_a_clock_ahead,
    ),
    Mutant(
        "boundary behind the slot",
        "a request takes a fire for delivered because the position stands within its millisecond",
        breaks="I1",
        patches=(Patch(RecurringChange, "_boundary", behind_the_slot),),
        scenario=an_update_finds_the_position_within_the_slot_of_what_it_ends,
    ),
    Mutant(
        "recurring unfenced",
        "a former owner gives rows to a refused fire that its successor has sent from its place",
        breaks="I8",
        patches=(Patch(retrying, "retry", unfenced_of(stored=False)),),
        scenario=two_take_overs_while_the_rows_of_a_refused_fire_are_on_their_way,
    ),
)
