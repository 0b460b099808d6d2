"""Delivery reports: carries outcomes from the client's callbacks to the waiting callers, a whole batch at a time.

One hop to the loop per message would cost more than the message (13 µs instead of 4). So callbacks only collect, and
the reports of one `poll` cross together. Messages that were handed over together share one future.
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
    """Records that were handed over together. Used on the loop only.

    Args:
        size: Number of records.
        settled: Called with all outcomes in the order of the records, once the last one is known.
    """

    def __init__(self, size: int, settled: Settled) -> None:
        self._settled = settled
        self._outcomes: list[Outcome] = [NOT_YET] * size
        self._open = size

    def settle(self, index: int, outcome: Outcome) -> None:
        """Takes the outcome of one record; called once for each."""
        self._outcomes[index] = outcome
        self._open -= 1
        if self._open == 0:
            self._settled(self._outcomes)


Waiter: TypeAlias = tuple[Group, int]
"""A group, and the index of one record in it."""


BatchRefused: TypeAlias = Callable[[str, int, NotProduced], NotProduced]
"""Returns the outcome of a record whose batch a broker refused, from its topic, its value's size and the client's
error."""


class Deliveries:
    """Waiters for the reports of one producer. The sender calls `expect` and `give_up_on`, the poll thread the rest.

    Attributes:
        fatal: Whether the client met an error after which it sends nothing more.
        acknowledged: Whether a broker has taken a record since this was set to False.
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
        """The client's callback, bound to its waiter. The waiter is removed last, so that after a failure here
        `abandon` still answers it.
        """
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
        """Sends the collected outcomes to the loop in one hop."""
        if self._reported:
            reported, self._reported = self._reported, []
            self._post(_resolve, reported)

    def abandon(self) -> None:
        """Answers the rest when the producer is gone. Those records may or may not be in the log."""
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
        except Exception as failure:  # noqa: BLE001 - raised to the loop below, after the other groups have their outcomes
            failures.append(failure)
    if failures:
        # A bug of one waiter. Raised last: waiters of the same poll would otherwise wait for ever, those of other
        # shards too.
        raise ExceptionGroup("callbacks for delivery outcomes failed", failures)
