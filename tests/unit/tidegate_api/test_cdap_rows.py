"""Rows of CDAP's scheduler that a client meets at the API, as they state them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import SPEC, Process, put_schedule
from tidegate_memory.store import MemoryStore
from tidegate_ports.store import StoreUnavailable

PUT = "/api/v1/schedules/flights/land-day"


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ({"type": "program", "program": {"type": "mapreduce", "file": "/a.py"}}, "target.program.type"),
        ({"type": "program", "program": {"type": "spark", "file": "/a.py"}}, "target.program.type"),
        ({"type": "service"}, "target.type"),
        ({"type": "workflow", "nodes": []}, "target.type"),
    ],
)
def test_given_a_kind_that_cannot_be_scheduled_then_400_names_those_that_can(
    process: Process, target: dict[str, Any], field: str
) -> None:
    """CD-004."""
    answer = process.http.put(PUT, json={**SPEC, "target": target})
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert "planned for" in error["problem"] or "pyspark" in error["hint"] or "program" in error["hint"]
    assert process.bus.produced == []


def test_given_a_namespaces_list_then_it_has_status_and_version_of_each_and_no_deleted_one_page_by_page(
    process: Process,
) -> None:
    """CD-018: records with their meta, deleted ones excluded; `page_size` bounds a page, the token leads to the next."""
    for number in range(7):
        put_schedule(process, {**SPEC, "name": f"s{number}"}, version=number + 1)
    put_schedule(process, {**SPEC, "name": "s7"}, status="suspended")
    put_schedule(process, {**SPEC, "name": "gone"}, status="deleted")
    put_schedule(process, {**SPEC, "namespace": "others"})
    found: list[dict[str, Any]] = []
    token, pages = "", 0
    while token or not pages:
        query = {"namespace": "flights", "page_size": "3", "page_token": token}
        page = process.http.get("/api/v1/schedules", params=query).json()
        assert len(page["items"]) <= 3
        found += page["items"]
        token, pages = page["next_page_token"], pages + 1
    assert pages >= 3
    assert {(each["name"], each["status"], each["version"]) for each in found} == {
        *((f"s{number}", "active", number + 1) for number in range(7)),
        ("s7", "suspended", 1),
    }
    assert len(found) == 8
    assert all(each["spec"]["trigger"] and each["changed_at"] for each in found)


@pytest.fixture
def down_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A store that nobody reaches when the process starts."""

    def silent(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("no answer")

    with monkeypatch.context() as patch:
        for method in ("get", "query"):
            patch.setattr(MemoryStore, method, silent)
        yield patch


def test_given_a_store_that_is_down_at_the_start_then_503_until_it_is_there_without_a_restart(
    down_store: pytest.MonkeyPatch, process: Process
) -> None:
    """CD-108."""
    for path in ("/readyz", "/api/v1/schedules", PUT):
        answer = process.http.get(path)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert process.http.put(PUT, json=SPEC).status_code == 503
    assert process.http.get("/livez").status_code == 200
    down_store.undo()
    assert process.http.get("/readyz").status_code == 200
    assert process.http.put(PUT, json=SPEC).status_code == 200
    assert process.http.get(PUT).status_code == 404
