"""Reads receipts from the store that did not arrive on their topic, for all requests of one submission together.

A call to a store that does not answer holds a thread for seconds. So a submission makes one call at a time until the store has answered,
and leaves the other threads to other reads.

It makes no call while receipts of the submission still arrive on the topic. If many of its requests wait, it also makes none while any
receipts arrive at this process, because its receipts probably come after them. Repeated queries would take capacity from a busy store
that the owners need.

`request_submission.py` uses it, only on the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Final, TypeAlias

from tidegate_api.requests.receipt_lookup import Sought, StoredAnswers
from tidegate_api.requests.receipt_waiters import Waiter
from tidegate_api.thread_pools import Pools
from tidegate_core.language.requests.requests import MessageSend
from tidegate_ports.store import StoreUnavailable

RECEIPTS_PER_CALL_MAX: Final = 100
"""Receipts of one call: DynamoDB's limit of BatchGetItem. A call for messages has only one, because each message is a query."""
CALLS_AT_ONCE_MAX: Final = 8
"""Concurrent calls of one submission while the store answers: half of the read threads. One at a time, 1,000 messages would take 10 s."""

FEW: Final = 150
"""Waiting requests up to which receipts of other submissions do not delay the calls. It is more than an eighth of a batch of 1,000: the
share of one topic partition of eight."""

_Wait: TypeAlias = tuple[Waiter, Sought]


class ReceiptPoller:
    """Polls the store for one submission. On exit it is cancelled and does not wait for an open call.

    Args:
        waiting: Requests on their topic; each is polled until it has an answer.
        answers: Reader of stored answers; it blocks.
        pools: Thread pools; the poller uses the read threads.
        received_at_s: Returns the time at which this process last received an answer for any request.
        quiet_s: Seconds without a receipt on the topic before the first poll; see `quiet_at_s`.
        pause_s: Seconds between two polls.
    """

    def __init__(
        self,
        waiting: Mapping[Waiter, Sought],
        answers: StoredAnswers,
        pools: Pools,
        *,
        received_at_s: Callable[[], float | None],
        quiet_s: float,
        pause_s: float,
    ) -> None:
        self._answers = answers
        self._pools = pools
        self._received_at_s = received_at_s
        self._quiet_s = quiet_s
        self._pause_s = pause_s
        self._waiting = waiting
        self._polling: asyncio.Task[None] | None = None

    def __enter__(self) -> ReceiptPoller:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._polling is not None:
            self._polling.cancel()

    def begin(self) -> None:
        """Starts polling once the topic is quiet, for the requests that wait at that time. Idempotent."""
        if self._polling is None:
            self._polling = asyncio.get_running_loop().create_task(self._poll())

    async def _poll(self) -> None:
        while True:
            if (left_s := self._quiet_in_s()) > 0:
                await asyncio.sleep(left_s)
                continue
            calls, at_once = self._calls(), 1
            while self._quiet_in_s() <= 0 and (now := list(islice(calls, at_once))):
                answered = await asyncio.gather(*map(self._call, now))
                at_once = CALLS_AT_ONCE_MAX if all(answered) else 1
            await asyncio.sleep(self._pause_s)

    def _quiet_in_s(self) -> float:
        return quiet_at_s(self._waiting, self._received_at_s(), self._quiet_s) - time.monotonic()

    def _calls(self) -> Iterator[Sequence[_Wait]]:
        """Yields the requests of each call; requests that were answered before the call are left out."""
        alone = [wait for wait in self._waiting.items() if isinstance(wait[1].request, MessageSend)]
        others = [wait for wait in self._waiting.items() if not isinstance(wait[1].request, MessageSend)]
        for start in range(0, len(others), RECEIPTS_PER_CALL_MAX):
            if together := [each for each in others[start : start + RECEIPTS_PER_CALL_MAX] if each[0].is_waiting]:
                yield together
        for wait in alone:
            if wait[0].is_waiting:
                yield [wait]

    async def _call(self, waits: Sequence[_Wait]) -> bool:
        """Makes one call. Returns False if the store did not answer."""
        try:
            found = await self._pools.read(partial(self._answers.of_all, [sought for _, sought in waits]))
        except StoreUnavailable:
            return False  # The requests are on their topic, so `pending` is correct and no error.
        except Exception as bug:  # noqa: BLE001 - any error goes to the clients that wait
            for waiter, _ in waits:
                waiter.fail(bug)
            return True
        for (waiter, _), receipt in zip(waits, found, strict=True):
            if isinstance(receipt, Exception):
                waiter.fail(receipt)
            elif receipt is not None:
                waiter.find(receipt)
        return True


def quiet_at_s(waiters: Collection[Waiter], received_at_s: float | None, quiet_s: float) -> float:
    """Returns the time from which the topic counts as quiet for a submission, if no more receipts arrive; monotonic clock.

    Args:
        waiters: All waiters of the submission, including answered ones.
        received_at_s: Time at which this process last received an answer for any request.
        quiet_s: Seconds after the last receipt until the topic is quiet.
    """
    received = [waiter.received_at_s for waiter in waiters if waiter.received_at_s is not None]
    if received_at_s is not None and sum(waiter.is_waiting for waiter in waiters) > FEW:
        received.append(received_at_s)
    return max(received) + quiet_s if received else 0.0
