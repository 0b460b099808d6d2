"""A transaction that a producer left open is reported once, with its place and age, until it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate_core.effects import EndOffsets, Unavailable
from tidegate_telemetry.metrics import Metrics
from tidegate_telemetry.open_transactions import OWN_PATIENCE_MS, Followed, OpenTransactions

ID = "cd" * 16
REQUESTS = Followed("tidegate.requests", ID, OWN_PATIENCE_MS)


@dataclass
class ManualClock:
    now: int = 1_772_000_000_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now

    def pass_ms(self, milliseconds: int) -> None:
        self.now += milliseconds


@dataclass
class Broker:
    """Ends, stable ends and append times as a test sets them."""

    ends: EndOffsets | Unavailable = field(default_factory=lambda: EndOffsets({f"{ID}/0": 9, f"{ID}/1": 9}))
    stable: EndOffsets | Unavailable = field(default_factory=lambda: EndOffsets({f"{ID}/0": 9, f"{ID}/1": 9}))
    appended: int | None = None
    asked: list[str] = field(default_factory=list)

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        self.asked.append("end")
        return self.ends

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        self.asked.append("stable")
        return self.stable

    async def begin_offsets(self, topic: str) -> Any:
        raise NotImplementedError

    async def describe(self, names: object) -> Any:
        raise NotImplementedError

    async def next_records(self, topic: str, topic_id: str, begins: Mapping[int, int]) -> Any:
        raise NotImplementedError

    async def appended_at(self, topic: str, topic_partition: int, offset: int) -> int | None:
        self.asked.append(f"record {offset}")
        return self.appended


class World:
    """A process that reads the requests topic."""

    def __init__(self) -> None:
        self.broker, self.clock, self.metrics = Broker(), ManualClock(), Metrics()
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.followed = [REQUESTS]
        self.mine = {0, 1}
        self.transactions = OpenTransactions(
            lambda: self.followed,
            lambda number: number in self.mine,
            self.broker,
            self.broker,
            self.clock,
            self.metrics,
            lambda event, **fields: self.said.append((event, fields)),
        )

    async def look(self, after_ms: int = 0) -> None:
        self.clock.pass_ms(after_ms)
        await self.transactions.look()

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.said]

    @property
    def gauge(self) -> float:
        return self.metrics.value("tidegate_open_transactions", topic=REQUESTS.name)


@pytest.fixture
def world() -> World:
    return World()


def stable(*offsets: int) -> EndOffsets:
    return EndOffsets({f"{ID}/{number}": offset for number, offset in enumerate(offsets)})


async def test_given_an_open_transaction_then_it_is_reported_once_with_place_age_and_remedy_until_it_is_over(
    world: World,
) -> None:
    world.broker.stable = stable(4, 9)
    world.broker.appended = world.clock.now_ms() - 3_000
    for _ in range(4):
        await world.look(after_ms=5_000)
    ((name, fields),) = world.said
    assert name == "transaction_open"
    assert (fields["topic"], fields["topic_partition"], fields["offset"]) == (REQUESTS.name, 0, 4)
    assert fields["since"] == world.broker.appended
    assert fields["command"].endswith("abort --topic tidegate.requests --partition 0 --start-offset 4")
    assert world.gauge == 1
    (line,) = world.transactions.reasons()
    assert "topic tidegate.requests, topic partition 0: a transaction is open since " in line
    assert world.broker.asked.count("record 4") == 1

    world.broker.stable = stable(9, 9)
    await world.look()
    assert world.names == ["transaction_open", "transaction_over"]
    assert (world.gauge, world.transactions.reasons()) == (0, [])


async def test_given_transactions_that_follow_each_other_then_none_is_reported(world: World) -> None:
    """Each is over before it is old enough, whatever look finds one open."""
    for offset in range(8):
        world.broker.stable = stable(offset, 9)
        await world.look(after_ms=OWN_PATIENCE_MS - 1)
    assert (world.said, world.gauge) == ([], 0)


async def test_given_a_log_that_grows_between_the_questions_then_nothing_is_open(world: World) -> None:
    world.broker.stable = stable(20, 20)
    for _ in range(4):
        await world.look(after_ms=OWN_PATIENCE_MS)
    assert world.said == []
    assert world.broker.asked[:2] == ["end", "stable"], "the other way round each append looked like a transaction"


async def test_given_nobody_knows_when_it_began_then_its_age_counts_from_the_first_look(world: World) -> None:
    world.broker.stable = stable(9, 4)
    await world.look()
    first = world.clock.now_ms()
    await world.look(after_ms=OWN_PATIENCE_MS - 1)
    assert world.said == []
    await world.look(after_ms=1)
    assert world.said[0][1]["since"] == first


async def test_given_the_brokers_do_not_answer_then_what_is_known_stays_reported(world: World) -> None:
    world.broker.stable = stable(4, 9)
    await world.look()
    await world.look(after_ms=OWN_PATIENCE_MS)
    world.broker.stable = Unavailable("broker")
    await world.look()
    world.broker.ends = Unavailable("broker")
    await world.look()
    assert (world.names, world.gauge) == (["transaction_open"], 1)


async def test_given_another_process_reads_it_or_the_topic_is_another_one_then_it_is_not_reported_here(
    world: World,
) -> None:
    world.broker.stable = stable(4, 4)
    world.mine = {1}
    await world.look()
    await world.look(after_ms=OWN_PATIENCE_MS)
    assert [fields["topic_partition"] for _, fields in world.said] == [1]
    world.followed = [REQUESTS._replace(id="ef" * 16)]
    await world.look()
    assert (world.names, world.gauge) == (["transaction_open", "transaction_over"], 0)


async def test_given_a_topic_that_is_not_read_any_more_then_its_transactions_are_over_here(world: World) -> None:
    world.broker.stable = stable(4, 4)
    await world.look()
    await world.look(after_ms=OWN_PATIENCE_MS)
    world.followed = []
    await world.look()
    assert world.names == ["transaction_open"] * 2 + ["transaction_over"] * 2
    assert world.gauge == 0
