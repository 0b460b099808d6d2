"""A dry run takes a thread of the API's reads: what is refused is searched no longer than its check does."""

from __future__ import annotations

import pytest

from tests.unit.tidegate_api.conftest import SPEC, Process
from tests.unit.tidegate_core.never_comes import NEVER
from tidegate_core.language.triggers.search import STEPS_PER_SEARCH, Search


def test_given_exclusions_that_leave_nothing_then_a_dry_run_is_refused_within_the_bound_of_its_check(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared, takes = [0], Search.takes

    def counting(search: Search, comparisons: int) -> bool:
        compared[0] += 1 + comparisons
        assert compared[0] < 10 * STEPS_PER_SEARCH, "the search goes on and on"
        return takes(search, comparisons)

    monkeypatch.setattr(Search, "takes", counting)
    query = {"dry_run": "true"}
    answer = process.http.put("/api/v1/schedules/flights/land-day", json={**SPEC, "trigger": NEVER}, params=query)
    assert answer.status_code == 400
    error = answer.json()["errors"][0]
    assert "excludes so much that no time" in error["problem"]
    assert compared[0] <= STEPS_PER_SEARCH + 100
