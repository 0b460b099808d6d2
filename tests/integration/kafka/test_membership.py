"""Members of a real group: sharing, hand-over, loss, the guard, positions and the flow's bound."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.integration.kafka.suspendable import Suspendable
from tests.support.machine_speed import slowness
from tidegate_bricks import KafkaBrick
from tidegate_kafka.clients.client_config import membership_config
from tidegate_kafka.group.group_session import group_session
from tidegate_kafka.group.previous_incarnation import PreviousIncarnation, client_id
from tidegate_ports.clock import SystemClock

if TYPE_CHECKING:
    from tests.integration.kafka.conftest import Recorder, World
    from tidegate_kafka.clients.settings import KafkaSettings
    from tidegate_kafka.group.membership import OnCommit

ALL = set(range(8))
PATIENCE_S = 60.0
MACHINE_MS = 2_000
"""The machine's own time, on top of what the protocol takes; times how slow it is."""
LONG_SESSION_MS = 40_000
"""About what KIP-848's is by default."""
BOTH = pytest.mark.parametrize("protocol", ["classic", "consumer"])
"""For what rests on the group's protocol."""
SHORT_SESSION = pytest.mark.parametrize("session_ms", [pytest.param(3_000, id="short session")])
"""For what waits for its end."""


async def eventually(world: World, condition: object, what: str) -> None:
    """Waits for what has no signal of its own, such as a guard that lapses."""
    assert callable(condition)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():  # noqa: ASYNC110 - a guard lapses by itself, nothing signals it
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"{what}; notices {world.notices}") from None


def write(world: World, count: int, topic_partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": world.settings.bootstrap_servers, "enable.idempotence": True})
    for number in range(count):
        producer.produce(world.settings.topic("requests"), str(number).encode(), partition=topic_partition)
    assert producer.flush(PATIENCE_S) == 0


@BOTH
async def test_given_two_members_then_they_share_and_a_planned_stop_hands_over_drained(world: World) -> None:
    _, told_first = await world.member()
    await told_first.until(lambda: told_first.owned == ALL, "the first has all")
    second, told_second = await world.member()
    await told_second.until(lambda: len(told_second.owned) == 4, "the second has its half")
    await told_first.until(lambda: len(told_first.owned) == 4, "the first gave half")
    assert told_first.owned | told_second.owned == ALL

    await eventually(world, second.guard_holds, "the second's guard")
    told_second.drains = False
    stopping = asyncio.create_task(second.stop())
    await told_second.until(lambda: told_second.drain is not None, "the drain is asked for")
    held_while_draining = [second.guard_holds()]
    asked_again = len(told_first.events)
    await asyncio.wait({stopping}, timeout=world.settings.half_session_ms / 1000 + 0.5)
    held_while_draining.append(second.guard_holds())
    assert len(told_first.events) == asked_again, "nothing moves before the drain is done"
    assert told_second.drain is not None
    told_second.drain.done()

    assert await stopping
    await told_first.until(lambda: told_first.owned == ALL, "the first takes over")
    assert held_while_draining == [True, True], "probes go on while a planned stop drains"
    assert "lost" not in told_first.names() + told_second.names()
    assert not second.guard_holds()


@BOTH
async def test_given_stop_and_start_then_both_are_idempotent(world: World) -> None:
    member, told = await world.member()
    member.start()
    await told.until(lambda: told.owned == ALL, "all")
    assert await member.stop()
    assert await member.stop()
    assert told.owned == set()
    member.start()
    await told.until(lambda: told.owned == ALL, "all again")
    assert told.names() == ["assigned", "revoked", "assigned"]


@BOTH
async def test_given_probe_answered_then_membership_is_proven_for_what_is_owned(world: World) -> None:
    member, told = await world.member()
    assert await member.prove(0) is False, "nothing is owned yet"
    await told.until(lambda: told.owned == ALL, "all")
    assert await member.prove(7) is True
    assert member.guard_holds()
    assert await member.prove(8) is False


async def test_given_no_position_told_then_a_probe_commits_no_step_back(world: World, recorder: Recorder) -> None:
    at = [TopicPartition(world.settings.topic("requests"), 0, 5)]
    earlier = Consumer({"bootstrap.servers": world.settings.bootstrap_servers, "group.id": world.settings.group})
    earlier.commit(offsets=at, asynchronous=False)
    recorder.start_at = None
    member, told = await world.member(recorder)
    await told.until(lambda: told.owned == ALL, "all")
    assert await member.prove(0) is True
    assert [each.offset for each in earlier.committed(at, 10)] == [5]
    member.commit_hint(0, 9)
    await eventually(world, lambda: [each.offset for each in earlier.committed(at, 10)] == [9], "the hint arrives")
    earlier.close()


class Stall:
    """Stops a membership's thread in its tracks, before its next poll: within one, where the group's callbacks are, its client would go on as if all were well."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.go_on.set()

    def make(self, settings: KafkaSettings, on_commit: OnCommit) -> Consumer:
        go_on = self.go_on

        class Stalling(Consumer):
            def poll(self, timeout: float = -1) -> Message | None:
                go_on.wait()
                return super().poll(timeout)

        return Stalling({**membership_config(settings), "on_commit": on_commit})


@BOTH
@SHORT_SESSION
async def test_given_thread_stalls_beyond_the_session_then_guard_lapses_first_and_lost_is_told(world: World) -> None:
    stall = Stall()
    first, told_first = await world.member(make=stall.make)
    await told_first.until(lambda: told_first.owned == ALL, "the first has all")
    _, told_second = await world.member()
    await told_second.until(lambda: len(told_second.owned) == 4, "half")
    await told_first.until(lambda: len(told_first.owned) == 4, "half")
    await eventually(world, first.guard_holds, "the guard holds")

    stall.go_on.clear()
    try:
        await eventually(world, lambda: not first.guard_holds(), "the guard lapses")
        owned_by_second_at_lapse = set(told_second.owned)
        await told_second.until(lambda: told_second.owned == ALL, "the second takes over")
    finally:
        stall.go_on.set()
    await told_first.until(lambda: "lost" in told_first.names(), "the loss is told")

    assert len(owned_by_second_at_lapse) == 4, "the guard ended before anybody else was given anything"
    await told_first.until(lambda: len(told_first.owned) == 4, "the first comes back")
    await eventually(world, first.guard_holds, "and proves it")


@pytest.mark.parametrize(
    ("protocol", "longer_ms"),
    [pytest.param("classic", None, id="classic"), pytest.param("consumer", LONG_SESSION_MS, id="consumer")],
)
@SHORT_SESSION
async def test_given_thread_stalls_while_a_rebalance_asks_it_to_give_then_guard_lapses_first(
    world: World, longer_ms: int | None
) -> None:
    """A rebalance waits for a silent member no longer than its poll gap, however long its session is: KIP-848's are."""
    if longer_ms is not None:
        await world.lengthen_session(longer_ms)
    stall = Stall()
    first, told_first = await world.member(make=stall.make)
    await told_first.until(lambda: told_first.owned == ALL, "the first has all")
    await eventually(world, first.guard_holds, "the guard holds")

    stall.go_on.clear()
    try:
        _, told_second = await world.member()
        await told_second.until(lambda: bool(told_second.owned), "the second is given something")
        held = first.guard_holds()
    finally:
        stall.go_on.set()
    assert not held, "the guard ended before anybody else was given anything"
    await told_first.until(lambda: len(told_first.owned) == 4, "the first comes back")


@BOTH
@SHORT_SESSION
async def test_given_process_is_suspended_beyond_the_session_then_it_learns_its_loss_when_it_wakes(
    world: World,
) -> None:
    member = await Suspendable.join(world.settings)
    try:
        await member.heard("guarded")
        member.suspend()
        _, told = await world.member()
        await told.until(lambda: told.owned == ALL, "the other takes over from the suspended one")
        member.resume()
        woken = await member.heard("woken")
        # A revocation where the client assigned a position between the coordinator's word and its own callback: it forgets that it is a loss.
        lost = await member.heard("lost", "revoked")
        await member.heard("assigned", times=2)
    finally:
        await member.end()

    assert woken["guard_holds"] is False
    assert lost["guard_holds"] is False


@BOTH
@SHORT_SESSION
async def test_given_process_is_killed_then_its_share_moves_within_the_bound(world: World) -> None:
    member = await Suspendable.join(world.settings)
    try:
        await member.heard("guarded")
        _, told = await world.member()
        await told.until(lambda: len(told.owned) == 4, "the other has its half")
        killed_at = world.clock.monotonic_ms()
        member.kill()
        await told.until(lambda: told.owned == ALL, "the other has all")
    finally:
        await member.end()

    took_ms = world.clock.monotonic_ms() - killed_at
    assert took_ms <= group_session(world.settings).take_over_ms + MACHINE_MS * slowness()


@pytest.mark.parametrize("session_ms", [pytest.param(6_000, id="session of 6 s")])
async def test_given_a_process_that_fell_and_came_back_at_once_then_it_waits_before_all_others_have_to(
    world: World,
) -> None:
    """It joined at once, and the guards of all others lapsed while the rebalance waited for its former session (published run of 2026-11-30)."""
    cluster = world.settings
    world.settings = cluster.model_copy(update={"client_id": client_id(cluster, "n-1", "0a1b2c3d")})
    fallen = await Suspendable.join(world.settings)
    try:
        await fallen.heard("guarded")
        world.settings = cluster.model_copy(update={"client_id": client_id(cluster, "n-2", "99999999")})
        _, other = await world.member()
        await other.until(lambda: len(other.owned) == 4, "the other has its half")
        fallen.kill()
        now = world.clock.monotonic_ms()
        former = PreviousIncarnation(cluster, "n-1", now)
        assert await asyncio.to_thread(former.is_in_the_way, now)
        assert not await asyncio.to_thread(PreviousIncarnation(cluster, "n-3", now).is_in_the_way, now)

        world.settings = cluster.model_copy(update={"client_id": client_id(cluster, "n-1", "f0e1d2c3")})
        _, back = await world.member(former=former)
        await back.until(lambda: len(back.owned) == 4, "what fell is back")
    finally:
        await fallen.end()

    (waited,) = [fields["waited_ms"] for event, fields in world.notices if event == "former_life_awaited"]
    assert isinstance(waited, int)
    assert waited > 0


async def test_given_both_protocols_in_one_group_then_a_node_after_the_other_changes_over(world: World) -> None:
    """A rolling change of the setting: nodes of the old and of the new protocol share meanwhile."""
    old, told_old = await world.member()
    await told_old.until(lambda: told_old.owned == ALL, "the old one has all")
    world.settings = world.settings.model_copy(update={"group_protocol": "consumer"})
    new, told_new = await world.member()
    await told_new.until(lambda: len(told_new.owned) == 4, "the new one has its half")
    await told_old.until(lambda: len(told_old.owned) == 4, "the old one gave half")
    assert told_old.owned | told_new.owned == ALL
    await eventually(world, lambda: old.guard_holds() and new.guard_holds(), "both are proven members")
    assert await old.stop()
    await told_new.until(lambda: told_new.owned == ALL, "the new one has all")
    assert "lost" not in told_old.names() + told_new.names()


@BOTH
@SHORT_SESSION
async def test_given_broker_stops_then_guard_lapses_and_all_goes_on_when_it_is_back(
    fragile_world: World, stoppable_kafka: KafkaBrick
) -> None:
    member, told = await fragile_world.member()
    await told.until(lambda: told.owned == ALL, "all")
    await eventually(fragile_world, member.guard_holds, "the guard holds")
    await asyncio.to_thread(write, fragile_world, 3)
    await told.until(lambda: len(told.got) == 3, "records")

    await asyncio.to_thread(stoppable_kafka.stop)
    await eventually(fragile_world, lambda: not member.guard_holds(), "the guard lapses")
    assert await member.prove(0) is not True
    await asyncio.to_thread(stoppable_kafka.start)

    await eventually(fragile_world, member.guard_holds, "the guard holds again")
    await told.until(lambda: told.owned == ALL, "all is owned")
    told.got.clear()
    await asyncio.to_thread(write, fragile_world, 2)
    await told.until(lambda: [each.value for each in told.got][-2:] == [b"0", b"1"], "records flow again")
    assert not [each for each in fragile_world.notices if each[0] == "kafka_client_failed"]


@SHORT_SESSION
async def test_given_broker_is_away_then_stop_still_ends(fragile_world: World, stoppable_kafka: KafkaBrick) -> None:
    member, told = await fragile_world.member()
    await told.until(lambda: told.owned == ALL, "all")
    await asyncio.to_thread(stoppable_kafka.kill)
    assert await member.stop()
    assert told.owned == set()


async def test_given_retention_passed_the_position_then_it_is_reported_and_nothing_jumps(world: World) -> None:
    await asyncio.to_thread(write, world, 10)
    name = world.settings.topic("requests")
    client = AdminClient({"bootstrap.servers": world.settings.bootstrap_servers})
    for future in client.delete_records([TopicPartition(name, 0, 6)]).values():
        await asyncio.to_thread(future.result, 20)

    member, told = await world.member()
    await told.until(lambda: "position_gone" in told.names(), "the loss of the position")
    assert ("position_gone", (0, 0)) in told.events
    assert told.got == []
    assert await member.prove(0) is True, "membership has nothing to do with it"

    member.seek_and_resume(0, 6)
    await told.until(lambda: len(told.got) == 4, "the rest, on explicit order")
    assert [each.offset for each in told.got] == [6, 7, 8, 9]


async def test_given_records_are_not_taken_then_the_flow_stops_at_its_bound_and_goes_on_with_credit(
    world: World, recorder: Recorder
) -> None:
    world.settings = world.settings.model_copy(update={"in_flight_records_max": 10, "batch_records_max": 5})
    await asyncio.to_thread(write, world, 100)
    await asyncio.to_thread(write, world, 1, 1)
    recorder.takes = False
    recorder.start_at = lambda number: 0 if number == 0 else 1_000_000
    member, told = await world.member(recorder)
    await told.until(lambda: len(told.got) >= 10, "the first records")

    def of_zero() -> list[int]:
        return [each.offset for each in told.got if each.topic_partition == 0]

    member.seek_and_resume(1, 0)
    await told.until(lambda: any(each.topic_partition == 1 for each in told.got), "another topic partition's record")
    assert len(of_zero()) < 15, "the bound, and at most the batch that reached it"

    while len(of_zero()) < 100:
        before = len(of_zero())
        member.taken(0, before)
        await told.until(lambda before=before: len(of_zero()) > before, "more, with credit")  # type: ignore[misc]  # bound now, not at the call
    assert of_zero() == list(range(100))


async def test_given_seek_while_records_flow_then_only_the_new_position_is_seen(
    world: World, recorder: Recorder
) -> None:
    await asyncio.to_thread(write, world, 1_000)
    member, told = await world.member(recorder)
    await told.until(lambda: len(told.got) > 0, "records")
    for start in (500, 0, 990):
        member.seek_and_resume(0, start)
        told.got.clear()
        await told.until(lambda: bool(told.got) and told.got[-1].offset == 999, "the end")
        assert [each.offset for each in told.got] == list(range(start, 1_000))


async def test_given_record_then_all_its_parts_arrive(world: World) -> None:
    topic = await world.topic("requests")
    producer = Producer({"bootstrap.servers": world.settings.bootstrap_servers})
    producer.produce(topic.name, None, b"key", 2, headers=[("a", b"1"), ("a", None), ("b", "text")])
    assert producer.flush(PATIENCE_S) == 0
    now = SystemClock().now_ms()
    _, told = await world.member()
    await told.until(lambda: len(told.got) == 1, "the record")
    record = told.got[0]
    assert (record.topic, record.topic_id, record.topic_partition, record.offset) == (topic.name, topic.id, 2, 0)
    assert (record.key, record.value) == (b"key", None)
    assert record.headers == (("a", b"1"), ("a", b""), ("b", b"text"))
    assert abs(record.append_time_ms - now) < 60_000
