"""What the end of a run was, as a retry sees it."""

from __future__ import annotations

import pytest

from tidegate_core.decisions.run_plane.retrying import error_of
from tidegate_testkit.builders import a_run


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        pytest.param("user_code", "user_code", id="a class"),
        pytest.param(None, "unknown", id="nobody said"),
        pytest.param("of_a_newer_version", "unknown", id="a class of a newer version, during a rolling update"),
    ],
)
def test_given_what_was_told_of_an_end_then_it_is_a_class_that_a_retry_knows(told: str | None, seen: str) -> None:
    assert error_of(a_run(state="closed", error_class=told)) == seen
