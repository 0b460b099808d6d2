"""The room of batch calls: halved by a round that is too late, wider by one for each round that is answered, in turn."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from tidegate_node.effects.adaptive_concurrency import AdaptiveConcurrency, Call

TURNS = 5
"""Of the loop, within which whoever has a place is in."""


class Callers:
    """Calls that ask for a place, and stay until they are told to leave."""

    def __init__(self, room: AdaptiveConcurrency) -> None:
        self._room = room
        self._leave: list[asyncio.Event] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.inside: dict[int, Call] = {}

    async def ask(self, count: int = 1) -> None:
        for _ in range(count):
            self._leave.append(asyncio.Event())
            self._tasks.append(asyncio.create_task(self._call(len(self._tasks))))
        await turn()

    async def leave(self, *numbers: int) -> None:
        for number in numbers:
            self._leave[number].set()
        await turn()

    async def give_up(self, number: int) -> None:
        self._tasks[number].cancel()
        await turn()

    async def _call(self, number: int) -> None:
        async with self._room.place() as call:
            self.inside[number] = call
            await self._leave[number].wait()
        del self.inside[number]


async def turn() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def test_given_a_full_room_then_the_next_ones_come_in_their_turn_as_others_leave() -> None:
    callers = Callers(AdaptiveConcurrency(2))
    await callers.ask(4)
    assert set(callers.inside) == {0, 1}

    await callers.leave(1)
    assert set(callers.inside) == {0, 2}
    await callers.leave(0, 2)
    assert set(callers.inside) == {3}
    await callers.leave(3)


async def test_given_one_gives_up_while_it_waits_then_its_turn_is_the_next_ones() -> None:
    callers = Callers(AdaptiveConcurrency(1))
    await callers.ask(3)

    await callers.give_up(1)
    await callers.leave(0)

    assert set(callers.inside) == {2}
    await callers.leave(2)


async def test_given_one_gives_up_as_it_is_let_in_then_its_place_is_the_next_ones() -> None:
    async with AsyncExitStack() as around:
        room = AdaptiveConcurrency(1)
        await around.enter_async_context(room.place())
        first, second = (asyncio.create_task(around.enter_async_context(room.place())) for _ in range(2))
        await turn()
        await around.pop_all().aclose()  # Lets the first in, which does not run before it is ended.
        first.cancel()
        await turn()

        assert first.cancelled()
        assert second.done()


async def test_given_calls_that_were_under_way_together_are_too_late_then_the_room_halves_once_for_all() -> None:
    room = AdaptiveConcurrency(16)
    callers = Callers(room)
    await callers.ask(8)
    together = dict(callers.inside)
    for call in together.values():
        room.too_late(call)
    assert room.size == 8

    await callers.leave(*together)
    await callers.ask(2)
    for call in callers.inside.values():
        room.too_late(call)
    assert room.size == 4
    await callers.leave(8, 9)


async def test_given_nothing_but_late_calls_then_one_goes_on_trying() -> None:
    room = AdaptiveConcurrency(2)
    callers = Callers(room)
    for number in range(5):
        await callers.ask()
        room.too_late(callers.inside[number])
        await callers.leave(number)

    assert room.size == 1


async def test_given_answers_again_then_each_round_makes_room_for_one_more_up_to_the_most() -> None:
    room = AdaptiveConcurrency(4)
    callers = Callers(room)
    for number in range(2):
        await callers.ask()
        room.too_late(callers.inside[number])
        await callers.leave(number)
    await callers.ask(3)
    assert room.size == len(callers.inside) == 1

    room.kept_up()
    await turn()
    assert room.size == len(callers.inside) == 2
    room.kept_up()
    assert room.size == 2
    for _ in range(100):
        room.kept_up()
    assert room.size == 4
    await callers.leave(2, 3, 4)
