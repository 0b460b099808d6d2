"""A bulk of low launches does not stand before an urgent one of the same node."""

from __future__ import annotations

import asyncio

import pytest

from tidegate_core.language.definitions.run_policies import Priority
from tidegate_node.effects.launch_queue import LaunchLine


async def waiting(line: LaunchLine, order: list[str], name: str, priority: Priority) -> asyncio.Task[None]:
    """Has a launch wait for its place; it notes its name once it has one."""

    async def wait() -> None:
        await line.take(priority)
        order.append(name)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    return task


async def test_given_low_launches_in_line_then_an_urgent_one_goes_next_and_a_class_is_first_come_first_served() -> None:
    line, order = LaunchLine(1), list[str]()
    await line.take("low")
    named: list[tuple[str, Priority]] = [
        ("low 1", "low"),
        ("low 2", "low"),
        ("urgent", "highest"),
        ("medium", "medium"),
    ]
    tasks = [await waiting(line, order, name, priority) for name, priority in named]
    for _ in tasks:
        line.give_back()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order == ["urgent", "medium", "low 1", "low 2"]


@pytest.mark.parametrize("at_once", [False, True], ids=["while it waits", "as it gets its place"])
async def test_given_a_launch_that_is_withdrawn_then_its_place_is_the_next_ones(at_once: bool) -> None:
    line, order = LaunchLine(1), list[str]()
    await line.take("low")
    first = await waiting(line, order, "first", "high")
    second = await waiting(line, order, "second", "low")
    if at_once:
        line.give_back()
    first.cancel()
    await asyncio.sleep(0)
    if not at_once:
        line.give_back()
    await asyncio.wait_for(second, 5)
    assert order == ["second"]
    line.give_back()
    await asyncio.wait_for(line.take("lowest"), 5)
