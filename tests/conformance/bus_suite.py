"""What every bus must do: one suite, run on a real Kafka broker and on the simulated one.

A test module makes it its own:

    class TestSimulatedBus(BusConformance):
        @pytest.fixture
        def bus(self) -> BusUnderTest: ...

Each test names its rule of `tidegate_ports/bus.py`. The tests share no topics, so one broker serves them all. The suite covers
publishers, topics and reading. Membership and `LogReader` have one implementation only, and tests of their own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pytest

from tidegate_core.rows.effects import EndOffsets, FindGaps, NotProduced, Outcome, Produce, Produced, Unavailable
from tidegate_ports.bus import END, Position, Publisher, ReaderListener, Record, Topic

PATIENCE_S = 60.0
"""Deadline of every wait; the machine may be busy, a pass never takes it."""
NOBODYS = "nobody.made.this"
HEADERS = (("a", b"1"), ("b", b"\xff\x00"), ("a", b"2"), ("empty", b""))


class Reading(Protocol):
    """The part of `PartitionReader` that every bus has: the rest is about clients that are stuck."""

    def assign(self, topic: Topic, topic_partition: int, position: Position) -> None: ...

    def unassign(self, topic: str, topic_partition: int) -> None: ...

    def taken(self, topic: str, topic_partition: int, count: int) -> None: ...


class BusUnderTest(Protocol):
    """A bus with topics of the test's own, whose times are the broker's.

    Attributes:
        publisher: Waits for the broker as long as a busy machine needs.
        impatient: Another one, for records that no broker will ever take.
        record_bytes_max: The most that a record of its topics may have.
    """

    @property
    def publisher(self) -> Publisher: ...

    @property
    def impatient(self) -> Publisher: ...

    @property
    def record_bytes_max(self) -> int: ...

    def another_publisher(self) -> Publisher:
        """Returns one that knows no topic yet."""
        ...

    async def make_topic(self, topic_partitions: int) -> Topic: ...

    async def commit(self, topic: Topic, value: bytes) -> None:
        """Produces a record in a transaction of its own, as users do, and returns when the mark of its commit is in the log."""
        ...

    async def gaps(self, wanted: FindGaps) -> frozenset[int] | Unavailable:
        """Returns the topic partitions whose span holds no record for good."""
        ...

    async def grow(self, topic: Topic, more: int) -> Topic:
        """Returns the topic when the brokers report its new size."""
        ...

    async def recreate(self, topic: Topic) -> Topic:
        """Deletes it, makes it again under its name, and returns it when the brokers report it."""
        ...

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable: ...

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable: ...

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable: ...

    def reading(self, listener: ReaderListener) -> Reading: ...


class Notes(ReaderListener):
    """Keeps what a reader delivers, and takes it at once."""

    def __init__(self) -> None:
        self.reading: Reading | None = None
        self.got: list[Record] = []
        self.gone: list[tuple[str, int, int]] = []
        self._changed = asyncio.Event()

    def records(self, topic: str, topic_partition: int, records: Sequence[Record]) -> None:
        self.got.extend(records)
        if self.reading is not None:
            self.reading.taken(topic, topic_partition, len(records))
        self._changed.set()

    def position_gone(self, topic: str, topic_partition: int, offset: int) -> None:
        self.gone.append((topic, topic_partition, offset))
        self._changed.set()

    def offsets(self, topic_partition: int = 0) -> list[int]:
        return [each.offset for each in self.got if each.topic_partition == topic_partition]

    async def until_offsets(self, topic_partition: int, wanted: Sequence[int]) -> None:
        await self.until(lambda: self.offsets(topic_partition)[-1:] == list(wanted)[-1:])
        assert self.offsets(topic_partition) == list(wanted)

    async def until(self, condition: Callable[[], object]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pytest.fail(f"got {[(each.topic_partition, each.offset) for each in self.got]}, gone {self.gone}")


def notes_of(bus: BusUnderTest) -> tuple[Notes, Reading]:
    notes = Notes()
    notes.reading = reading = bus.reading(notes)
    return notes, reading


async def written(bus: BusUnderTest, topic: Topic, *values: bytes, topic_partition: int = 0) -> None:
    """One record after another, each acknowledged before the next."""
    for value in values:
        order = Produce(topic.name, None, value, topic_partition=topic_partition)
        assert await bus.publisher.produce(order) == Produced()


async def settled(publisher: Publisher, orders: Sequence[Produce]) -> Sequence[Outcome]:
    """Hands the records over together."""
    outcomes: asyncio.Future[Sequence[Outcome]] = asyncio.get_running_loop().create_future()
    publisher.produce_many(orders, outcomes.set_result)
    return await asyncio.wait_for(outcomes, PATIENCE_S)


def numbers(count: int) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


async def ends_of(bus: BusUnderTest, topic: Topic) -> list[int]:
    """By topic partition; the keys are checked on the way."""
    found = await bus.end_offsets(topic.name)
    assert isinstance(found, EndOffsets), found
    places = [f"{topic.id}/{number}" for number in range(len(found.offsets))]
    assert set(found.offsets) == set(places)
    return [found.offsets[place] for place in places]


def kind_of(outcome: Outcome) -> str:
    return outcome.kind if isinstance(outcome, NotProduced) else "produced"


class BusConformance:
    """The suite; `bus` is the implementation's own fixture."""

    # -- produce ------------------------------------------------------------------------------------------------------

    async def test_given_a_record_then_it_is_read_as_it_was_produced(self, bus: BusUnderTest) -> None:
        """B1."""
        topic = await bus.make_topic(1)
        orders = [
            Produce(topic.name, b"key", b"value", HEADERS),
            Produce(topic.name, None, b""),
            Produce(topic.name, b"", b"\x00\xff"),
        ]
        for order in orders:
            assert await bus.publisher.produce(order) == Produced()
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, 0)
        await notes.until(lambda: len(notes.got) >= len(orders))
        assert [(each.key, each.value or b"", each.headers) for each in notes.got] == [
            (order.key, order.value, order.headers) for order in orders
        ]
        assert {(each.topic, each.topic_id, each.topic_partition) for each in notes.got} == {(topic.name, topic.id, 0)}

    async def test_given_records_then_their_times_are_the_brokers_and_never_go_back(self, bus: BusUnderTest) -> None:
        """B2."""
        topic = await bus.make_topic(1)
        await written(bus, topic, *numbers(5))
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, 0)
        await notes.until(lambda: len(notes.got) == 5)
        times = [each.append_time_ms for each in notes.got]
        assert times == sorted(times)
        assert times[0] > 0
        assert {each.timed_by_broker for each in notes.got} == {True}

    async def test_given_records_one_after_another_then_their_offsets_have_that_order(self, bus: BusUnderTest) -> None:
        """B3."""
        topic = await bus.make_topic(1)
        await written(bus, topic, *numbers(10))
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, 0)
        await notes.until(lambda: len(notes.got) == 10)
        assert [(each.offset, each.value) for each in notes.got] == list(enumerate(numbers(10)))

    async def test_given_records_of_one_key_then_they_lie_in_one_topic_partition(self, bus: BusUnderTest) -> None:
        """B4."""
        topic = await bus.make_topic(4)
        for _ in range(8):
            assert await bus.publisher.produce(Produce(topic.name, b"customer-7", b"v")) == Produced()
        assert sorted(await ends_of(bus, topic)) == [0, 0, 0, 8]

    async def test_given_a_chosen_topic_partition_then_the_record_lies_there_whatever_its_key(
        self, bus: BusUnderTest
    ) -> None:
        """B5."""
        topic = await bus.make_topic(3)
        for number, key in ((2, b"k"), (2, None), (0, b"k")):
            order = Produce(topic.name, key, b"v", topic_partition=number)
            assert await bus.publisher.produce(order) == Produced()
        assert await ends_of(bus, topic) == [1, 0, 2]

    async def test_given_an_unknown_topic_or_topic_partition_then_the_record_is_refused_and_others_go_on(
        self, bus: BusUnderTest
    ) -> None:
        """B6."""
        topic = await bus.make_topic(1)
        orders = [Produce(NOBODYS, None, b"v"), Produce(topic.name, None, b"v", topic_partition=99)]
        refused = [asyncio.create_task(bus.impatient.produce(order)) for order in orders]
        await written(bus, topic, b"v")
        assert [kind_of(await outcome) for outcome in refused] == ["refused", "refused"]
        assert await ends_of(bus, topic) == [1]

    async def test_given_a_record_that_is_too_large_then_it_alone_is_refused(self, bus: BusUnderTest) -> None:
        """B7: brokers refuse a whole batch, so what is `unavailable` is handed over again."""
        topic = await bus.make_topic(1)
        large = Produce(topic.name, None, bytes(bus.record_bytes_max + 1))
        left = [Produce(topic.name, None, b"first"), large, Produce(topic.name, None, b"last")]
        refused: list[Produce] = []
        async with asyncio.timeout(PATIENCE_S):
            while left:
                kinds = [kind_of(each) for each in await settled(bus.publisher, left)]
                refused += [order for order, kind in zip(left, kinds, strict=True) if kind == "refused"]
                left = [order for order, kind in zip(left, kinds, strict=True) if kind == "unavailable"]
        assert [len(order.value) for order in refused] == [
            len(large.value)
        ]  # The records themselves would fill a screen.
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, 0)
        await notes.until(lambda: {each.value for each in notes.got} >= {b"first", b"last"})
        assert {len(each.value or b"") for each in notes.got} == {len(b"first"), len(b"last")}

    async def test_given_records_together_then_their_outcomes_come_in_their_order(self, bus: BusUnderTest) -> None:
        """B8."""
        topic = await bus.make_topic(1)
        orders = [Produce(topic.name, None, value) for value in numbers(20)]
        orders.insert(7, Produce(topic.name, None, b"nowhere", topic_partition=99))
        outcomes = await settled(bus.publisher, orders)
        assert [kind_of(each) for each in outcomes] == ["produced"] * 7 + ["refused"] + ["produced"] * 13
        assert await ends_of(bus, topic) == [20]

    # -- facts --------------------------------------------------------------------------------------------------------

    async def test_given_records_then_the_end_offset_is_the_next_one_to_be_written(self, bus: BusUnderTest) -> None:
        """B9."""
        topic = await bus.make_topic(3)
        assert await ends_of(bus, topic) == [0, 0, 0]
        await written(bus, topic, *numbers(2), topic_partition=1)
        assert await ends_of(bus, topic) == [0, 2, 0]

    async def test_given_no_open_transaction_then_stable_ends_are_the_ends(self, bus: BusUnderTest) -> None:
        """B20: marks of transactions that are over lie before them."""
        topic = await bus.make_topic(2)
        await bus.commit(topic, b"v")
        await written(bus, topic, *numbers(3), topic_partition=1)
        assert await bus.stable_ends(topic.name) == await bus.end_offsets(topic.name)
        assert isinstance(await bus.stable_ends(NOBODYS), Unavailable)

    async def test_given_an_unknown_topic_then_it_has_no_facts(self, bus: BusUnderTest) -> None:
        """B10."""
        topic = await bus.make_topic(2)
        assert await bus.describe([topic.name, NOBODYS]) == {topic.name: topic}
        assert re.fullmatch(r"[0-9a-f]{32}", topic.id)
        assert topic.topic_partitions == 2
        assert isinstance(await bus.end_offsets(NOBODYS), Unavailable)
        assert await bus.end_offsets(NOBODYS, may_be_missing=True) == EndOffsets({})

    async def test_given_a_topic_that_grows_then_its_facts_say_so_and_all_of_it_is_read(
        self, bus: BusUnderTest
    ) -> None:
        """B11: a publisher that knows the topic may refuse its new topic partition for a while."""
        topic = await bus.make_topic(1)
        await written(bus, topic, *numbers(2))
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, 0)
        await notes.until(lambda: len(notes.got) == 2)
        grown = await bus.grow(topic, 1)
        assert (grown.id, grown.topic_partitions) == (topic.id, 2)
        assert await bus.another_publisher().produce(Produce(topic.name, None, b"new", topic_partition=1)) == Produced()
        await written(bus, grown, b"old")
        assert await ends_of(bus, grown) == [3, 1]
        reading.assign(grown, 1, 0)
        await notes.until(lambda: len(notes.got) == 4)
        assert (notes.offsets(0), notes.offsets(1), notes.gone) == ([0, 1, 2], [0], [])

    async def test_given_a_recreated_topic_then_it_has_another_id_and_nothing_of_the_old_one(
        self, bus: BusUnderTest
    ) -> None:
        """B12."""
        old = await bus.make_topic(1)
        await written(bus, old, *numbers(3))
        notes, reading = notes_of(bus)
        reading.assign(old, 0, 0)
        await notes.until(lambda: len(notes.got) == 3)
        new = await bus.recreate(old)
        assert (new.name, new.topic_partitions) == (old.name, 1)
        assert new.id != old.id
        assert await ends_of(bus, new) == [0]
        await notes.until(lambda: notes.gone)
        assert notes.gone == [(old.name, 0, 3)]
        await written(bus, new, b"new")
        reading.assign(new, 0, 0)
        await notes.until(lambda: len(notes.got) == 4)
        assert (notes.got[-1].topic_id, notes.got[-1].offset, notes.got[-1].value) == (new.id, 0, b"new")

    # -- reading ------------------------------------------------------------------------------------------------------

    async def test_given_an_offset_then_every_record_from_there_comes_once_and_in_order(
        self, bus: BusUnderTest
    ) -> None:
        """B13: more records than one fetch of the simulated broker brings."""
        topic = await bus.make_topic(1)
        await written(bus, topic, *numbers(90))
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, 5)
        await notes.until_offsets(0, range(5, 90))

    async def test_given_a_position_at_the_end_then_the_next_record_comes(self, bus: BusUnderTest) -> None:
        """B14."""
        topic = await bus.make_topic(2)
        await written(bus, topic, *numbers(3))
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, 3)
        reading.assign(topic, 1, 0)
        await written(bus, topic, b"later")
        await written(bus, topic, b"first", topic_partition=1)
        await notes.until(lambda: len(notes.got) == 2)
        assert (notes.offsets(0), notes.offsets(1), notes.gone) == ([3], [0], [])

    async def test_given_the_end_then_only_later_records_come(self, bus: BusUnderTest) -> None:
        """B15: the brokers are asked soon and not at once, so records are written until one comes."""
        topic = await bus.make_topic(1)
        await written(bus, topic, *numbers(3))
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, END)
        async with asyncio.timeout(PATIENCE_S):
            while not notes.got:
                await written(bus, topic, b"later")
        first = notes.offsets()[0]
        assert first >= 3
        assert notes.offsets() == list(range(first, first + len(notes.got)))

    async def test_given_an_end_of_reading_then_nothing_comes_until_it_begins_again_at_its_offset(
        self, bus: BusUnderTest
    ) -> None:
        """B16: a record of another topic partition shows that the first one had its chance."""
        topic = await bus.make_topic(2)
        await written(bus, topic, *numbers(3))
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, 0)
        await notes.until(lambda: len(notes.got) == 3)
        reading.unassign(topic.name, 0)
        await written(bus, topic, *numbers(3))
        await written(bus, topic, b"other", topic_partition=1)
        reading.assign(topic, 1, 0)
        await notes.until(lambda: notes.offsets(1))
        assert notes.offsets(0) == [0, 1, 2]
        notes.got.clear()
        reading.assign(topic, 0, 2)
        await notes.until_offsets(0, [2, 3, 4, 5])

    async def test_given_an_offset_behind_the_end_then_it_is_gone_and_a_new_begin_reads_on(
        self, bus: BusUnderTest
    ) -> None:
        """B17."""
        topic = await bus.make_topic(1)
        await written(bus, topic, *numbers(3))
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, 50)
        await notes.until(lambda: notes.gone)
        assert notes.gone == [(topic.name, 0, 50)]
        await written(bus, topic, b"more")
        reading.assign(topic, 0, 2)
        await notes.until(lambda: len(notes.got) == 2)
        assert (notes.offsets(), len(notes.gone)) == ([2, 3], 1)

    async def test_given_two_readings_then_each_gets_all_records(self, bus: BusUnderTest) -> None:
        """B18."""
        topic = await bus.make_topic(1)
        await written(bus, topic, *numbers(3))
        both = [notes_of(bus) for _ in range(2)]
        for _, reading in both:
            reading.assign(topic, 0, 0)
        for notes, _ in both:
            await notes.until_offsets(0, [0, 1, 2])
        assert both[0][0].got == both[1][0].got

    async def test_given_transactions_then_their_marks_have_offsets_and_are_no_records(self, bus: BusUnderTest) -> None:
        """B19."""
        topic = await bus.make_topic(1)
        for value in numbers(2):
            await bus.commit(topic, value)
        assert await ends_of(bus, topic) == [4]
        notes, reading = notes_of(bus)
        reading.assign(topic, 0, 0)
        await notes.until_offsets(0, [0, 2])
        spans = {(0, 1): False, (1, 2): True, (1, 3): False, (2, 4): False, (3, 4): True, (3, 5): False}
        for span, is_gap in spans.items():
            found = await bus.gaps(FindGaps(topic.name, topic.id, {0: span}))
            assert found == (frozenset({0}) if is_gap else frozenset()), span
        assert await bus.gaps(FindGaps(topic.name, "0" * 32, {0: (1, 2)})) == frozenset()
