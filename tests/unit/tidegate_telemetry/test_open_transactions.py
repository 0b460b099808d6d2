"""A transaction that a producer left open is reported once, with its place and age, until it is over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_telemetry import open_transactions
from tidegate_telemetry.log_events import LOG_EVENTS
from tidegate_telemetry.metrics import Metrics
from tidegate_telemetry.open_transactions import (
    LOOK_EVERY_S,
    OWN_PATIENCE_MS,
    QUESTIONS_MAX,
    SOURCES_AT_ONCE,
    UNANSWERED_MAX,
    USERS_PATIENCE_MS,
    Followed,
    OpenTransactions,
)

ID = "cd" * 16
REQUESTS = Followed("tidegate.requests", ID, is_own=True)
ORDERS = Followed("orders", ID, is_own=False)
LOOK_EVERY_MS = int(LOOK_EVERY_S * 1000)


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
    topics: list[str] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    """Topics for which no answer ever comes."""
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        self.asked.append("end")
        self.topics.append(topic)
        self.was_asked.set()
        if topic in self.silent:
            await asyncio.Event().wait()
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
        self.mine = set(range(20))
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


async def test_given_a_second_transaction_that_hung_as_long_then_no_check_says_that_all_is_well(world: World) -> None:
    """The older one ended, and for one check `/readyz` was ok and the log said that it was over."""
    began = world.clock.now_ms()
    world.broker.stable, world.broker.appended = stable(4, 9), began
    for _ in range(4):
        await world.look(after_ms=LOOK_EVERY_MS)
    world.broker.stable, world.broker.appended = stable(6, 9), began + 1_000
    await world.look(after_ms=LOOK_EVERY_MS)
    assert world.names == ["transaction_open", "transaction_open"]
    assert [(fields["offset"], fields["since"]) for _, fields in world.said] == [(4, began), (6, began + 1_000)]
    assert (world.gauge, len(world.transactions.reasons())) == (1, 1)


async def test_given_a_second_transaction_that_is_young_then_the_report_ends(world: World) -> None:
    world.broker.stable = stable(4, 9)
    for _ in range(4):
        await world.look(after_ms=LOOK_EVERY_MS)
    world.broker.stable, world.broker.appended = stable(6, 9), world.clock.now_ms()
    await world.look(after_ms=LOOK_EVERY_MS)
    assert (world.names, world.gauge) == (["transaction_open", "transaction_over"], 0)


async def test_given_a_second_transaction_of_unknown_age_then_it_stays_reported_until_its_age_is_known(
    world: World,
) -> None:
    world.broker.stable = stable(4, 9)
    for _ in range(3):
        await world.look(after_ms=LOOK_EVERY_MS)
    world.broker.stable = stable(6, 9)
    await world.look(after_ms=LOOK_EVERY_MS)
    assert world.gauge == 1
    world.broker.appended = world.clock.now_ms()
    await world.look()
    assert (world.gauge, world.names[-1]) == (0, "transaction_over")


async def test_given_ages_that_nobody_tells_then_transactions_that_follow_each_other_do_not_stay_reported(
    world: World,
) -> None:
    world.broker.stable = stable(0, 9)
    for _ in range(3):
        await world.look(after_ms=LOOK_EVERY_MS)
    assert world.gauge == 1
    for offset in range(1, 2 + UNANSWERED_MAX):
        world.broker.stable = stable(offset, 9)
        await world.look(after_ms=LOOK_EVERY_MS)
    assert (world.gauge, world.names[-1]) == (0, "transaction_over")


async def test_given_a_broker_that_was_silent_once_then_the_append_time_is_asked_for_again_and_not_for_ever(
    world: World,
) -> None:
    """One silence left `since` at the first check for as long as the transaction hung."""
    began = world.clock.now_ms() - 600_000
    world.broker.stable = stable(4, 9)
    for _ in range(3):
        await world.look(after_ms=LOOK_EVERY_MS)
    assert world.transactions.told[0].since > began
    world.broker.appended = began
    for _ in range(3):
        await world.look(after_ms=LOOK_EVERY_MS)
    assert world.transactions.told[0].since == began
    assert world.broker.asked.count("record 4") == 3

    world.broker.stable, world.broker.appended = stable(9, 5), None
    for _ in range(3 + UNANSWERED_MAX):
        await world.look(after_ms=LOOK_EVERY_MS)
    assert world.broker.asked.count("record 5") == UNANSWERED_MAX


async def test_given_a_long_transaction_in_a_sources_topic_then_it_is_a_warning_and_no_reason(world: World) -> None:
    """A sink that commits every 5 minutes made `/readyz` 503 for four of them."""
    world.followed = [ORDERS]
    world.broker.stable = stable(4, 9)
    await world.look()
    await world.look(after_ms=USERS_PATIENCE_MS - 1)
    assert world.said == []
    await world.look(after_ms=1)
    ((name, fields),) = world.said
    assert (name, fields["topic"], fields["offset"]) == ("source_transaction_open", "orders", 4)
    assert LOG_EVENTS[name].level == "warning"
    assert world.metrics.value("tidegate_open_transactions", topic="orders") == 1
    (line,) = world.transactions.waits()
    assert "topic orders, topic partition 0: a transaction is open since " in line
    assert world.transactions.reasons() == []


async def test_given_a_transaction_then_its_append_time_is_asked_for_when_it_is_nearly_old_enough(
    world: World,
) -> None:
    """Each answer costs a client; most transactions of a source are over long before."""
    world.followed = [ORDERS]
    world.broker.stable = stable(4, 9)
    await world.look()
    await world.look(after_ms=USERS_PATIENCE_MS - LOOK_EVERY_MS - 1)
    assert "record 4" not in world.broker.asked
    await world.look(after_ms=1)
    assert world.broker.asked.count("record 4") == 1


async def test_given_many_topic_partitions_then_a_round_asks_for_few_append_times_and_all_are_reported(
    world: World,
) -> None:
    count = 3 * QUESTIONS_MAX
    world.broker.ends, world.broker.stable = stable(*[9] * count), stable(*[4] * count)
    world.broker.appended = world.clock.now_ms() - 1_000
    for _ in range(2):
        await world.look(after_ms=LOOK_EVERY_MS)
    assert world.broker.asked.count("record 4") == QUESTIONS_MAX
    for _ in range(2):
        await world.look(after_ms=LOOK_EVERY_MS)
    assert (world.gauge, world.broker.asked.count("record 4")) == (count, count)
    assert {each.since for each in world.transactions.told} == {world.broker.appended}


async def test_given_brokers_that_are_silent_about_a_source_then_own_topics_and_other_sources_are_checked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources come first in what is read: one that was silent delayed the check of requests until its time-out."""
    monkeypatch.setattr(open_transactions, "LOOK_EVERY_S", 0)
    others = [ORDERS._replace(name=f"other-{number}") for number in range(SOURCES_AT_ONCE + 1)]
    wanted = {each.name for each in others}
    world.followed = [ORDERS, *others, REQUESTS]
    world.broker.silent = {"orders"}
    running = asyncio.create_task(world.transactions.run())
    try:
        async with asyncio.timeout(60):
            while world.broker.topics.count(REQUESTS.name) < 3 or not wanted <= {*world.broker.topics}:
                world.broker.was_asked.clear()
                await world.broker.was_asked.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert world.broker.topics.count("orders") == 1


async def test_given_sources_that_were_silent_then_they_are_checked_last(world: World) -> None:
    """As many of them as are checked concurrently held up all others until their time-outs."""
    world.followed = [ORDERS, ORDERS._replace(name="other")]
    world.broker.ends = Unavailable("broker")
    await world.look()
    world.broker.ends = stable(9, 9)
    world.followed.append(ORDERS._replace(name="new"))
    world.broker.topics.clear()
    await world.look()
    assert world.broker.topics == ["new", "orders", "other"]
    world.broker.topics.clear()
    await world.look()
    assert world.broker.topics == ["orders", "other", "new"], "all have answered"
