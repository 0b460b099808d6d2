"""The driver: inputs in order and never inside of each other, effects out, answers back, ticks by the clock, bugs survived."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.tidegate_node.watched_driver import ScriptedActor, Watched
from tidegate_core.engine.actor_inputs import Begin, Drain, Input, LogRecord, RecordsArrived, Tick, Woken
from tidegate_core.rows.effects import (
    Drained,
    Effect,
    EffectRequest,
    EffectResult,
    EndOffsets,
    Items,
    LaunchOrder,
    ManyProduced,
    Notice,
    NotProduced,
    NotSubmitted,
    Produce,
    Produced,
    ProduceMany,
    Read,
    StartReading,
    StopReading,
    Submit,
    Unavailable,
    Watch,
    Write,
)
from tidegate_core.rows.store_operations import Batch, Item, Key, Put
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_node.partition_driver import REBUILDS_MAX, partition_actor
from tidegate_ports.bus import Settled
from tidegate_ports.launcher import Ended

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


async def test_given_inputs_then_they_are_taken_in_order(around: Surroundings, until: Any) -> None:
    watched = Watched(around, ScriptedActor)
    pokes = [Woken(number) for number in range(1_000)]

    for each in pokes:
        watched.driver.give(each)

    await until(lambda: len(watched.actors[0].given) == 1_001, "all of them")
    assert watched.actors[0].given == [Begin(), *pokes]


async def test_given_records_that_the_former_actor_had_asked_for_then_the_next_one_is_not_given_them(
    around: Surroundings, until: Any
) -> None:
    """They begin beyond its position: with them it would pass what lies between."""
    topic, topic_id = around.facts.requests.name, around.facts.requests.id
    late, own = (RecordsArrived(topic, 1, (LogRecord(offset, 0, None, None),), topic_id) for offset in (103, 100))

    def script(incoming: Input) -> list[EffectRequest]:
        if isinstance(incoming, Tick):
            raise ValueError("a bug")
        return [EffectRequest(0, StartReading(topic, 1, 100, "b", 4))] if isinstance(incoming, Woken) else []

    watched = Watched(around, lambda: ScriptedActor(script))
    watched.driver.give(Woken(1))
    watched.driver.give(Tick())
    await until(lambda: len(watched.actors) == 2, "it is built anew")

    watched.driver.give(late)
    watched.driver.give(Woken(1))
    await until(lambda: len(watched.actors[1].given) == 2, "it recovers and reads")
    watched.driver.give(own)

    await until(lambda: len(watched.actors[1].given) == 3, "its records")
    assert watched.actors[1].given == [Begin(), Woken(1), own]


async def test_given_records_in_the_queue_when_their_reading_ends_then_the_actor_is_not_given_them(
    around: Surroundings, until: Any
) -> None:
    """A drain forgets what was read and not begun; to go on with what waited behind it would skip that."""
    topic, topic_id = around.facts.requests.name, around.facts.requests.id

    def script(incoming: Input) -> list[EffectRequest]:
        if isinstance(incoming, Begin):
            return [EffectRequest(0, StartReading(topic, 1, 100, topic_id, 4))]
        return [EffectRequest(0, StopReading(topic, 1))] if isinstance(incoming, Drain) else []

    watched = Watched(around, lambda: ScriptedActor(script))
    before, behind = (RecordsArrived(topic, 1, (LogRecord(offset, 0, None, None),), topic_id) for offset in (100, 101))
    (actor,) = watched.actors
    await until(lambda: actor.given == [Begin()], "it reads")
    watched.driver.give(before)
    watched.drain()
    watched.driver.give(behind)
    watched.driver.give(Woken(1))

    await until(lambda: actor.given[-1] == Woken(1), "all that was in the queue")
    assert actor.given == [Begin(), before, Drain(), Woken(1)]


async def test_given_an_input_from_inside_a_step_then_it_waits_for_its_turn(around: Surroundings, until: Any) -> None:
    watched: Watched

    def script(incoming: Input) -> list[EffectRequest]:
        if isinstance(incoming, Begin):
            asyncio.get_running_loop().call_soon(watched.driver.give, Tick())
            watched.driver.give(Tick())
        return []

    watched = Watched(around, lambda: ScriptedActor(script))

    await until(lambda: len(watched.actors[0].given) == 3, "both ticks")
    assert watched.actors[0].given == [Begin(), Tick(), Tick()]
    assert watched.failures == [], "a step inside a step fails in the actor, which the driver would survive"


async def test_given_an_effect_then_its_answer_comes_back_under_its_token(around: Surroundings, until: Any) -> None:
    def script(incoming: Input) -> list[EffectRequest]:
        if isinstance(incoming, Begin):
            return [
                EffectRequest(7, Read((Key("MAP", "MAP"),))),
                EffectRequest(0, Produce("t", None, b"x")),
                EffectRequest(0, Notice("serving", {"a": 1})),
            ]
        return []

    watched = Watched(around, lambda: ScriptedActor(script))

    await until(lambda: len(watched.actors[0].given) == 2, "the answer")
    assert watched.actors[0].given[1] == EffectResult(7, Items({}))
    await until(lambda: around.bus.produced, "the record")
    assert around.notes.said == [("serving", {"a": 1})]


async def test_given_messages_that_go_together_then_they_leave_in_that_step_and_the_answer_is_an_input_behind_it(
    around: Surroundings, until: Any
) -> None:
    records = (Produce("sink", None, b"1", guarded=True), Produce("sink", None, b"2", guarded=True))

    def script(incoming: Input) -> list[EffectRequest]:
        return [EffectRequest(7, ProduceMany(records))] if isinstance(incoming, Begin) else []

    def leaves(_: Produce) -> None:
        given_by_then.append(list(watched.actors[0].given))

    given_by_then: list[list[Input]] = []
    around.bus.on_produce = leaves
    watched = Watched(around, lambda: ScriptedActor(script))

    await until(lambda: len(watched.actors[0].given) == 2, "the answer")
    assert given_by_then == [[Begin()], [Begin()]]
    assert watched.actors[0].given[1] == EffectResult(7, ManyProduced([Produced(), Produced()]))


@pytest.mark.parametrize("gone", ["the topic partition", "whoever asked"])
async def test_given_a_topic_partition_that_was_given_away_or_a_life_that_was_fenced_then_nothing_irreversible_is_done_for_it(
    around: Surroundings, until: Any, gone: str
) -> None:
    """Its drain was cut while the loop was busy: the guard of those that stay holds on, and this actor has not heard of it. Or the actor was fenced,
    and has begun anew, while rows of its former life waited for the store.
    """
    message = Produce("sink", b"k", b"v", guarded=True)
    batch = Batch("messages", (Put(Key("S", "1"), {"pk": "S", "sk": "1"}),))
    order = LaunchOrder("0007-abc", 1, "python", "/p.py", (), {}, {}, {})
    wanted: list[Effect] = [ProduceMany((message,)), message, Write(batch, guarded=True), Submit(order)]
    if gone == "the topic partition":
        around.bus.owns = frozenset({0})

    def script(incoming: Input) -> list[EffectRequest]:
        return (
            [EffectRequest(number, each) for number, each in enumerate(wanted, 1)]
            if isinstance(incoming, Woken)
            else []
        )

    watched = Watched(around, lambda: ScriptedActor(script))
    (actor,) = watched.actors
    actor.forgets = gone == "whoever asked"
    watched.driver.give(Woken(1))

    await until(lambda: sum(isinstance(each, EffectResult) for each in actor.given) == len(wanted), "all are answered")
    answers = {each.token: each.result for each in actor.given if isinstance(each, EffectResult)}
    assert [type(answers[number]) for number in (2, 3, 4)] == [NotProduced, Unavailable, NotSubmitted]
    assert isinstance(answers[1], ManyProduced)
    assert [type(each) for each in answers[1].outcomes] == [NotProduced]
    assert (around.bus.produced, around.launcher.launches) == ([], [])
    assert around.store.get([batch.actions[0].key]) == {}


async def test_given_messages_of_an_actor_that_is_dropped_then_their_outcomes_are_nobodys(
    around: Surroundings, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[Settled] = []

    monkeypatch.setattr(around.bus, "produce_many", lambda _, told: settled.append(told))

    def script(incoming: Input) -> list[EffectRequest]:
        return [EffectRequest(7, ProduceMany((Produce("sink", None, b"1"),)))] if isinstance(incoming, Begin) else []

    watched = Watched(around, lambda: ScriptedActor(script))
    await until(lambda: settled, "it is with the broker's client")
    watched.driver.drop()
    watched.driver.begin()
    await until(lambda: len(settled) == 2, "its successor's")

    settled[0]([Produced()])
    settled[1]([NotProduced("refused", "too large")])

    await until(lambda: len(watched.actors[-1].given) == 2, "the answer")
    assert watched.actors[-1].given[1] == EffectResult(7, ManyProduced([NotProduced("refused", "too large")]))
    assert watched.actors[0].given == [Begin()]


async def test_given_a_wake_then_the_tick_comes_when_the_wall_clock_says_so(around: Surroundings, until: Any) -> None:
    def script(incoming: Input) -> list[EffectRequest]:
        if isinstance(incoming, Begin):
            watched.actors[0].wake = around.clock.now_ms() + 30
        return []

    watched = Watched(around, lambda: ScriptedActor(script))
    # The loop's clock passes the wake several times over, the wall clock stands still: no tick.
    await asyncio.sleep(0.15)
    assert watched.actors[0].given == [Begin()]

    around.clock.pass_ms(30)

    await until(lambda: Tick() in watched.actors[0].given, "the tick")
    assert watched.actors[0].at[-1] == around.clock.now_ms()


async def test_given_a_step_that_raises_then_the_actor_is_built_anew_and_old_answers_are_dropped(
    around: Surroundings, until: Any
) -> None:
    broken = True

    def script(incoming: Input) -> list[EffectRequest]:
        nonlocal broken
        if isinstance(incoming, Begin):
            return [
                EffectRequest(1, Watch("r", 1)),
                EffectRequest(0, StartReading(around.facts.events.name, 5, 3, "b", 8)),
            ]
        if isinstance(incoming, Woken) and broken:
            broken = False
            raise ValueError("a bug")
        return []

    around.launcher.ended = Ended(0)
    watched = Watched(around, lambda: ScriptedActor(script))
    watched.driver.give(Woken(1))

    await until(lambda: len(watched.actors) == 2, "the second actor")
    await until(lambda: len(watched.actors[1].given) == 2, "its own answer")
    ((failure, too_many),) = watched.failures
    assert str(failure) == "a bug"
    assert not too_many
    assert [type(given) for given in watched.actors[1].given] == [Begin, EffectResult]
    assert ("unassign", around.facts.events.name, 5) in around.bus.calls


async def test_given_an_effect_that_raises_then_it_is_a_bug_of_the_actor_as_well(
    around: Surroundings, until: Any
) -> None:
    def explode(_: Produce) -> None:
        around.bus.on_produce = lambda _: None
        raise RuntimeError("an adapter's bug")

    around.bus.on_produce = explode
    watched = Watched(around, lambda: ScriptedActor(lambda _: [EffectRequest(3, Produce("t", None, b""))]))

    await until(lambda: len(watched.actors) == 2, "the second actor")
    assert [str(failure) for failure, _ in watched.failures] == ["an adapter's bug"]
    watched.driver.drop()


async def test_given_an_actor_that_cannot_be_built_then_it_is_tried_again(around: Surroundings, until: Any) -> None:
    """Found in review: the loop logged it, and the topic partition waited for the next rebalance."""
    builds: list[int] = []

    def make() -> ScriptedActor:
        builds.append(1)
        if len(builds) == 1:
            raise RuntimeError("a bug")
        return ScriptedActor()

    watched = Watched(around, make)

    await until(lambda: watched.actors and watched.actors[0].given, "an actor that begins")
    assert [(str(failure), too_many) for failure, too_many in watched.failures] == [("a bug", False)]
    watched.driver.drop()


async def test_given_too_many_bugs_within_a_minute_then_it_says_so_and_stops(
    around: Surroundings, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_node.partition_driver.REBUILD_PAUSE_FIRST_MS", 0)

    def script(_: Input) -> list[EffectRequest]:
        raise ValueError("again")

    watched = Watched(around, lambda: ScriptedActor(script))

    await until(lambda: watched.failures and watched.failures[-1][1], "the end")
    assert len(watched.failures) == REBUILDS_MAX + 1
    assert len(watched.actors) == REBUILDS_MAX + 1


async def test_given_bugs_that_are_far_apart_then_it_goes_on(
    around: Surroundings, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_node.partition_driver.REBUILD_PAUSE_FIRST_MS", 0)

    def script(_: Input) -> list[EffectRequest]:
        if len(watched.failures) < 2 * REBUILDS_MAX:
            around.clock.pass_ms(20_000)
            raise ValueError("now and then")
        return []

    watched = Watched(around, lambda: ScriptedActor(script))

    await until(lambda: len(watched.actors) == 2 * REBUILDS_MAX + 1, "a long life")
    assert not any(too_many for _, too_many in watched.failures)


async def test_given_a_drain_then_it_calls_back_once_the_actor_has_ended(around: Surroundings, until: Any) -> None:
    def script(incoming: Input) -> list[EffectRequest]:
        if isinstance(incoming, Drain):
            watched.actors[0].has_ended = True
            return [EffectRequest(0, Drained(1))]
        return []

    watched = Watched(around, lambda: ScriptedActor(script))

    watched.drain()

    await until(lambda: watched.drained == 1, "the drain")
    assert watched.ended == 0
    assert not watched.driver.is_serving


async def test_given_a_drain_while_there_is_no_actor_then_it_calls_back_at_once(
    around: Surroundings, until: Any
) -> None:
    drained_at_once: list[int] = []

    def drain() -> None:
        watched.drain()
        drained_at_once.append(watched.drained)

    def script(_: Input) -> list[EffectRequest]:
        # Right behind the bug: the next actor is built in a quarter of a second, for which this loop may stand still.
        asyncio.get_running_loop().call_soon(drain)
        raise ValueError("a bug")

    watched = Watched(around, lambda: ScriptedActor(script))

    await until(lambda: drained_at_once, "the drain")
    assert drained_at_once == [len(watched.failures)] == [1]
    await asyncio.sleep(0.3)
    assert len(watched.actors) == 1, "what was drained is not built anew"


async def test_given_an_actor_that_ends_by_itself_then_it_is_said(around: Surroundings, until: Any) -> None:
    def script(_: Input) -> list[EffectRequest]:
        watched.actors[0].has_ended = True
        return []

    watched = Watched(around, lambda: ScriptedActor(script))

    await until(lambda: watched.ended == 1, "the end")
    watched.driver.give(Tick())
    watched.drain()
    assert watched.drained == 1


# -- with the core's own actor --------------------------------------------------------------------------------------------


def _apply(name: str, period: str = "1h") -> bytes:
    spec: Mapping[str, Any] = {
        "kind": "schedule",
        "namespace": "tests",
        "name": name,
        "target": {"type": "program", "program": {"type": "python", "file": __file__}},
        "trigger": {"type": "every", "period": period},
    }
    return json.dumps(
        {"id": f"q-{name}", "type": "schedule.apply", "namespace": "tests", "name": name, "spec": spec}
    ).encode()


async def test_given_the_core_s_actor_then_a_request_is_applied_and_its_receipt_published(
    around: Surroundings, until: Any
) -> None:
    topic = around.facts.requests
    for facts in (topic, around.facts.events):
        ends = {f"{facts.id}/{number}": 0 for number in range(facts.topic_partitions)}
        around.bus.ends_by_topic[facts.name] = EndOffsets(ends)
    index = SubscriptionIndex()
    drivers = []
    for number in range(4):
        make = partition_actor(partial(around.facts.holding, number, number + 1), index)
        watched = Watched(around, make)
        drivers.append(watched)
    around.pokes_here = False

    await until(lambda: all(each.driver.is_serving for each in drivers), "serving")
    for offset in range(6):
        record = LogRecord(offset, around.clock.now_ms(), None, _apply(f"s{offset}"))
        drivers[offset % 4].driver.give(RecordsArrived(topic.name, offset % 4, (record,), topic.id))

    def receipts() -> list[Item]:
        # Sweeps find what another's shard was given: the clock goes on, as it would.
        around.clock.pass_ms(100)
        return [json.loads(each.value) for each in around.bus.produced if each.topic == around.facts.receipts]

    await until(lambda: len(receipts()) >= 6, "six receipts")
    assert {str(receipt["status"]) for receipt in receipts()} == {"accepted"}
    for each in drivers:
        assert each.failures == []
        each.drain()

    def drained() -> bool:
        around.clock.pass_ms(10)
        return all(each.drained for each in drivers)

    await until(drained, "drained")
