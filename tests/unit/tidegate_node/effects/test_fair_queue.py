"""What those who wait for a turn are told."""

from __future__ import annotations

import asyncio

import pytest

from tidegate_node.effects.fair_queue import tell_error


async def test_given_an_error_then_who_asked_gets_it() -> None:
    asked = asyncio.get_running_loop().create_future()
    tell_error(asked, ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        await asked


async def test_given_a_call_that_was_cancelled_then_who_asked_is_cancelled_too() -> None:
    """An actor that is dropped takes its calls along. As an error that nobody fetches each would be a line in the log."""
    asked = asyncio.get_running_loop().create_future()
    tell_error(asked, asyncio.CancelledError())
    assert asked.cancelled()
    tell_error(asked, asyncio.CancelledError())
