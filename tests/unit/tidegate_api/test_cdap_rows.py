"""Rows of CDAP's scheduler that a client meets at the API, as they state them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.builders import SECOND
from tests.support.harness.actor_harness import ActorHarness
from tests.unit.tidegate_api.conftest import NOW, SHARDS, SPEC, Process, put_schedule
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.rows.store_operations import Put
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


@pytest.fixture
def owned(process: Process) -> Process:
    """An API process with a real owner of all shards behind it, who decides on its requests in the same store."""
    process.store.write([Put(MAP_KEY, {"pk": "MAP", "sk": "MAP", "version": 1, "n": 1, "shards": SHARDS})])
    bench = ActorHarness(shards=SHARDS)
    bench.store, bench.now = process.store, NOW
    bench.run(SECOND)

    def decides(document: Mapping[str, Any]) -> Receipt:
        bench.request(dict(document))
        return Receipt.model_validate(bench.receipts()[document["id"]])

    process.bus.owner = decides
    return process


def shown(process: Process, name: str, namespace: str = "flights") -> dict[str, Any]:
    answer = process.http.get(f"/api/v1/schedules/{namespace}/{name}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def a_program(kind: str, file: str) -> dict[str, Any]:
    return {"type": "program", "program": {"type": kind, "file": file}}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"name": "other"}, "name", id="the body has another name than the path"),
        pytest.param({"namespace": "others"}, "namespace", id="or another namespace"),
        pytest.param({"target": a_program("mapreduce", "/a.py")}, "target.program.type", id="a kind that is none here"),
        pytest.param(
            {"target": a_program("python", "/missing.py")}, "target.program.file", id="a program that is not there"
        ),
    ],
)
def test_given_a_put_that_cannot_be_then_400_names_the_field_and_nothing_is_made(
    owned: Process, changes: dict[str, Any], field: str
) -> None:
    """CD-166: a body for another path, a wrong kind of program, a program that does not exist (404 in CDAP)."""
    answer = owned.http.put(PUT, json={**SPEC, **changes})
    assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (400, [field])
    assert owned.http.get(PUT).status_code == 404


def test_given_a_put_of_what_is_there_already_then_it_changes_nothing_and_whoever_wants_to_create_only_is_refused(
    owned: Process,
) -> None:
    """CD-166: the same again is 409 in CDAP, whose PUT only creates; here it is `unchanged` unless a precondition says that."""
    assert owned.http.put(PUT, json=SPEC).json()["status"] == "accepted"
    again = owned.http.put(PUT, json=SPEC)
    assert (again.status_code, again.json()["status"], again.json()["version"]) == (200, "unchanged", 1)
    assert owned.http.put(PUT, json=SPEC, params={"expected_version": 0}).status_code == 409
    assert owned.http.put(PUT, json=SPEC, headers={"If-None-Match": "*"}).status_code == 412
    assert shown(owned, "land-day")["version"] == 1


def test_given_a_body_without_a_name_then_it_takes_the_paths_and_a_given_timeout_is_kept(owned: Process) -> None:
    """CD-166."""
    unnamed = {name: value for name, value in SPEC.items() if name not in ("kind", "namespace", "name")}
    answer = owned.http.put(PUT, json={**unnamed, "pending_timeout": "6h"})
    assert (answer.status_code, answer.json()["name"]) == (200, "land-day")
    assert shown(owned, "land-day")["spec"]["pending_timeout"] == "6h"


def test_given_a_trigger_of_time_or_data_then_it_is_shown_in_the_form_in_which_it_was_given(owned: Process) -> None:
    """CD-167."""
    leaves: list[dict[str, Any]] = [
        {"type": "cron", "expression": "0 6 * * *", "zone": "Europe/Rome"},
        {"type": "data_partitions", "dataset": "flights.raw", "count": 4},
    ]
    trigger = {"type": "any_of", "triggers": leaves}
    assert owned.http.put(PUT, json={**SPEC, "trigger": trigger}).status_code == 200
    found = shown(owned, "land-day")["spec"]["trigger"]
    assert found["type"] == "any_of"
    pairs = zip(found["triggers"], leaves, strict=True)
    assert [{name: each[name] for name in given} for each, given in pairs] == leaves
    again = owned.http.put(PUT, json={**SPEC, "trigger": found})
    assert again.json()["status"] == "unchanged", "what is shown is the same trigger"


def test_given_a_list_then_its_order_is_the_same_each_time_and_by_name_within_a_shard(owned: Process) -> None:
    """CD-167: CDAP sorts by name. Here the list goes shard by shard, and `tidegate schedule list` sorts all of it."""
    names = [f"s{number:02}" for number in range(30)]
    for name in reversed(names):
        assert owned.http.put(f"/api/v1/schedules/flights/{name}", json={**SPEC, "name": name}).status_code == 200
    lists = [
        [each["name"] for each in owned.http.get("/api/v1/schedules", params={"namespace": "flights"}).json()["items"]]
        for _ in range(2)
    ]
    assert lists[0] == lists[1]
    shards = [schedule_shard("flights", name, SHARDS) for name in lists[0]]
    assert lists[0] == [name for _, name in sorted(zip(shards, lists[0], strict=True))]
    assert sorted(lists[0]) == names


def test_given_deletes_then_what_is_not_there_is_404_what_is_there_200_and_its_namesake_elsewhere_stays(
    owned: Process,
) -> None:
    """CD-168: here a namespace stands for an application, and there are no versions of one."""
    theirs = {**SPEC, "namespace": "others"}
    assert owned.http.put(PUT, json=SPEC).status_code == 200
    assert owned.http.put("/api/v1/schedules/others/land-day", json=theirs).status_code == 200
    for unknown in ("/api/v1/schedules/nowhere/land-day", "/api/v1/schedules/flights/unknown"):
        assert owned.http.delete(unknown).status_code == 404
    assert owned.http.delete(PUT).status_code == 200
    assert owned.http.get(PUT).status_code == 404
    assert owned.http.delete(PUT).status_code == 404, "it is gone"
    assert shown(owned, "land-day", "others")["status"] == "active"
