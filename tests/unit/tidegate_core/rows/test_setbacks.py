"""Whether two attempts died alike: words with a digit differ between two deaths of one cause, other words do not."""

from __future__ import annotations

import time

import pytest

from tests.support.builders import a_run
from tests.support.machine_speed import slowness
from tidegate_core.rows.effects import ProgramEnded
from tidegate_core.rows.run import dies_alike, setback_of

A_LONG_WORD = "x" * 100_000


def is_alike(first: str, second: str) -> bool:
    def setback(reason: str) -> str:
        return setback_of(a_run(), ProgramEnded(1, "unknown", reason), reason, "unknown", 0)

    return dies_alike(a_run(setback=setback(first)), setback(second))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("pid 4711 ended", "pid 4801 ended", True, id="a number"),
        pytest.param("spark-a1b2_c: no heap", "spark-d3e4-f: no heap", True, id="a random name"),
        pytest.param("10.0.0.1:7077 refused", "10.0.0.22:7078 refused", True, id="an address"),
        pytest.param("no heap", "no disk", False, id="another word"),
        pytest.param("no module_a", "no module_b", False, id="a name without a digit"),
    ],
)
def test_given_two_reasons_then_they_are_alike_but_for_words_with_a_digit(
    first: str, second: str, expected: bool
) -> None:
    assert is_alike(first, second) == expected


def test_given_a_very_long_word_then_reasons_are_compared_in_linear_time() -> None:
    """The expression that looked for the digit by itself took quadratic time: minutes for this word."""
    begun = time.perf_counter()
    assert is_alike(f"{A_LONG_WORD} 1", f"{A_LONG_WORD} 2")
    assert time.perf_counter() - begun < slowness()
