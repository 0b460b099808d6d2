from __future__ import annotations

import pytest

from tests.support.checkers.expected_occurrences import every_nth_second


@pytest.mark.parametrize(
    ("expression", "start", "end", "seconds"),
    [pytest.param("*/8 * * * * *", 1, 16_000, [8], id="start inclusive, end exclusive")],
)
def test_given_an_expression_of_seconds_then_each_instant_is_found(
    expression: str, start: int, end: int, seconds: list[int]
) -> None:
    assert every_nth_second(expression, start, end) == [second * 1_000 for second in seconds]
