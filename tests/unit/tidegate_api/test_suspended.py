"""Schedules that somebody suspended within a span: listed, and let go on (row CD-019)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import NOW, SPEC, TOPICS, Process, put_schedule
from tidegate_core.language.values.instants import format_instant

HOUR = 3_600_000


def suspended(process: Process, name: str, at: int, by: str | None = "ana", **fields: Any) -> None:
    given: dict[str, Any] = {"status": "suspended", "suspended_at": at, "next_nominal": None}
    if by is not None:
        given |= {"stopped_by": by, "stopped_for": "repair"}
    put_schedule(process, {**SPEC, "name": name}, **{**given, **fields})


@pytest.fixture
def after_a_repair(process: Process) -> Process:
    """What a repair of an hour has suspended, and what has nothing to do with it."""
    suspended(process, "before", NOW - 1)
    suspended(process, "first", NOW)
    suspended(process, "last", NOW + HOUR - 1, by="", mode="hold", stopped_for=None)
    suspended(process, "after", NOW + HOUR)
    suspended(process, "began-so", NOW + 1, by=None)
    suspended(process, "gone", NOW + 1, status="deleted")
    put_schedule(process, {**SPEC, "name": "active"}, suspended_at=NOW + 1)
    return process


def listed(process: Process, **query: int | str) -> list[dict[str, Any]]:
    params = {name: format_instant(value) if isinstance(value, int) else value for name, value in query.items()}
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        answer = process.http.get("/api/v1/schedules", params={**params, "page_token": token, "page_size": "1"})
        assert answer.status_code == 200
        found += answer.json()["items"]
        token = answer.json()["next_page_token"]
        if not token:
            return sorted(found, key=lambda item: str(item["name"]))


def test_given_a_span_then_those_are_listed_that_somebody_suspended_in_it_with_who_and_why(
    after_a_repair: Process,
) -> None:
    """CD-019: from inclusive, to exclusive, and never one that was not enabled before."""
    first, last = listed(after_a_repair, suspended_from=NOW, suspended_to=NOW + HOUR)
    since = format_instant(NOW)
    assert (first["name"], last["name"], last["mode"]) == ("first", "last", "hold")
    assert first["suspension"] == {"since": since, "requested": True, "actor": "ana", "reason": "repair"}
    assert (last["suspension"]["actor"], last["suspension"]["reason"]) == (None, None)


def test_given_one_bound_or_none_then_the_other_side_is_open(after_a_repair: Process) -> None:
    assert [view["name"] for view in listed(after_a_repair, suspended_to=NOW)] == ["before"]
    assert [view["name"] for view in listed(after_a_repair, suspended_from=NOW + HOUR)] == ["after"]
    everything = {view["name"]: view["suspension"] for view in listed(after_a_repair)}
    assert set(everything) == {"before", "first", "last", "after", "began-so", "active"}
    assert everything["active"] is None
    assert everything["began-so"]["requested"] is False


def test_given_another_namespace_then_its_own_are_listed_alone(after_a_repair: Process) -> None:
    span: dict[str, int] = {"suspended_from": NOW, "suspended_to": NOW + HOUR}
    assert listed(after_a_repair, namespace="elsewhere", **span) == []
    assert len(listed(after_a_repair, namespace="flights", **span)) == 2


def test_given_a_bound_that_is_no_time_then_400_names_it(process: Process) -> None:
    answer = process.http.get("/api/v1/schedules", params={"suspended_from": "yesterday"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "suspended_from")


def test_given_a_resume_of_one_suspend_then_its_instant_reaches_the_owner(process: Process) -> None:
    at = format_instant(NOW)
    assert process.http.post("/api/v1/schedules/flights/a/resume", json={"suspended_at": at}).status_code == 200
    assert process.bus.on(TOPICS.requests)[0]["suspended_at"] == at
