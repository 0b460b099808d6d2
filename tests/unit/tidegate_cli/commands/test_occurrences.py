"""`tidegate occurrence list`: skips have a list."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.tidegate_cli.conftest import FakeApi
from tidegate_cli import main


def an_occurrence(hour: int, disposition: str = "skipped", reason: str = "overlap") -> dict[str, Any]:
    nominal = f"2026-11-20T{hour:02d}:00:00Z"
    return {
        "namespace": "flights",
        "schedule": "land",
        "version": 1,
        "job_id": f"0000-{hour}",
        "trigger": "time",
        "nominal": nominal,
        "disposition": disposition,
        "reason": reason,
        "at": nominal,
        "detail": "still open: 0000-0",
    }


def test_given_skipped_occurrences_then_the_list_has_each_with_its_reason_newest_first(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [an_occurrence(1), an_occurrence(2, "launched", ""), an_occurrence(3)]
    api.answers["GET /occurrences"] = (200, {"items": items})
    asked = ["occurrence", "list", "-n", "flights", "--disposition", "skipped", "--since", "2026-11-20T00:00:00Z"]
    assert main.run(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:4] for line in lines[1:]] == [
        ["2026-11-20", "03:00:00Z", "skipped/overlap"],
        ["2026-11-20", "01:00:00Z", "skipped/overlap"],
    ]
    assert lines[1].endswith("still open: 0000-0")


def test_given_more_than_the_limit_then_the_newest_are_shown_and_the_rest_is_counted(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["GET /occurrences"] = (200, {"items": [an_occurrence(hour) for hour in range(9)]})
    assert main.run(["occurrence", "list", "-s", "flights/land", "--limit", "2"]) == 0
    told = capsys.readouterr()
    assert [line.split()[2] for line in told.out.splitlines()[1:]] == ["08:00:00Z", "07:00:00Z"]
    assert told.err == "2 of 9 occurrences; --limit shows more of them\n"


def test_given_neither_namespace_nor_schedule_then_usage_says_so(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["occurrence", "list"]) == 2
    assert "--schedule NAMESPACE/NAME" in capsys.readouterr().err
    assert api.asked == []
