"""Reads of single items: what waits goes along with the next call, and each asker has its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from tidegate_core.rows.store_operations import Item, Key
from tidegate_node.effects.read_batcher import KEYS_PER_CALL_MAX, JoinedReads
from tidegate_ports.store import PartlyRead, StoreRequestInvalid, StoreUnavailable


class Gate:
    """A store that has every item but those of `absent`; its first call is answered when the test says so."""

    def __init__(self, *, absent: str = "", spoilt: str = "", error: Exception | None = None) -> None:
        self.calls: list[list[Key]] = []
        self.opened = asyncio.Event()
        self.reached = asyncio.Event()
        self.reads = JoinedReads(self._call, 1)
        self._absent, self._spoilt, self._error = absent, spoilt, error

    async def _call(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        self.calls.append(list(keys))
        self.reached.set()
        if len(self.calls) == 1:
            await self.opened.wait()
        if self._error is not None and any(key.pk == self._spoilt for key in keys):
            raise self._error
        return {key: {"pk": key.pk, "sk": key.sk} for key in keys if key.pk != self._absent}

    async def joined(self, *asked: Sequence[Key]) -> list[Mapping[Key, Item] | BaseException]:
        """Asks behind somebody who has the only place."""
        first = asyncio.create_task(self.reads.get(of("first", 1)))
        await self.reached.wait()
        others = [asyncio.create_task(self.reads.get(keys)) for keys in asked]
        await asyncio.sleep(0)
        self.opened.set()
        await first
        return await asyncio.gather(*others, return_exceptions=True)


def of(shard: str, count: int) -> list[Key]:
    return [Key(shard, str(number)) for number in range(count)]


async def test_given_reads_that_wait_then_one_call_brings_each_asker_its_own() -> None:
    gate = Gate(absent="b")

    a, b, again = await gate.joined(of("a", 3), of("b", 2), of("a", 1))

    assert not isinstance(a, BaseException)
    assert list(a) == of("a", 3)
    assert not isinstance(again, BaseException)
    assert list(again) == of("a", 1)
    assert b == {}
    assert gate.calls[1:] == [[*of("a", 3), *of("b", 2)]]


async def test_given_more_keys_than_a_call_holds_then_the_next_call_has_them() -> None:
    gate = Gate()

    await gate.joined(of("a", KEYS_PER_CALL_MAX - 1), of("b", 2), of("c", 3 * KEYS_PER_CALL_MAX))

    assert [len(call) for call in gate.calls[1:]] == [KEYS_PER_CALL_MAX - 1, 2, 3 * KEYS_PER_CALL_MAX]


async def test_given_no_answer_then_each_asker_is_told() -> None:
    silence = StoreUnavailable("too late")

    assert await Gate(spoilt="b", error=silence).joined(of("a", 1), of("b", 1)) == [silence, silence]


async def test_given_a_key_that_stays_unread_then_who_asked_for_it_is_told_and_the_others_have_theirs() -> None:
    """Found in review: one throttled key failed up to 99 others that had been read beside it."""
    there: dict[Key, Item] = {key: {"pk": key.pk, "sk": key.sk} for key in [*of("a", 2), *of("b", 1)]}
    partly = PartlyRead("1 of 6 keys were not read", there, {Key("b", "1")})
    gate = Gate(spoilt="b", error=partly)

    a, b, same, absent = await gate.joined(of("a", 2), of("b", 2), of("b", 1), of("c", 1))

    assert b is partly
    assert [list(each) for each in (a, same) if not isinstance(each, BaseException)] == [of("a", 2), of("b", 1)]
    assert absent == {}


async def test_given_a_call_for_several_that_can_never_work_then_the_one_to_blame_is_told_and_the_others_have_theirs() -> (
    None
):
    invalid = StoreRequestInvalid("an empty key")
    gate = Gate(spoilt="b", error=invalid)

    a, b, c = await gate.joined(of("a", 1), of("b", 1), of("c", 1))

    assert b is invalid
    assert [list(each) for each in (a, c) if not isinstance(each, BaseException)] == [of("a", 1), of("c", 1)]


async def test_given_an_asker_who_has_gone_then_nobody_reads_for_it() -> None:
    gate = Gate()
    first = asyncio.create_task(gate.reads.get(of("first", 1)))
    await gate.reached.wait()
    gone = asyncio.create_task(gate.reads.get(of("gone", 1)))
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    other = asyncio.create_task(gate.reads.get(of("other", 1)))
    await asyncio.sleep(0)
    gate.opened.set()

    await first
    await other
    assert gate.calls[1:] == [of("other", 1)]
