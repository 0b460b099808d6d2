"""Delivery reports: from the client's callbacks to those who wait, a whole batch at a time.

One hop to the loop per message would cost more than the message (13 µs instead of 4); so the callbacks only collect, and
what one `poll` brought goes over together. Nor has a message a future of its own: those that were handed over together have one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, Message

from tidegate_core.rows.effects import NotProduced, Outcome, Produced
from tidegate_kafka.clients.error_codes import OF_THE_BATCH, UNAVAILABLE, not_produced
from tidegate_kafka.clients.loop_bridge import Post
from tidegate_kafka.producer.stalled_partitions import StalledPartitions
from tidegate_ports.bus import Settled

PRODUCED: Final = Produced()
NOT_YET: Final = NotProduced(UNAVAILABLE, "nothing is known yet")


class Group:
    """Records that were handed over together. On the loop alone.

    Args:
        size: How many.
        settled: Told their outcomes, in their order, once there are all.
    """

    def __init__(self, size: int, settled: Settled) -> None:
        self._settled = settled
        self._outcomes: list[Outcome] = [NOT_YET] * size
        self._open = size

    def settle(self, index: int, outcome: Outcome) -> None:
        """Takes what became of one of them; told once for each."""
        self._outcomes[index] = outcome
        self._open -= 1
        if self._open == 0:
            self._settled(self._outcomes)


Waiter: TypeAlias = tuple[Group, int]
"""One of a group."""


BatchRefused: TypeAlias = Callable[[str, int, NotProduced], NotProduced]
"""Returns the outcome of a record whose batch a broker refused: told its topic, the bytes of its value, and what the client said."""


class Deliveries:
    """Who waits for which report of one producer. `expect` and `give_up_on` are the sender's, the rest the poll thread's.

    Attributes:
        fatal: The client has met an error after which it sends nothing more.
        acknowledged: A broker has taken a record since this was set to False.
    """

    def __init__(self, post: Post, standstill: StalledPartitions, batch_refused: BatchRefused) -> None:
        self._post = post
        self._standstill = standstill
        self._batch_refused = batch_refused
        self._waiting: set[Waiter] = set()
        self._reported: list[tuple[Waiter, Outcome]] = []
        self.fatal = False
        self.acknowledged = False

    def __len__(self) -> int:
        return len(self._waiting)

    def expect(self, waiter: Waiter) -> None:
        self._waiting.add(waiter)

    def give_up_on(self, waiter: Waiter) -> None:
        self._waiting.discard(waiter)

    def report(self, waiter: Waiter, error: KafkaError | None, message: Message) -> None:
        """The client's callback, bound to its waiter, who is waited for until the outcome is kept: what fails in between is for `abandon`."""
        if error is None:
            self.acknowledged = True
            if self._standstill.suspects:
                self._standstill.acknowledged(message.topic() or "", _number(message))
            kind, instant = message.timestamp()
            outcome: Outcome = PRODUCED
            if kind == TIMESTAMP_LOG_APPEND_TIME:
                outcome = Produced(instant, message.partition(), message.offset())
        else:
            self.fatal = self.fatal or error.fatal()
            if error.code() == KafkaError._MSG_TIMED_OUT:  # noqa: SLF001 - a public code begins so
                self._standstill.expired(message.topic() or "", _number(message))
            outcome = not_produced(error)
            if error.code() in OF_THE_BATCH:
                outcome = self._batch_refused(message.topic() or "", len(message.value() or b""), outcome)
        self._reported.append((waiter, outcome))
        self._waiting.discard(waiter)

    def pass_on(self) -> None:
        """Sends what was collected to the loop, in one hop."""
        if self._reported:
            reported, self._reported = self._reported, []
            self._post(_resolve, reported)

    def abandon(self) -> None:
        """The producer is gone and reports nothing more: the rest may or may not be in the log."""
        rest = [(waiter, NotProduced(UNAVAILABLE, "the producer was dropped")) for waiter in tuple(self._waiting)]
        self._waiting.clear()
        self._reported.extend(rest)
        self.pass_on()


def _number(message: Message) -> int:
    number = message.partition()
    return -1 if number is None else number


def _resolve(reported: Sequence[tuple[Waiter, Outcome]]) -> None:
    failures: list[Exception] = []
    for (group, index), outcome in reported:
        try:
            group.settle(index, outcome)
        except Exception as failure:  # noqa: BLE001 - told to the loop below, once the others have theirs
            failures.append(failure)
    if failures:
        # A bug of who waited. Without the rest of what one poll brought, other shards would wait for ever.
        raise ExceptionGroup("who was told of deliveries failed", failures)
