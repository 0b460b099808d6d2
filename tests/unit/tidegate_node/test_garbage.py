"""Cycles are seldom looked for while a node runs, and as before behind it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tidegate_node.process_lifecycle import seldom_looked_for

MESSAGES_OF_A_BURST = 20_000
OF_THE_INTERPRETER = (700, 10, 10)


@pytest.fixture(autouse=True)
def _as_the_interpreter_begins() -> Iterator[None]:
    """Not as the tests set it for themselves."""
    before = gc.get_threshold()
    gc.unfreeze()
    gc.set_threshold(*OF_THE_INTERPRETER)
    yield
    gc.set_threshold(*before)
    gc.freeze()


def looks() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def test_given_a_node_that_runs_then_a_burst_is_hardly_looked_through() -> None:
    with seldom_looked_for():
        before = looks()
        burst = [[number] for number in range(MESSAGES_OF_A_BURST)]

        assert looks() - before <= 1, "with the interpreter's own thresholds it is about thirty times"
    assert len(burst) == MESSAGES_OF_A_BURST


def test_given_a_node_that_runs_then_what_was_there_before_is_not_looked_at() -> None:
    before = gc.get_freeze_count()
    with seldom_looked_for():
        assert gc.get_freeze_count() > before


def test_given_a_node_that_fails_then_the_interpreter_is_as_it_was() -> None:
    before = gc.get_threshold()

    with pytest.raises(RuntimeError, match="a bug"), seldom_looked_for():
        raise RuntimeError("a bug")

    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
