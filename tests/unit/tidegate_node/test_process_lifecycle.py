"""A process's life: a start that a signal cuts short, a signal that is passed on, refusals that become exit codes."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from tidegate_node.process_lifecycle import exit_code_of, stop_on_signals, unless_stopped
from tidegate_node.startup_checks import EXIT_CONFIGURATION, EXIT_TRY_LATER, NotYet, StartRefused

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


async def test_given_a_start_that_comes_to_something_then_that_is_returned() -> None:
    async def start() -> str:
        return "facts"

    assert await unless_stopped(start(), asyncio.Event()) == "facts"


async def test_given_an_order_to_stop_before_anything_answered_then_the_start_is_given_up() -> None:
    given_up, stop = asyncio.Event(), asyncio.Event()

    async def start() -> str:
        stop.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        return "facts"

    assert await unless_stopped(start(), stop) is None
    await asyncio.wait_for(given_up.wait(), 20)


async def test_given_a_start_that_is_refused_then_the_refusal_is_raised() -> None:
    async def start() -> None:
        raise StartRefused("no map")

    with pytest.raises(StartRefused, match="no map"):
        await unless_stopped(start(), asyncio.Event())


async def test_given_a_signal_then_it_is_an_order_to_stop() -> None:
    stop = stop_on_signals()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stop.wait(), 20)
        assert stop.is_set()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(number)


@pytest.mark.parametrize(
    ("failure", "code"), [(StartRefused("no map"), EXIT_CONFIGURATION), (NotYet("store"), EXIT_TRY_LATER)]
)
def test_given_a_life_that_could_not_begin_then_it_is_said_and_becomes_the_exit_code(
    around: Surroundings, failure: Exception, code: int
) -> None:
    async def life() -> int:
        raise failure

    assert exit_code_of(life(), around.notes) == code
    assert around.notes.names() == ["node_refused"]
