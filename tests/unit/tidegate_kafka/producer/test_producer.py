"""The publisher with a client that is not there: outcomes, one hop per batch of reports, the guard."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Message

from tidegate_core.rows.effects import NotProduced, Outcome, Produce, Produced
from tidegate_kafka.clients.connectivity import ASK_EVERY_MS
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.producer.producer import KafkaPublisher
from tidegate_kafka.producer.stalled_partitions import PATIENCE_MS, Place
from tidegate_kafka.producer.unbatched_topics import BATCH_BYTES_MAX

if TYPE_CHECKING:
    from tests.unit.tidegate_kafka.conftest import ManualClock, Notes

ORDER = Produce("t", b"k", b"v", (("h", b"1"),), topic_partition=3, guarded=True)
PATIENCE_S = 60.0
Report = Callable[[KafkaError | None, object], None]


class FakeProducer:
    """Reports when it is told to; `raises` is raised by the next produce, `fails_when_purged` by the first poll behind a purge."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes | None, bytes | None, int, Any]] = []
        self.waiting: list[Report] = []
        self.raises: Exception | None = None
        self.fails_when_purged: Exception | None = None
        self.purged = threading.Event()
        self.handed = threading.Semaphore(0)
        self.in_use = threading.Event()
        self.stamp = (TIMESTAMP_LOG_APPEND_TIME, 1_000)
        self.finds_brokers = True
        self.asked = threading.Semaphore(0)
        self._answers: queue.SimpleQueue[list[KafkaError | None]] = queue.SimpleQueue()

    def answer(self, *errors: KafkaError | None) -> None:
        self._answers.put(list(errors))

    def produce(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int, *, on_delivery: Any, headers: Any
    ) -> None:
        if self.raises is not None:
            failure, self.raises = self.raises, None
            raise failure
        self.sent.append((topic, value, key, partition, headers))
        self.waiting.append(on_delivery)
        self.handed.release()

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> object:
        self.asked.release()
        if not self.finds_brokers:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return object()

    def poll(self, timeout: float) -> int:
        self.in_use.set()
        if self.purged.is_set():
            if self.fails_when_purged is not None:
                failure, self.fails_when_purged = self.fails_when_purged, None
                raise failure
            while self.waiting:
                self.waiting.pop(0)(KafkaError(KafkaError._PURGE_QUEUE), Message())
            return 0
        try:
            errors = self._answers.get(timeout=timeout)
        except queue.Empty:
            return 0
        for error in errors:
            topic, value, _, partition, _ = self.sent[-len(self.waiting)]
            self.waiting.pop(0)(error, Message(topic=topic, partition=partition, value=value, timestamp=self.stamp))
        return len(errors)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        assert in_queue
        assert in_flight
        self.purged.set()


class Stage:
    def __init__(
        self,
        clock: ManualClock,
        notes: Notes,
        guard_holds: Callable[[], bool] | None,
        kind: type[FakeProducer] = FakeProducer,
    ) -> None:
        self._kind = kind
        self.made: list[FakeProducer] = []
        self.settings: list[KafkaSettings] = []
        self.is_made = asyncio.Event()
        self.asked_for: list[Place] = []
        self._loop = asyncio.get_running_loop()
        self.publisher = KafkaPublisher(
            KafkaSettings(allow_plaintext=True, delivery_ms_max=100),
            loop=self._loop,
            clock=clock,
            notices=notes,
            guard_holds=guard_holds,
            make=self._make,
            others=lambda _: True,
            led=self._led,
        )
        self.publisher.start()

    def _led(self, _: KafkaSettings, place: Place) -> bool:
        self.asked_for.append(place)
        return True

    async def client(self, count: int = 1) -> FakeProducer:
        while len(self.made) < count:
            self.is_made.clear()
            await asyncio.wait_for(self.is_made.wait(), PATIENCE_S)
        # Made is not taken into use: only then records go to it.
        assert await asyncio.to_thread(self.made[-1].in_use.wait, PATIENCE_S)
        return self.made[-1]

    def _make(self, settings: KafkaSettings, guarded: bool) -> FakeProducer:
        self.settings.append(settings)
        self.made.append(self._kind())
        self._loop.call_soon_threadsafe(self.is_made.set)
        return self.made[-1]


async def test_given_reports_then_each_waiter_gets_its_own_in_one_hop(clock: ManualClock, notes: Notes) -> None:
    stage = Stage(clock, notes, None)
    client = await stage.client()
    waiting = [stage.publisher.send(ORDER) for _ in range(3)]
    client.answer(None, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), KafkaError(KafkaError._MSG_TIMED_OUT))
    done, _ = await asyncio.wait(waiting, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    assert len(done) == 3, "what one poll brought arrives together"
    kinds = [outcome.kind if isinstance(outcome, NotProduced) else "" for outcome in await asyncio.gather(*waiting)]
    assert kinds == ["", "refused", "unavailable"]
    assert client.sent[0] == ("t", b"v", b"k", 3, [("h", b"1")])
    assert await stage.publisher.stop()


async def test_given_one_who_fails_when_it_is_told_then_the_others_of_that_poll_are_told_all_the_same(
    clock: ManualClock, notes: Notes
) -> None:
    stage = Stage(clock, notes, None)
    client = await stage.client()
    loop = asyncio.get_running_loop()
    said: list[object] = []
    loop.set_exception_handler(lambda _, context: said.append(context.get("exception")))
    bug = RuntimeError("a bug of who waits")

    def fails(_: Sequence[Outcome]) -> None:
        raise bug

    before = stage.publisher.send(ORDER)
    stage.publisher.produce_many([ORDER], fails)
    behind = stage.publisher.send(ORDER)
    client.answer(None, None, None)

    assert isinstance(await asyncio.wait_for(before, PATIENCE_S), Produced)
    assert isinstance(await asyncio.wait_for(behind, PATIENCE_S), Produced)
    (told,) = said
    assert isinstance(told, ExceptionGroup)
    assert told.exceptions == (bug,)
    assert await stage.publisher.stop()


async def test_given_records_that_go_together_then_each_has_its_own_outcome_in_their_order(
    clock: ManualClock, notes: Notes
) -> None:
    stage = Stage(clock, notes, None)
    client = await stage.client()
    client.raises = BufferError()
    orders = [Produce("t", None, value) for value in (b"queue full", b"there", b"not allowed")]

    together: asyncio.Future[Sequence[Outcome]] = asyncio.get_running_loop().create_future()
    stage.publisher.produce_many(orders, together.set_result)
    client.answer(None)
    alone = stage.publisher.send(ORDER)
    client.answer(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), None)
    await asyncio.wait_for(alone, PATIENCE_S)

    outcomes = await asyncio.wait_for(together, PATIENCE_S)
    assert [outcome.kind if isinstance(outcome, NotProduced) else "" for outcome in outcomes] == [
        "unavailable",
        "",
        "refused",
    ]
    assert [value for _, value, *_ in client.sent] == [b"there", b"not allowed", b"v"]
    assert await stage.publisher.stop()


REFUSED_BATCHES = [
    KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "the batch"),
    KafkaError(KafkaError.INVALID_RECORD, "one of them has no key"),
]


def kind_of(outcome: Outcome) -> str:
    return outcome.kind if isinstance(outcome, NotProduced) else "produced"


@pytest.mark.parametrize("error", REFUSED_BATCHES)
@pytest.mark.parametrize("guard_holds", [None, lambda: True], ids=["plain", "guarded"])
async def test_given_a_batch_that_is_refused_then_the_topic_s_records_go_alone_until_one_is_refused_by_itself(
    clock: ManualClock, notes: Notes, guard_holds: Callable[[], bool] | None, error: KafkaError
) -> None:
    """The library refuses all that lay in it, each of which the topic may take: they were dead letters after ten tries."""
    stage = Stage(clock, notes, guard_holds)
    together = await stage.client()
    others = replace(ORDER, topic="u")

    async def sent_by(client: FakeProducer, order: Produce, answer: KafkaError | None) -> str:
        waiter = stage.publisher.send(order)
        client.answer(answer)
        return kind_of(await asyncio.wait_for(waiter, PATIENCE_S))

    assert await sent_by(together, ORDER, error) == "unavailable"
    first = stage.publisher.send(ORDER)
    alone = await stage.client(2)
    if first.done():
        assert kind_of(first.result()) == "guard", "the thread that makes its client came later"
    else:
        alone.answer(None)
        assert kind_of(await asyncio.wait_for(first, PATIENCE_S)) == "produced"
    assert await sent_by(alone, ORDER, None) == "produced"
    assert await sent_by(together, others, None) == "produced"
    assert await sent_by(alone, ORDER, error) == "refused"
    assert await sent_by(together, ORDER, None) == "produced", "it may be what spoiled the batch"
    assert stage.settings[1].extra == {"batch.num.messages": "1"}
    assert await stage.publisher.stop()
    assert {await asyncio.to_thread(client.purged.wait, PATIENCE_S) for client in stage.made} == {True}


async def test_given_a_host_without_threads_for_a_client_of_its_own_then_records_go_together_until_there_are(
    clock: ManualClock, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    stage = Stage(clock, notes, lambda: True)
    together = await stage.client()
    waiter = stage.publisher.send(ORDER)
    together.answer(REFUSED_BATCHES[0])
    await asyncio.wait_for(waiter, PATIENCE_S)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        waiter = stage.publisher.send(ORDER)
    together.answer(None)
    assert await asyncio.wait_for(waiter, PATIENCE_S) == Produced()
    waiter = stage.publisher.send(ORDER)
    alone = await stage.client(2)
    if not waiter.done():  # Else the thread that makes its client came later.
        alone.answer(None)
        assert await asyncio.wait_for(waiter, PATIENCE_S) == Produced()
    assert await stage.publisher.stop()


async def test_given_a_record_that_no_other_fits_beside_then_it_is_refused_at_once(
    clock: ManualClock, notes: Notes
) -> None:
    stage = Stage(clock, notes, None)
    client = await stage.client()
    waiter = stage.publisher.send(replace(ORDER, value=bytes(BATCH_BYTES_MAX)))
    client.answer(REFUSED_BATCHES[0])
    assert kind_of(await asyncio.wait_for(waiter, PATIENCE_S)) == "refused"
    assert await stage.publisher.stop()


async def test_given_a_guard_that_lapses_among_records_that_go_together_then_the_rest_is_not_handed_over(
    clock: ManualClock, notes: Notes
) -> None:
    looks = 0

    def holds() -> bool:
        nonlocal looks
        looks += threading.current_thread() is threading.main_thread()
        return looks <= 2

    stage = Stage(clock, notes, holds)
    client = await stage.client()

    together: asyncio.Future[Sequence[Outcome]] = asyncio.get_running_loop().create_future()
    stage.publisher.produce_many([ORDER] * 4, together.set_result)
    outcomes = await asyncio.wait_for(together, PATIENCE_S)

    assert len(client.sent) == 2
    kinds = [outcome.kind for outcome in outcomes if isinstance(outcome, NotProduced)]
    assert kinds == ["unavailable"] * 2 + ["guard"] * 2, "the first two were purged"
    assert await stage.publisher.stop()


async def test_given_who_gave_up_waiting_then_the_reports_disturb_nobody(clock: ManualClock, notes: Notes) -> None:
    stage = Stage(clock, notes, None)
    client = await stage.client()
    given_up = asyncio.ensure_future(stage.publisher.produce(ORDER))
    assert await asyncio.to_thread(client.handed.acquire, timeout=PATIENCE_S)
    given_up.cancel()
    other = stage.publisher.send(ORDER)

    client.answer(None, None)

    assert await asyncio.wait_for(other, PATIENCE_S) == Produced()
    assert await stage.publisher.stop()


async def test_given_an_append_time_then_it_is_told_and_a_producer_s_own_is_not(
    clock: ManualClock, notes: Notes
) -> None:
    """A node compares its clock with the brokers': its own time, told back to it, would always agree."""
    stage = Stage(clock, notes, None)
    client = await stage.client()
    told: list[int | None] = []
    for stamp in ((TIMESTAMP_LOG_APPEND_TIME, 77), (TIMESTAMP_CREATE_TIME, 78)):
        waiter = stage.publisher.send(Produce("t", b"k", b"v", topic_partition=1))
        client.stamp = stamp
        client.answer(None)
        outcome = await waiter
        assert isinstance(outcome, Produced)
        told.append(outcome.appended_at)
        assert outcome.topic_partition == (None if outcome.appended_at is None else 1), (
            "a stop's position needs all of it"
        )
    assert told == [77, None]
    assert await stage.publisher.stop()


async def test_given_no_topic_partition_then_the_partitioner_chooses(clock: ManualClock, notes: Notes) -> None:
    stage = Stage(clock, notes, None)
    client = await stage.client()
    waiter = stage.publisher.send(Produce("t", b"k", b"v"))
    client.answer(None)
    assert await waiter == Produced()
    assert client.sent[0][3] == -1
    assert await stage.publisher.stop()


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        pytest.param(BufferError(), "unavailable", id="queue full"),
        pytest.param(KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION)), "refused", id="will not work"),
        pytest.param(KafkaException(KafkaError(KafkaError._TIMED_OUT)), "unavailable", id="may work"),
        pytest.param(
            OverflowError("signed integer is greater than maximum"), "refused", id="no topic partition's number"
        ),
        pytest.param(ValueError("embedded null character"), "refused", id="no topic's name"),
    ],
)
async def test_given_client_refuses_at_once_then_the_outcome_says_so(
    clock: ManualClock, notes: Notes, failure: Exception, kind: str
) -> None:
    stage = Stage(clock, notes, None)
    (await stage.client()).raises = failure
    outcome = await stage.publisher.produce(ORDER)
    assert isinstance(outcome, NotProduced)
    assert outcome.kind == kind
    assert await stage.publisher.stop()


async def test_given_fatal_error_then_the_client_is_replaced(clock: ManualClock, notes: Notes) -> None:
    stage = Stage(clock, notes, None)
    first = await stage.client()
    waiting = [stage.publisher.send(ORDER), stage.publisher.send(ORDER)]
    first.answer(KafkaError(KafkaError._FATAL, "over", fatal=True))
    outcomes = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)
    assert [outcome.kind for outcome in outcomes if isinstance(outcome, NotProduced)] == ["unavailable"] * 2
    second = await stage.client(2)
    waiter = stage.publisher.send(ORDER)
    second.answer(None)
    assert await waiter == Produced()
    assert await stage.publisher.stop()


async def test_given_a_client_that_fails_then_that_is_why_it_is_said_to_be_dropped(
    clock: ManualClock, notes: Notes
) -> None:
    """It was said to have stopped: the library raises what is fatal."""

    class Failing(FakeProducer):
        def poll(self, timeout: float) -> int:
            super().poll(timeout)
            raise KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, fatal=True))

    stage = Stage(clock, notes, None, Failing)
    await stage.client(2)
    assert await stage.publisher.stop()
    dropped = [fields["reason"] for event, fields in notes.events if event == "kafka_producer_dropped"]
    assert dropped[0] == "its client failed"


async def test_given_guard_lapses_then_all_is_purged_and_only_a_new_proof_brings_a_new_client(
    clock: ManualClock, notes: Notes
) -> None:
    held = threading.Event()
    stage = Stage(clock, notes, held.is_set)
    outcome = await stage.publisher.produce(ORDER)
    assert isinstance(outcome, NotProduced)
    assert outcome.kind == "guard"
    assert stage.made == []

    held.set()
    first = await stage.client()
    waiting = [stage.publisher.send(ORDER) for _ in range(5)]
    for _ in waiting:  # Handed to the client: what is not is answered as `guard`.
        assert await asyncio.to_thread(first.handed.acquire, timeout=PATIENCE_S)
    held.clear()
    outcomes = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)
    assert {outcome.kind for outcome in outcomes if isinstance(outcome, NotProduced)} == {"unavailable"}
    assert first.purged.is_set()
    assert len(stage.made) == 1

    held.set()
    second = await stage.client(2)
    waiter = stage.publisher.send(ORDER)
    second.answer(None)
    assert await waiter == Produced()
    assert first.sent == [("t", b"v", b"k", 3, [("h", b"1")])] * 5
    assert await stage.publisher.stop()


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, fatal=True)), id="fatal error"),
        pytest.param(SystemError("a report failed"), id="failed report"),
    ],
)
async def test_given_a_failure_amid_the_purge_then_all_who_wait_are_told(
    clock: ManualClock, notes: Notes, failure: Exception
) -> None:
    """A fatal error that came between the last poll and the end of the guard: what was under way was told to nobody, for ever."""
    held = threading.Event()
    held.set()
    stage = Stage(clock, notes, held.is_set)
    client = await stage.client()
    client.fails_when_purged = failure
    waiting = [stage.publisher.send(ORDER) for _ in range(3)]
    for _ in waiting:
        assert await asyncio.to_thread(client.handed.acquire, timeout=PATIENCE_S)
    held.clear()
    outcomes = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)
    assert {outcome.kind for outcome in outcomes if isinstance(outcome, NotProduced)} == {"unavailable"}
    assert await stage.publisher.stop()


async def test_given_guard_lapsed_between_polls_then_the_very_send_sees_it(clock: ManualClock, notes: Notes) -> None:
    held = threading.Event()
    held.set()
    stage = Stage(clock, notes, held.is_set)
    client = await stage.client()
    held.clear()
    outcome = stage.publisher.send(ORDER)
    assert outcome.done(), "refused on the spot"
    assert client.sent == []
    assert await stage.publisher.stop()


async def test_given_stop_then_silent_records_are_unavailable_and_stop_ends(clock: ManualClock, notes: Notes) -> None:
    stage = Stage(clock, notes, None)
    await stage.client()
    waiter = stage.publisher.send(ORDER)
    stopping = asyncio.create_task(stage.publisher.stop())
    while not stopping.done():
        clock.now += 10
        await asyncio.sleep(0.001)
    assert stopping.result()
    outcome = await waiter
    assert isinstance(outcome, NotProduced)
    assert outcome.kind == "unavailable"


async def test_given_a_producer_that_finds_no_broker_although_others_do_then_another_takes_its_place(
    clock: ManualClock, notes: Notes
) -> None:
    """confluentinc/librdkafka#5301: it would report a time-out of each record for ever."""
    stage = Stage(clock, notes, None)
    client = await stage.client()
    client.finds_brokers = False
    waiting = stage.publisher.send(ORDER)
    async with asyncio.timeout(PATIENCE_S):
        while len(stage.made) == 1:
            clock.now += ASK_EVERY_MS
            await asyncio.sleep(0.01)
    assert isinstance(await asyncio.wait_for(waiting, PATIENCE_S), NotProduced)
    second = await stage.client(2)
    again = stage.publisher.send(ORDER)
    second.answer(None)
    assert isinstance(await asyncio.wait_for(again, PATIENCE_S), Produced)
    assert ("kafka_producer_dropped", "it found no broker, and a new client does") in [
        (name, fields["reason"]) for name, fields in notes.events if "reason" in fields
    ]
    assert await stage.publisher.stop()


async def test_given_a_client_that_found_no_broker_once_then_it_is_asked_on_until_it_does_although_nothing_waits(
    clock: ManualClock, notes: Notes
) -> None:
    """Found in review: hours later the first question of another outage was taken for the end of its patience, and all under way was given up."""
    stage = Stage(clock, notes, None)
    client = await stage.client()

    async def asked_again() -> None:
        clock.now += ASK_EVERY_MS
        assert await asyncio.to_thread(client.asked.acquire, True, PATIENCE_S)

    client.finds_brokers = False
    waiting = stage.publisher.send(ORDER)
    await asked_again()
    client.answer(KafkaError(KafkaError._MSG_TIMED_OUT))
    assert isinstance(await asyncio.wait_for(waiting, PATIENCE_S), NotProduced)
    client.finds_brokers = True
    await asked_again()

    clock.now += 3_600_000
    client.finds_brokers = False
    again = stage.publisher.send(ORDER)
    await asked_again()
    client.finds_brokers = True
    client.answer(None)
    assert isinstance(await asyncio.wait_for(again, PATIENCE_S), Produced)
    assert len(stage.made) == 1
    assert await stage.publisher.stop()


@pytest.mark.parametrize("guard_holds", [None, lambda: True], ids=["plain", "guarded"])
async def test_given_one_topic_partition_to_which_all_records_expire_although_it_has_a_leader_then_another_client_takes_over(
    clock: ManualClock, notes: Notes, guard_holds: Callable[[], bool] | None
) -> None:
    """Found in review, and seen with the library's own mock brokers: of a topic that was made anew it never learns the leader, and messages to it
    did not go out before the node was started again.
    """
    stage = Stage(clock, notes, guard_holds)
    client = await stage.client()
    elsewhere = replace(ORDER, topic_partition=4)
    rounds = PATIENCE_MS // ASK_EVERY_MS + 1
    for number in range(1, rounds + 1):
        assert len(stage.made) == 1
        stuck, going = stage.publisher.send(ORDER), stage.publisher.send(elsewhere)
        under_way = stage.publisher.send(elsewhere)
        client.answer(KafkaError(KafkaError._MSG_TIMED_OUT), None)
        assert isinstance(await asyncio.wait_for(stuck, PATIENCE_S), NotProduced)
        assert isinstance(await asyncio.wait_for(going, PATIENCE_S), Produced)
        async with asyncio.timeout(PATIENCE_S):
            while len(stage.asked_for) < number:  # noqa: ASYNC110 - it is asked on the publisher's thread
                await asyncio.sleep(0.001)
        # Of the last round it is under way as the client is to go.
        client.answer(None)
        assert isinstance(await asyncio.wait_for(under_way, PATIENCE_S), Produced)
        clock.now += ASK_EVERY_MS
    client = await stage.client(2)
    delivered = stage.publisher.send(ORDER)
    client.answer(None)
    assert isinstance(await asyncio.wait_for(delivered, PATIENCE_S), Produced)
    assert stage.asked_for == [("t", 3)] * rounds
    assert await stage.publisher.stop()


async def test_given_a_client_whose_end_takes_long_then_the_publisher_goes_on(clock: ManualClock, notes: Notes) -> None:
    """Where no name server answers, a client's end takes as long as the look-up that is under way; a thread that does not turn has its node restarted."""
    holds, has_ended = [True], threading.Event()

    class Lingers(FakeProducer):
        def __del__(self) -> None:
            assert has_ended.wait(2 * PATIENCE_S)

    stage = Stage(clock, notes, lambda: holds[0], Lingers)
    await stage.client()
    stage.made.clear()
    holds[0] = False
    try:
        async with asyncio.timeout(PATIENCE_S):
            while "kafka_producer_dropped" not in notes.names():  # noqa: ASYNC110 - what is looked at comes from a thread
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)  # Its last turn may be told still.
            clock.now = 1_000
            while stage.publisher.polled_at_ms < clock.now:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.01)
    finally:
        has_ended.set()
    assert await stage.publisher.stop()
