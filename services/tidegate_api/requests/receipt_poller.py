"""Looks in the store for the receipts that did not come on their topic, for all requests of one submission together.

A call to a store that does not answer holds a thread for seconds. So a list has one of them at a time until the store has answered,
however many of its requests wait, and other reads have the rest.

While receipts of a list still come on the topic nothing is looked for, nor while any come to this process and much of the list waits: it is most
likely behind these, and a query for each, again and again, would take from a busy store what owners need to get there.

Used by `request_submission.py`, on the event loop only.
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
"""DynamoDB's own limit of BatchGetItem: one call holds them all. Of messages it holds one, because each is a query."""
CALLS_AT_ONCE_MAX: Final = 8
"""Of one list, while the store answers: half of the threads of reads. One after the other 1,000 messages would take 10 s."""

FEW: Final = 150
"""Of which the store may be asked behind other lists: more than the part of a list of 1,000 whose receipts one topic partition of eight has."""

_Wait: TypeAlias = tuple[Waiter, Sought]


class ReceiptPoller:
    """Of one submission; once it is left nothing is asked any more, and nobody waits for what is under way.

    Args:
        waiting: Requests that are on their topic: looks ask for each of them until it has an answer.
        answers: Finds them. Blocking.
        pools: Whose threads of reads it does so on.
        heard_at_s: When this process heard an answer last, whoever waited for it.
        quiet_s: No look is made until the topic has been quiet for so long; see `quiet_at_s`.
        pause_s: Between two looks.
    """

    def __init__(
        self,
        waiting: Mapping[Waiter, Sought],
        answers: StoredAnswers,
        pools: Pools,
        *,
        heard_at_s: Callable[[], float | None],
        quiet_s: float,
        pause_s: float,
    ) -> None:
        self._answers = answers
        self._pools = pools
        self._heard_at_s = heard_at_s
        self._quiet_s = quiet_s
        self._pause_s = pause_s
        self._waiting = waiting
        self._looking: asyncio.Task[None] | None = None

    def __enter__(self) -> ReceiptPoller:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._looking is not None:
            self._looking.cancel()

    def begin(self) -> None:
        """Looks as soon as the topic is quiet, and again and again, for whatever waits by then. Idempotent."""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look_again_and_again())

    async def _look_again_and_again(self) -> None:
        while True:
            if (left_s := self._quiet_in_s()) > 0:
                await asyncio.sleep(left_s)
                continue
            calls, at_once = self._calls(), 1
            while self._quiet_in_s() <= 0 and (now := list(islice(calls, at_once))):
                answered = await asyncio.gather(*map(self._look, now))
                at_once = CALLS_AT_ONCE_MAX if all(answered) else 1
            await asyncio.sleep(self._pause_s)

    def _quiet_in_s(self) -> float:
        return quiet_at_s(self._waiting, self._heard_at_s(), self._quiet_s) - time.monotonic()

    def _calls(self) -> Iterator[Sequence[_Wait]]:
        """What goes into a call each, of what still waits when it is to begin."""
        alone = [wait for wait in self._waiting.items() if isinstance(wait[1].request, MessageSend)]
        others = [wait for wait in self._waiting.items() if not isinstance(wait[1].request, MessageSend)]
        for start in range(0, len(others), RECEIPTS_PER_CALL_MAX):
            if together := [each for each in others[start : start + RECEIPTS_PER_CALL_MAX] if each[0].is_waiting]:
                yield together
        for wait in alone:
            if wait[0].is_waiting:
                yield [wait]

    async def _look(self, waits: Sequence[_Wait]) -> bool:
        """Makes one call; False where the store did not answer."""
        try:
            found = await self._pools.read(partial(self._answers.of_all, [sought for _, sought in waits]))
        except StoreUnavailable:
            return False  # The requests are on their topic: `pending` is the truth, not an error.
        except Exception as bug:  # noqa: BLE001 - whatever it is, who waits is told
            for waiter, _ in waits:
                waiter.fail(bug)
            return True
        for (waiter, _), receipt in zip(waits, found, strict=True):
            if isinstance(receipt, Exception):
                waiter.fail(receipt)
            elif receipt is not None:
                waiter.find(receipt)
        return True


def quiet_at_s(waiters: Collection[Waiter], heard_at_s: float | None, quiet_s: float) -> float:
    """Returns from when on the topic counts as quiet for these, if nothing more comes; monotonic clock.

    Args:
        waiters: Of one submission, with those that have their answer.
        heard_at_s: When this process heard one last, whoever waited for it.
        quiet_s: That long behind the last one.
    """
    heard = [waiter.heard_at_s for waiter in waiters if waiter.heard_at_s is not None]
    if heard_at_s is not None and sum(waiter.is_waiting for waiter in waiters) > FEW:
        heard.append(heard_at_s)
    return max(heard) + quiet_s if heard else 0.0
