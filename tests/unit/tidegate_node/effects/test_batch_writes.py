"""Batches: smaller calls where whole ones take too long, and nobody gives up who gets on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from tidegate_core.rows.effects import Invalid
from tidegate_core.rows.store_operations import Delete, Key, Put
from tidegate_node.effects.adaptive_concurrency import AdaptiveConcurrency
from tidegate_node.effects.batch_writes import WRITE_ATTEMPTS_MAX, WRITES_PER_CALL_MAX, BatchWrites
from tidegate_ports.store import NotSent, StoreRequestInvalid, StoreUnavailable

Actions = Sequence[Put | Delete]


class Store:
    """Takes what `takes` lets it: how many of a call's rows it acknowledges; None is no answer in time."""

    def __init__(self, takes: Callable[[Actions], int | None]) -> None:
        self.takes = takes
        self.calls: list[int] = []
        self.written: Counter[str] = Counter()
        self.pauses: list[int] = []

    async def send(self, actions: Actions, _: Callable[[], bool]) -> Actions:
        self.calls.append(len(actions))
        await asyncio.sleep(0)
        taken = self.takes(actions)
        if taken is None:
            raise StoreUnavailable("too late")
        self.written.update(action.key.sk for action in actions[:taken])
        return actions[taken:]

    async def pause(self, failures: int) -> None:
        self.pauses.append(failures)

    def writes(self, room: int = 16) -> BatchWrites:
        return BatchWrites(self.send, AdaptiveConcurrency(room), self.pause)


def rows(count: int) -> list[Put]:
    return [Put(Key("S", f"{number:03d}"), {"pk": "S", "sk": f"{number:03d}"}) for number in range(count)]


async def test_given_a_store_that_is_too_slow_for_whole_calls_then_halves_of_them_come_about() -> None:
    store = Store(lambda actions: len(actions) if len(actions) <= 6 else None)

    assert await store.writes(room=1).write(rows(100)) is True

    assert sorted(store.written) == [action.key.sk for action in rows(100)]
    assert set(store.written.values()) == {1}
    assert store.calls[:3] == [25, 12, 6]


async def test_given_a_store_that_keeps_up_again_then_calls_grow_again() -> None:
    late = iter([None, None])
    store = Store(lambda actions: next(late, len(actions)))

    assert await store.writes(room=1).write(rows(400)) is True

    assert max(store.calls[5:]) > 12


async def test_given_one_chunk_that_fails_while_others_get_on_then_the_batch_is_not_given_up() -> None:
    """Given up, all of it would be sent again: also what the store has, by which a slow one would only be slower."""
    refusals = 0

    def takes(actions: Actions) -> int | None:
        nonlocal refusals
        if actions[0].key.sk == "000" and refusals < 2 * WRITE_ATTEMPTS_MAX:
            refusals += 1
            return None
        return min(len(actions), 1)

    store = Store(takes)

    assert await store.writes().write(rows(100)) is True
    assert refusals == 2 * WRITE_ATTEMPTS_MAX
    assert set(store.written.values()) == {1}


@pytest.mark.parametrize(
    "takes", [pytest.param(None, id="no answer"), pytest.param(0, id="turned away as a whole, again and again")]
)
async def test_given_a_batch_that_gets_nowhere_then_it_is_given_up_with_longer_and_longer_pauses(
    takes: int | None,
) -> None:
    store = Store(lambda _: takes)

    assert await store.writes().write(rows(WRITES_PER_CALL_MAX)) is False

    assert len(store.calls) == WRITE_ATTEMPTS_MAX
    assert store.pauses == list(range(1, WRITE_ATTEMPTS_MAX + 1))
    assert not store.written


async def test_given_a_store_that_takes_some_of_each_call_then_only_the_rest_is_sent_behind_a_short_pause() -> None:
    store = Store(lambda actions: -(-len(actions) // 2))

    assert await store.writes().write(rows(WRITES_PER_CALL_MAX)) is True

    assert store.calls == [25, 12, 6, 3, 1]
    assert store.pauses == [0, 0, 0, 0]


async def test_given_batches_that_wait_for_room_then_one_of_a_single_row_does_not() -> None:
    asked, answers = asyncio.Event(), asyncio.Event()
    sent: list[int] = []

    async def send(actions: Actions, _: Callable[[], bool]) -> Actions:
        sent.append(len(actions))
        asked.set()
        if len(actions) > 1:
            await answers.wait()
        return ()

    async def pause(_: int) -> None: ...

    writes = BatchWrites(send, AdaptiveConcurrency(1), pause)
    large = asyncio.create_task(writes.write(rows(100)))
    await asked.wait()

    assert await writes.write(rows(1)) is True
    assert sent == [25, 1]

    answers.set()
    assert await large is True


async def test_given_a_guard_that_lapses_amid_a_batch_then_no_further_call_is_made_and_it_is_not_acknowledged() -> None:
    """Seed 6001604: a node went on after a freeze and sent the rest of a batch over what its successor had written."""
    store = Store(lambda actions: len(actions) - 5)
    asked: list[bool] = []

    def may_send() -> bool:
        asked.append(len(asked) < 2)
        return asked[-1]

    assert await store.writes(room=1).write(rows(25), may_send) is False

    assert store.calls == [25, 5]
    assert asked == [True, True, False]


# -- rows of several batches in one call ----------------------------------------------------------------------------------


class Gate:
    """A store whose first call is answered when the test says so."""

    def __init__(self, left: Callable[[Actions], Actions] = lambda _: ()) -> None:
        self.calls: list[list[str]] = []
        self.opened = asyncio.Event()
        self.reached = asyncio.Event()
        self.left = left

    async def send(self, actions: Actions, _: Callable[[], bool]) -> Actions:
        self.calls.append([action.key.pk + action.key.sk for action in actions])
        self.reached.set()
        if len(self.calls) == 1:
            await self.opened.wait()
        return self.left(actions)

    async def pause(self, _: int) -> None: ...

    async def joined(self, *batches: Actions) -> list[bool | object]:
        """Writes the batches behind one that has the only place."""
        writes = BatchWrites(self.send, AdaptiveConcurrency(1), self.pause)
        first = asyncio.create_task(writes.write(of("first", 2)))
        await self.reached.wait()
        others = [asyncio.create_task(writes.write(batch)) for batch in batches]
        await asyncio.sleep(0)
        self.opened.set()
        assert await first is True
        return [await other for other in others]


def of(shard: str, count: int) -> list[Put]:
    return [Put(Key(shard, str(number)), {"pk": shard, "sk": str(number)}) for number in range(count)]


async def test_given_batches_that_wait_for_a_place_then_one_call_takes_as_many_as_it_holds() -> None:
    gate = Gate()

    assert await gate.joined(of("a", 10), of("b", 10), of("c", 10)) == [True, True, True]

    assert [len(call) for call in gate.calls] == [2, 20, 10]


async def test_given_two_batches_with_a_row_of_one_key_then_they_are_not_in_one_call() -> None:
    gate = Gate()

    assert await gate.joined(of("a", 2), of("a", 3)) == [True, True]

    assert gate.calls[1:] == [["a0", "a1"], ["a0", "a1", "a2"]]


async def test_given_a_call_for_several_that_can_never_work_then_each_is_asked_for_alone_and_one_is_to_blame() -> None:
    def left(actions: Actions) -> Actions:
        if any(action.key.pk == "b" for action in actions):
            raise StoreRequestInvalid("b is too large")
        return ()

    gate = Gate(left)

    assert await gate.joined(of("a", 2), of("b", 2), of("c", 2)) == [True, Invalid("b is too large"), True]

    assert [{name[0] for name in call} for call in gate.calls[1:]] == [{"a", "b", "c"}, {"a"}, {"b"}, {"c"}]


async def test_given_rows_that_are_left_of_a_joined_call_then_their_own_batch_sends_them_again() -> None:
    left = iter([(), of("b", 3)[2:]])
    gate = Gate(lambda _: next(left, ()))

    assert await gate.joined(of("a", 3), of("b", 3)) == [True, True]

    assert gate.calls[2:] == [["b2"]]


async def test_given_a_batch_that_may_not_be_sent_any_more_then_those_that_go_along_with_it_are() -> None:
    gate = Gate()
    writes = BatchWrites(gate.send, AdaptiveConcurrency(1), gate.pause)
    first = asyncio.create_task(writes.write(of("first", 2)))
    await gate.reached.wait()
    fenced = asyncio.create_task(writes.write(of("a", 2), lambda: False))
    other = asyncio.create_task(writes.write(of("b", 2)))
    await asyncio.sleep(0)
    gate.opened.set()

    assert [await first, await fenced, await other] == [True, False, True]
    assert gate.calls[1:] == [["b0", "b1"]]


@pytest.mark.parametrize("goes", ["its guard lapses", "its author goes"])
async def test_given_a_call_that_waits_for_the_store_then_what_may_not_be_sent_any_more_does_not_leave_with_it(
    goes: str,
) -> None:
    """Found in review: all places at a slow store were taken by queries, and rows left seconds behind the loss of their shard."""
    waits, may_leave_now = asyncio.Event(), asyncio.Event()
    left: list[list[str]] = []

    async def send(actions: Actions, may_leave: Callable[[], bool]) -> Actions:
        waits.set()
        await may_leave_now.wait()
        if not may_leave():
            raise NotSent
        left.append([action.key.pk + action.key.sk for action in actions])
        return ()

    async def pause(_: int) -> None: ...

    holds = True
    writes = BatchWrites(send, AdaptiveConcurrency(1), pause)
    fenced = asyncio.create_task(writes.write(of("a", 2), lambda: holds))
    other = asyncio.create_task(writes.write(of("b", 2)))
    await waits.wait()
    if goes == "its guard lapses":
        holds = False
    else:
        fenced.cancel()
    await asyncio.sleep(0)
    may_leave_now.set()

    assert await other is True
    await asyncio.wait([fenced])
    assert fenced.cancelled() or fenced.result() is False
    assert left == [["b0", "b1"]]


async def test_given_an_error_that_nobody_foresaw_then_each_that_went_along_is_told() -> None:
    def left(actions: Actions) -> Actions:
        if actions[0].key.pk != "first":
            raise RuntimeError("a bug")
        return ()

    with pytest.raises(RuntimeError, match="a bug"):
        await Gate(left).joined(of("a", 2))
