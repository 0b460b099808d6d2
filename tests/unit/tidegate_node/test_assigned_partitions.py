"""What the group gives and takes: a driver each, pokes and records to the one that they concern."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tidegate_core.engine.actor_inputs import (
    Begin,
    Drain,
    Input,
    LogRecord,
    Migrated,
    OffsetOutOfRange,
    RecordsArrived,
    Woken,
)
from tidegate_core.rows.effects import EffectRequest, StartReading, WakeUp
from tidegate_core.rows.schema_version import NEWEST
from tidegate_node.assigned_partitions import AssignedPartitions, GroupListener, OthersListener
from tidegate_node.node_identity import NodeFacts
from tidegate_node.partition_driver import DriverEvents, PartitionDriver
from tidegate_node.topics.wakeup_records import Beat, beat_record, poke_record
from tidegate_ports.bus import END, Record

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


class QuietActor:
    """Reads its two topic partitions; ends when it is drained, unless it is told to be slow."""

    def __init__(self, number: int, slow: bool) -> None:
        self._number = number
        self.given: list[Input] = []
        self.is_serving = False
        self.has_ended = False
        self.writes = NEWEST
        self.behind: int | None = 0
        self._slow = slow

    def step(self, now: int, incoming: Input) -> list[EffectRequest]:
        self.given.append(incoming)
        self.is_serving = True
        self.has_ended |= isinstance(incoming, Drain) and not self._slow
        if not isinstance(incoming, Begin):
            return []
        reading = (
            StartReading("tidegate.requests", self._number, 0, "a", 1),
            StartReading("tidegate.events", self._number + 4, 0, "b", 1),
            StartReading("lake", self._number + 4, 0, "c", 1),
        )
        return [EffectRequest(0, each) for each in reading]

    def next_wake(self) -> int | None:
        return None

    def awaits(self, token: int) -> bool:
        return True

    def served_until(self, now: int) -> int | None:
        return None if self.behind is None else now - self.behind


class PendingDrain:
    """A revocation that notes when it is done."""

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.times_done = 0

    def done(self) -> None:
        self.times_done += 1


class World:
    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.facts: NodeFacts = around.facts
        self.slow = False
        self.actors: dict[int, list[QuietActor]] = {}
        self.beats: list[Beat] = []
        loop = asyncio.get_running_loop()
        self.holdings = AssignedPartitions(self.facts, around.standing_still, around.clock, around.notes, loop)
        self.holdings.connect(self._make, around.bus, self)
        self.group, self.others = GroupListener(self.holdings), OthersListener(self.holdings)

    def heard(self, beat: Beat) -> None:
        self.beats.append(beat)

    def given(self, number: int) -> list[Input]:
        return self.actors[number][-1].given

    def drain(self, left_ms: int = 60_000) -> PendingDrain:
        return PendingDrain(self.around.clock.monotonic_ms() + left_ms)

    def record(self, topic: str, topic_partition: int, value: bytes | None, offset: int = 5) -> Record:
        return Record(topic, "id", topic_partition, offset, 77, b"k", value, (("h", b"v"),))

    def _make(self, number: int) -> PartitionDriver:
        def actor() -> QuietActor:
            made = QuietActor(number, self.slow)
            self.actors.setdefault(number, []).append(made)
            return made

        events = DriverEvents(lambda *_: None, lambda _: None)
        return PartitionDriver(number, actor, self.around.shell(), events, asyncio.get_running_loop())


@pytest.fixture
async def world(around: Surroundings) -> World:
    return World(around)


async def test_given_an_assignment_then_each_is_driven_and_its_pokes_are_read(world: World, until: Any) -> None:
    world.group.assigned([1, 3])

    await until(lambda: world.holdings.serving == {1, 3}, "both serve")
    assert world.holdings.held == {1, 3}
    assert world.holdings.shards(world.holdings.held) == 4
    assert [call for call in world.around.bus.calls if call[:2] == ("assign", "tidegate.pokes")] == [
        ("assign", "tidegate.pokes", 1, END),
        ("assign", "tidegate.pokes", 3, END),
    ]
    assert world.given(1) == [Begin()]


async def test_given_what_is_held_or_was_then_each_has_its_last_sign_of_life(world: World, until: Any) -> None:
    world.group.assigned([1, 3])
    await until(lambda: world.holdings.serving == {1, 3}, "both serve")
    now = world.around.clock.now_ms()
    assert world.holdings.served(now - 1_000) == {"1": now - 1_000, "3": now - 1_000}
    world.actors[3][0].behind = 500
    assert world.holdings.served(now) == {"1": now, "3": now - 500}
    world.actors[1][0].behind = None
    world.group.lost([3])
    assert world.holdings.served(now + 10_000) == {"1": now, "3": now - 500}


@pytest.mark.parametrize("how", ["lost", "revoked", "given anew"])
async def test_given_what_was_held_for_less_than_a_beat_then_it_has_its_last_sign_of_life_too(
    world: World, until: Any, how: str
) -> None:
    """Seed 831315: without one, whoever came next took the process's other signs for those of this."""
    world.group.assigned([1])
    await until(lambda: world.holdings.serving == {1}, "it serves")
    world.actors[1][0].behind = 300
    at = world.around.clock.now_ms()
    if how == "lost":
        world.group.lost([1])
    elif how == "revoked":
        world.group.revoked([1], drain := world.drain())
        await until(lambda: drain.times_done == 1, "done")
    else:
        world.group.assigned([1])
        world.actors[1][1].behind = None
    assert world.holdings.served(at + 20_000) == {"1": at - 300}


async def test_given_a_revocation_then_it_is_done_once_all_are_drained(world: World, until: Any) -> None:
    world.group.assigned([0, 1, 2])
    drain = world.drain()

    world.group.revoked([0, 2], drain)

    await until(lambda: drain.times_done == 1, "done")
    assert world.holdings.held == {1}
    assert ("unassign", "tidegate.pokes", 2) in world.around.bus.calls


async def test_given_a_revocation_of_what_is_not_held_then_it_is_done_at_once(world: World) -> None:
    drain = world.drain()

    world.group.revoked([2], drain)

    assert drain.times_done == 1


async def test_given_a_drain_that_takes_too_long_then_it_is_cut_at_its_deadline(world: World, until: Any) -> None:
    world.slow = True
    world.group.assigned([0])
    drain = world.drain(left_ms=30)

    world.group.revoked([0], drain)
    assert world.holdings.held == {0}

    await until(lambda: drain.times_done == 1, "cut")
    assert world.holdings.held == frozenset()


async def test_given_a_revocation_amid_a_planned_end_then_both_are_done_once_what_they_wait_for_is_drained(
    world: World, until: Any
) -> None:
    """Review: the later one was told alone, and the planned end stood until its deadline with all of it drained and nobody to serve it."""
    world.slow = True
    world.group.assigned([0, 1])
    await until(lambda: world.holdings.serving == {0, 1}, "both serve")
    planned, taken = world.drain(), world.drain()
    world.group.revoked([0, 1], planned)
    world.group.revoked([0], taken)
    await until(lambda: all(isinstance(world.given(number)[-1], Drain) for number in (0, 1)), "both drain")

    def end(number: int) -> None:
        world.actors[number][-1].has_ended = True
        world.holdings.poke(Woken(number))

    end(0)
    await until(lambda: taken.times_done == 1, "the revocation")
    assert planned.times_done == 0
    end(1)
    await until(lambda: planned.times_done == 1, "the planned end")
    assert taken.times_done == 1


async def test_given_a_revocation_amid_a_planned_end_that_is_cut_then_the_planned_end_waits_for_the_rest_alone(
    world: World, until: Any
) -> None:
    world.slow = True
    world.group.assigned([0])
    await until(lambda: world.holdings.serving == {0}, "it serves")
    planned = world.drain()
    world.group.revoked([0], planned)
    taken = world.drain(10)
    world.group.revoked([0], taken)
    await until(lambda: planned.times_done == 1, "the planned end")
    assert (taken.times_done, world.holdings.held) == (1, frozenset())


async def test_given_a_loss_during_a_drain_and_a_new_assignment_then_the_new_one_is_not_touched(
    world: World, until: Any
) -> None:
    world.slow = True
    world.group.assigned([0])
    drain = world.drain(left_ms=30)
    world.group.revoked([0], drain)
    world.group.lost([0])
    world.slow = False
    world.group.assigned([0])

    await until(lambda: drain.times_done == 1, "the old drain is over")

    await until(lambda: world.holdings.serving == {0}, "the new one serves")
    assert len(world.actors[0]) == 2


async def test_given_a_loss_then_everything_is_dropped_at_once(world: World, until: Any) -> None:
    world.group.assigned([0, 1])

    world.group.lost([0, 1, 2])

    assert world.holdings.held == frozenset()
    assert "lost" in world.around.notes.names()


async def test_given_an_assignment_of_what_is_held_already_then_it_begins_anew(world: World, until: Any) -> None:
    world.group.assigned([0])
    await until(lambda: world.holdings.serving == {0}, "serving")

    world.group.assigned([0])

    await until(lambda: len(world.actors[0]) == 2 and world.given(0), "anew")
    assert world.given(0) == [Begin()]


@pytest.mark.parametrize("timed_by_broker", [True, False])
async def test_given_a_users_topic_then_only_the_brokers_times_are_believed(
    world: World, until: Any, timed_by_broker: bool
) -> None:
    """A producer's own may be any; the events topic is ours, and its times were looked at when the node started."""
    world.group.assigned([1])
    await until(lambda: world.holdings.serving == {1}, "it reads")

    for topic in ("lake", "tidegate.events"):
        record = world.record(topic, 5, b"v")._replace(timed_by_broker=timed_by_broker)
        world.others.records(topic, 5, [record])

    await until(lambda: len(world.given(1)) == 3, "both")
    times = [each.records[0].append_time for each in world.given(1) if isinstance(each, RecordsArrived)]
    assert times == [77 if timed_by_broker else world.around.clock.now_ms(), 77]


async def test_given_records_then_they_go_to_the_holder(world: World, until: Any) -> None:
    world.group.assigned([1])
    await until(lambda: world.holdings.serving == {1}, "it reads")
    record = LogRecord(5, 77, b"k", b"v", (("h", b"v"),))

    world.group.records(1, [world.record("tidegate.requests", 1, b"v")])
    world.others.records("tidegate.events", 5, [world.record("tidegate.events", 5, b"v")])
    world.group.position_gone(1, 9)
    world.others.position_gone("tidegate.events", 5, 4)
    world.group.records(2, [world.record("tidegate.requests", 2, b"v")])
    world.others.position_gone("tidegate.events", 6, 4)

    await until(lambda: len(world.given(1)) == 5, "all of them")
    assert world.given(1)[1:] == [
        RecordsArrived("tidegate.requests", 1, (record,), "id"),
        RecordsArrived("tidegate.events", 5, (record,), "id"),
        OffsetOutOfRange("tidegate.requests", 1, 9),
        OffsetOutOfRange("tidegate.events", 5, 4),
    ]
    # Neither topic partition 2 of the requests nor 6 of the events is held here.
    assert world.around.standing_still.positions == {("tidegate.requests", 1): 9, ("tidegate.events", 5): 4}


async def test_given_pokes_and_beats_then_each_finds_its_taker_and_the_flow_goes_on(world: World, until: Any) -> None:
    world.group.assigned([1])
    beat = Beat("other", 1, 2)
    values = [
        poke_record(WakeUp(5, "0005-x"), world.facts).value,
        beat_record(beat, world.facts, 1).value,
        b"nonsense",
        b"[" * 1_024,
        poke_record(WakeUp(6), world.facts).value,
    ]

    world.others.records("tidegate.pokes", 1, [world.record("tidegate.pokes", 1, value) for value in values])

    await until(lambda: len(world.given(1)) == 2, "the poke")
    assert world.given(1)[1] == Woken(5, "0005-x")
    assert world.beats == [beat]
    assert world.around.notes.names().count("poke_unreadable") == 2
    assert ("taken", "tidegate.pokes", 1, 5) in world.around.bus.calls


async def test_given_pokes_that_were_cut_off_then_reading_goes_on_at_the_end(world: World) -> None:
    world.group.assigned([1])

    world.others.position_gone("tidegate.pokes", 1, 4)

    assert world.around.bus.calls.count(("assign", "tidegate.pokes", 1, END)) == 2
    assert world.around.standing_still.positions == {}


async def test_given_shards_then_only_those_of_this_process_are_poked_here(world: World) -> None:
    world.group.assigned([1])

    assert world.holdings.poke(Woken(5))
    assert not world.holdings.poke(Woken(6))


async def test_given_an_assignment_beyond_the_map_then_nothing_is_driven_for_it(world: World, until: Any) -> None:
    """The requests topic has grown, the map has not: its shards are counted by the map, and have their holders."""
    beyond = world.facts.cluster.topic_partitions

    world.group.assigned([1, beyond])

    await until(lambda: world.holdings.serving == {1}, "the one within the map serves")
    assert world.holdings.held == {1}
    assert ("beyond_the_map", {"topic_partitions": [beyond]}) in world.around.notes.said
    drain = world.drain()
    world.group.revoked([beyond], drain)
    assert drain.times_done == 1


async def test_given_a_map_that_grew_then_all_is_handed_over_and_begun_anew_with_what_was_beyond_it(
    world: World, until: Any
) -> None:
    cluster = world.facts.cluster
    world.group.assigned([1, cluster.topic_partitions])
    await until(lambda: world.holdings.serving == {1}, "the one within the map serves")
    former = world.actors[1][-1]

    world.holdings.follow(cluster.grown_to(cluster.topic_partitions + 1))

    await until(lambda: world.holdings.serving == {1, cluster.topic_partitions}, "both serve under the next map")
    assert isinstance(former.given[-1], Drain)
    assert world.actors[1][-1] is not former
    assert world.holdings.beyond_the_map == frozenset()
    assert set(world.holdings.served(world.around.clock.now_ms())) == {"1", "2:1", f"2:{cluster.topic_partitions}"}


async def test_given_more_holders_than_topic_partitions_of_pokes_then_each_reads_where_pokes_for_it_are(
    world: World,
) -> None:
    """Both reader and sender count by the map: pokes for holder 5 of 6 lie in topic partition 1 of 4."""
    world.group.assigned([0, 1])
    world.holdings.follow(world.facts.cluster.grown_to(6))
    assert poke_record(WakeUp(5), world.facts).topic_partition == 1
    calls = world.around.bus.calls
    calls.clear()

    world.group.assigned([5])
    assert ("assign", "tidegate.pokes", 1, END) in calls
    world.group.lost([5])
    assert not [call for call in calls if call[0] == "unassign" and call[1] == "tidegate.pokes"]
    world.group.lost([1])
    assert ("unassign", "tidegate.pokes", 1) in calls


async def test_given_a_revocation_amid_the_change_of_the_map_then_it_is_not_begun_anew(
    world: World, until: Any
) -> None:
    world.slow = True
    cluster = world.facts.cluster
    world.group.assigned([1])
    await until(lambda: world.holdings.serving == {1}, "it serves")
    world.holdings.follow(cluster.grown_to(cluster.topic_partitions + 1))
    drain = world.drain()
    world.group.revoked([1], drain)
    assert drain.times_done == 0

    world.actors[1][-1].has_ended = True
    world.actors[1][-1].step = _ended  # type: ignore[method-assign]
    world.holdings.poke(Woken(1))

    await until(lambda: drain.times_done == 1, "the revocation is done")
    await asyncio.sleep(0)
    assert world.holdings.held == frozenset()
    assert len(world.actors[1]) == 1


def _ended(now: int, incoming: Input) -> list[EffectRequest]:
    return []


async def test_given_a_newer_version_of_rows_then_those_actors_hear_of_it_that_write_an_older_one(world: World) -> None:
    world.holdings.assigned([0, 1])
    await asyncio.sleep(0)
    world.actors[1][-1].writes = NEWEST - 1
    assert world.holdings.writes() == NEWEST - 1

    world.holdings.migrated(NEWEST)
    await asyncio.sleep(0)

    assert [given for given in world.given(1) if isinstance(given, Migrated)] == [Migrated(NEWEST)]
    assert [given for given in world.given(0) if isinstance(given, Migrated)] == []


async def test_given_nothing_that_is_held_then_nothing_older_is_written(world: World) -> None:
    assert world.holdings.writes() == NEWEST
