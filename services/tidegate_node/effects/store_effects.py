"""Carries out the store effects of actors.

Called by `effect_router.py`. The core decides how a transaction is settled (`writes/settlement.py`). This module only
sends, waits and reads back.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, ParamSpec, TypeVar

from tidegate_core.rows.effects import (
    Commit,
    Committed,
    Invalid,
    Items,
    Read,
    ReadRange,
    Refused,
    Unavailable,
    Write,
    Written,
)
from tidegate_core.rows.store_operations import Applied, Cancelled, Item, Key, Page, RangeRead, RawOutcome
from tidegate_core.writes.settlement import ReadWitness, SendAgain, Settlement, Verdict
from tidegate_node.effects.adaptive_concurrency import AdaptiveConcurrency
from tidegate_node.effects.batch_writes import Actions, BatchWrites
from tidegate_node.effects.read_batcher import JoinedReads
from tidegate_ports.clock import Clock
from tidegate_ports.store import AsyncStore, PartlyRead, StoreRequestInvalid, StoreUnavailable, always
from tidegate_telemetry.metrics import Metrics

BATCHES_SHARE: Final = 2
"""Batches get 1/2 of the calls. So reads and transactions, which prove and move the ownership of shards, find a free
call."""
READS_SHARE: Final = 4
"""Reads of single items get 1/4 of the calls; waiting reads join the next call."""
READ_ATTEMPTS_MAX: Final = 3
"""Attempts before the author gets the failure and decides itself. With the client's time-out of 2 s they take about
half a session."""
PAUSE_FIRST_MS: Final = 50
PAUSE_LAST_MS: Final = 2_000
DOUBTFUL_MAX: Final = 10_000
"""Transactions that are remembered as of unknown outcome; their authors send each again within seconds."""

P = ParamSpec("P")
T = TypeVar("T")


class StoreEffects:
    """One per process.

    Args:
        store: The port; it bounds the concurrent calls.
        calls_max: Number of concurrent calls; batches leave half of them to other work.
        jitter: Function that returns a number from 0 to 1; pauses are spread over their whole length.
    """

    def __init__(
        self,
        store: AsyncStore,
        clock: Clock,
        metrics: Metrics,
        calls_max: int,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._jitter = jitter
        self._room = AdaptiveConcurrency(calls_max // BATCHES_SHARE)
        self._batches = BatchWrites(self._write, self._room, self._pause_after)
        self._reads = JoinedReads(self._get, calls_max // READS_SHARE)
        metrics.set("tidegate_store_batch_room", self._room.size)
        self._doubtful: OrderedDict[str, bool] = OrderedDict()
        self.answered_at_ms = clock.monotonic_ms()
        """When the store last carried out a call, or refused it by its condition, on the monotonic clock.

        An error response does not count as an answer. A node without a connection, or with a rejected signature, gets
        the same error for each call, while other nodes could serve its shards.
        """

    async def read(self, effect: Read) -> Items | Unavailable | Invalid:
        found = await self._read(self._reads.get, effect.keys)
        return found if isinstance(found, Unavailable | Invalid) else Items(found)

    async def read_range(self, effect: ReadRange) -> Page | Unavailable | Invalid:
        return await self._read(self._query, effect.range)

    async def commit(self, effect: Commit) -> Verdict | Invalid:
        """Sends until the transaction is settled, or its outcome stays unknown. The author handles an invalid
        transaction.
        """
        verdict: Verdict | Invalid
        try:
            verdict = await self._settle(effect)
        except StoreRequestInvalid as invalid:
            verdict = Invalid(str(invalid))
        self._note_verdict(effect.transaction.name, effect.transaction.token, verdict)
        return verdict

    async def _settle(self, effect: Commit) -> Verdict:
        transaction = effect.transaction
        # An earlier send had no verdict, so a refusal now may be caused by that send's success.
        settlement = Settlement(transaction, doubtful=self._doubtful.pop(transaction.token, False))
        while True:
            settlement, step = settlement.answered(await self._transact(effect))
            if isinstance(step, SendAgain):
                await self._pause(step.after_ms_max)
                continue
            return await self._read_back(settlement, step) if isinstance(step, ReadWitness) else step

    async def write(self, effect: Write, may_send: Callable[[], bool] = always) -> Written | Unavailable | Invalid:
        """Sends until all rows are acknowledged, no progress is made, or sending is forbidden."""
        done = await self._batches.write(effect.batch.actions, may_send)
        self._metrics.set("tidegate_store_batch_room", self._room.size)
        if isinstance(done, Invalid):
            return done
        return Written() if done else Unavailable(f"store, batch {effect.batch.name}")

    async def _read(
        self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T | Unavailable | Invalid:
        what = ""
        for attempt in range(READ_ATTEMPTS_MAX):
            try:
                return await call(*args, **kwargs)
            except StoreRequestInvalid as invalid:
                return Invalid(str(invalid))
            except StoreUnavailable as silence:
                what = str(silence)
            await self._pause(PAUSE_FIRST_MS << attempt)
        return Unavailable(f"store: {what}")

    async def _get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        try:
            return await self._call(self._store.get, keys)
        except PartlyRead as partly:
            if len(partly.unread) < len(keys):
                self._answered()
            raise

    async def _query(self, wanted: RangeRead) -> Page:
        return await self._call(self._store.query, wanted)

    async def _transact(self, effect: Commit) -> RawOutcome:
        outcome = await self._store.transact(effect.transaction)
        if isinstance(outcome, Applied | Cancelled):
            self._answered()
        return outcome

    async def _read_back(self, settlement: Settlement, step: ReadWitness) -> Committed | Refused | Unavailable:
        try:
            found = await self._call(self._store.get, [step.key])
        except StoreUnavailable:
            _, verdict = settlement.unreadable()
        else:
            _, verdict = settlement.witnessed(found.get(step.key))
        assert isinstance(verdict, Committed | Refused | Unavailable)
        return verdict

    def _note_verdict(self, name: str, token: str, verdict: Verdict | Invalid) -> None:
        if isinstance(verdict, Unavailable):
            self._doubtful[token] = True
            while len(self._doubtful) > DOUBTFUL_MAX:
                self._doubtful.popitem(last=False)
        self._metrics.count("tidegate_transactions_total", name=name, verdict=type(verdict).__name__.lower())

    async def _call(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        result = await call(*args, **kwargs)
        self._answered()
        return result

    async def _write(self, actions: Actions, may_leave: Callable[[], bool]) -> Actions:
        left = await self._store.write(actions, may_leave)
        if len(left) < len(actions):
            self._answered()
        return left

    def _answered(self) -> None:
        self.answered_at_ms = self._clock.monotonic_ms()

    async def _pause_after(self, failures: int) -> None:
        await self._pause(min(PAUSE_FIRST_MS << failures, PAUSE_LAST_MS))

    async def _pause(self, milliseconds_max: int) -> None:
        await asyncio.sleep(milliseconds_max * self._jitter() / 1000)
