"""Batches reads of single items: waiting requests join the next call as far as it has room.

Used by `store_effects.py`, on the event loop only. A shard's few keys need a separate call only while no other shard
reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tidegate_core.rows.store_operations import Item, Key
from tidegate_node.effects.fair_queue import FairQueue, tell, tell_error
from tidegate_ports.store import PartlyRead, StoreRequestInvalid

KEYS_PER_CALL_MAX: Final = 100
"""DynamoDB's limit; a larger request gets separate calls."""

Found: TypeAlias = Mapping[Key, Item]
Call: TypeAlias = Callable[[Sequence[Key]], Awaitable[Found]]
"""Reads, consistently. Raises StoreUnavailable, StoreRequestInvalid."""


@dataclass(slots=True, eq=False)
class _Ask:
    """Requested keys. `alone` if a shared call was refused and the faulty request is unknown."""

    keys: Sequence[Key]
    found: asyncio.Future[Found]
    alone: bool = False


class JoinedReads:
    """One per process.

    Args:
        call: Function that makes a call.
        most: Concurrent calls, from 1; with fewer calls more requests share each.
    """

    def __init__(self, call: Call, most: int) -> None:
        self._call = call
        self._places = asyncio.Semaphore(max(1, most))
        self._turns: FairQueue[_Ask] = FairQueue(self._take_turn)

    async def get(self, keys: Sequence[Key]) -> Found:
        """Returns the items that exist.

        Raises:
            StoreUnavailable: No answer, or not for all keys.
            StoreRequestInvalid: The request can never work.
        """
        ask = _Ask(keys, asyncio.get_running_loop().create_future())
        self._turns.add(ask)
        return await ask.found

    async def _take_turn(self) -> None:
        async with self._places:
            asks = self._next_asks()
            if asks:
                await self._read(asks)

    def _next_asks(self) -> list[_Ask]:
        asks: list[_Ask] = []
        count = 0
        waiting = self._turns.waiting
        while waiting:
            ask = waiting[0]
            if asks and (ask.alone or count + len(ask.keys) > KEYS_PER_CALL_MAX):
                break  # It gets a separate turn.
            asks.append(waiting.popleft())
            count += len(ask.keys)
            if ask.alone:
                break
        return [ask for ask in asks if not ask.found.done()]

    async def _read(self, asks: Sequence[_Ask]) -> None:
        try:
            found = await self._call(list(dict.fromkeys(key for ask in asks for key in ask.keys)))
        except StoreRequestInvalid as invalid:
            if len(asks) == 1:
                tell_error(asks[0].found, invalid)
                return
            for ask in reversed(asks):
                ask.alone = True
                self._turns.add(ask, in_front=True)
        except PartlyRead as partly:
            for ask in asks:
                if partly.unread.isdisjoint(ask.keys):
                    tell(ask.found, _of(ask, partly.found))
                else:
                    tell_error(ask.found, partly)
        except BaseException as error:
            for ask in asks:
                tell_error(ask.found, error)
            if not isinstance(error, Exception):
                raise
        else:
            for ask in asks:
                tell(ask.found, _of(ask, found))


def _of(ask: _Ask, found: Found) -> Found:
    return {key: found[key] for key in ask.keys if key in found}
