"""What is kept of a long error text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_ports.common.shortened_text import cause_in, keep_ends, last_lines


@given(text=st.text(max_size=400), most=st.integers(min_value=16, max_value=200))
def test_given_any_text_then_what_is_kept_fits_and_a_text_that_fits_is_kept_whole(text: str, most: int) -> None:
    assert len(keep_ends(text, most).encode()) <= most
    assert len(last_lines(text, most).encode()) <= most
    if len(text.encode("utf-8", "replace")) <= most:
        assert keep_ends(text, most) == text.encode("utf-8", "replace").decode()


def test_given_a_long_text_then_its_beginning_and_its_end_are_kept() -> None:
    kept = keep_ends("Job aborted" + "x" * 5_000 + "ValueError: no day 31", 100)
    assert kept.startswith("Job aborted")
    assert kept.endswith("ValueError: no day 31")


def test_given_more_lines_than_fit_then_the_last_whole_ones_are_kept() -> None:
    assert last_lines("\n".join(f"line {number}" for number in range(100)), 20) == "line 98\nline 99"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("all is well\nbye", "bye", id="no error is named"),
        pytest.param(
            "Invalid maximum heap size: -Xmx4 gigs\nError: Could not create the Java Virtual Machine.",
            "Error: Could not create the Java Virtual Machine.",
            id="java",
        ),
        pytest.param(
            "java.lang.RuntimeException: [unresolved dependency: org.nowhere#nothing;1.0: not found]\n\tat a.b.C$.d(E.scala:1)\n26/11/20 INFO ShutdownHookManager: bye",
            "java.lang.RuntimeException: [unresolved dependency: org.nowhere#nothing;1.0: not found]",
            id="what follows an exception",
        ),
        pytest.param(
            "Traceback (most recent call last):\n  File \"x.py\", line 1\nModuleNotFoundError: No module named 'flights'",
            "ModuleNotFoundError: No module named 'flights'",
            id="python",
        ),
    ],
)
def test_given_the_end_of_an_error_output_then_the_line_that_names_the_error_is_the_cause(
    text: str, cause: str
) -> None:
    assert cause_in(text) == cause
