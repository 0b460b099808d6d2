"""Several schedules in one request: usually all or none of them change (row CD-016)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.builders import on_run_of
from tests.unit.tidegate_api.conftest import SPEC, TOPICS, Process, accepted, put_schedule
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus

BATCH = "/api/v1/schedules"
DELETE = "/api/v1/schedules/delete"


def specs(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{**SPEC, "name": name, **more} for name in names]


def named(*names: str) -> list[dict[str, Any]]:
    return [{"namespace": "flights", "name": name} for name in names]


def fields_of(answer: Any) -> list[str]:
    return [error["field"] for error in answer.json()["errors"]]


def test_given_several_then_each_is_a_request_of_its_own_at_the_version_that_it_had(process: Process) -> None:
    put_schedule(process, {**SPEC, "name": "b"}, version=4)
    answer = process.http.post(BATCH, json=specs("a", "b"), params={"actor": "ana", "on_update": "carry"})
    assert answer.status_code == 200
    assert [(item["name"], item["status"]) for item in answer.json()["items"]] == [("a", "accepted"), ("b", "accepted")]
    sent = process.bus.on(TOPICS.requests)
    assert [(each["name"], each["expected_version"]) for each in sent] == [("a", 0), ("b", 4)]
    assert {(each["type"], each["actor"], each["on_update"]) for each in sent} == {("schedule.apply", "ana", "carry")}
    assert len({each["id"] for each in sent}) == 2


def test_given_several_that_close_a_circle_among_themselves_then_each_is_warned_of_it(process: Process) -> None:
    circle = [{**SPEC, "name": name, "trigger": on_run_of(up)} for name, up in (("a", "b"), ("b", "a"))]
    items = process.http.post(BATCH, json=circle).json()["items"]
    assert [len(item["warnings"]) for item in items] == [1, 1]
    assert "flights/b waits for flights/a waits for flights/b" in items[1]["warnings"][0]


def test_given_one_that_exists_then_creating_creates_none(process: Process) -> None:
    """CD-016: one existing id is AlreadyExists, and none is added."""
    put_schedule(process, {**SPEC, "name": "b"})
    answer = process.http.post(BATCH, json=specs("a", "b", "c"), params={"create_only": "true"})
    assert (answer.status_code, answer.json()["reason"]) == (409, "conflict")
    assert "flights/b" in answer.json()["detail"]
    assert fields_of(answer) == ["[1].name"]
    assert process.bus.produced == []


def test_given_one_that_does_not_exist_then_none_is_deleted(process: Process) -> None:
    """CD-016: one missing id is NotFound, and none is deleted; a tombstone is none."""
    put_schedule(process, {**SPEC, "name": "a"}, version=3)
    put_schedule(process, {**SPEC, "name": "gone"}, status="deleted")
    answer = process.http.post(DELETE, json=named("a", "gone", "never"))
    assert (answer.status_code, fields_of(answer)) == (404, ["[1].name", "[2].name"])
    assert process.bus.produced == []
    done = process.http.post(DELETE, json=named("a"), params={"reason": "over", "cancel_running": "true"})
    assert [item["status"] for item in done.json()["items"]] == ["accepted"]
    (sent,) = process.bus.on(TOPICS.requests)
    assert (sent["type"], sent["expected_version"], sent["cancel_running"]) == ("schedule.delete", 3, True)


def test_given_one_at_another_version_than_expected_then_none_is_deleted(process: Process) -> None:
    for name in ("a", "b"):
        put_schedule(process, {**SPEC, "name": name}, version=2)
    answer = process.http.post(DELETE, json=[*named("a"), {**named("b")[0], "expected_version": 1}])
    assert (answer.status_code, fields_of(answer)) == (409, ["[1].name"])
    assert process.bus.produced == []
    assert process.http.post(DELETE, json=[{**named("b")[0], "expected_version": 2}]).status_code == 200


def test_given_one_that_is_too_large_to_be_kept_then_none_is_applied(process: Process) -> None:
    """Found in review: only the node found out, so that the others were applied."""
    target = {"type": "program", "program": {"type": "python", "file": "/jobs/b.py", "args": ["x" * 1_000] * 66}}
    large = {**SPEC, "name": "b", "target": target}
    answer = process.http.post(BATCH, json=[*specs("a"), large])
    assert (answer.status_code, fields_of(answer)) == (400, ["[1].spec"])
    assert process.bus.produced == []


def test_given_mistakes_in_some_then_all_are_named_with_their_places_and_nothing_is_sent(process: Process) -> None:
    batch = [SPEC, {**SPEC, "name": "b", "overlapp": "queue"}, 7, {**SPEC, "name": "c", "trigger": {"type": "every"}}]
    answer = process.http.post(BATCH, json=batch)
    assert (answer.status_code, fields_of(answer)) == (400, ["[1].overlapp", "[2]", "[3].trigger.period"])
    twice = process.http.post(BATCH, json=[SPEC, SPEC])
    assert (twice.status_code, fields_of(twice)) == (400, ["[1].name"])
    foreign = process.http.post(DELETE, json=[{**named("a")[0], "spec": {}}])
    assert (foreign.status_code, fields_of(foreign)) == (400, ["[0].spec"])
    assert process.bus.produced == []


@pytest.mark.parametrize(
    ("other", "field"),
    [
        pytest.param({"trigger": {"type": "every", "period": "1s"}}, "trigger.period", id="too often"),
        pytest.param({"on_update": "carry", "trigger": {"type": "every", "period": "2h"}}, "on_update", id="carry"),
        pytest.param({"suspended": True}, "suspended", id="already active"),
    ],
)
def test_given_what_its_owner_would_reject_then_nothing_is_sent(
    process: Process, other: dict[str, Any], field: str
) -> None:
    """A dry run of one says the same, by the same functions."""
    put_schedule(process, {**SPEC, "name": "b"})
    answer = process.http.post(BATCH, json=[SPEC, *specs("b", **other)])
    assert (answer.status_code, fields_of(answer)) == (400, [f"[1].{field}"])
    dry = process.http.put("/api/v1/schedules/flights/b", json=specs("b", **other)[0], params={"dry_run": "true"})
    assert (dry.status_code, field in fields_of(dry)) == (400, True)
    assert process.bus.produced == []


@pytest.mark.parametrize("path", [BATCH, DELETE])
@pytest.mark.parametrize("size", [0, 101])
def test_given_more_than_fit_then_400_says_how_many_do(process: Process, path: str, size: int) -> None:
    """CD-016: a batch beyond the limit is refused."""
    batch = specs(*(f"s-{number}" for number in range(size))) if path == BATCH else named(*map(str, range(size)))
    answer = process.http.post(path, json=batch)
    assert answer.status_code == 400
    assert "1 to 100" in answer.json()["detail"]
    assert process.http.post(path, json={"namespace": "flights"}).status_code == 400


def test_given_a_hundred_then_they_fit(process: Process) -> None:
    answer = process.http.post(BATCH, json=specs(*(f"s-{number}" for number in range(100))), params={"create_only": 1})
    assert (answer.status_code, len(answer.json()["items"])) == (200, 100)


def test_given_somebody_who_is_quicker_then_that_one_is_a_conflict_and_the_others_are_applied(process: Process) -> None:
    """What is not atomic, and said so: the owners decide, each for its own."""

    def owner(document: Mapping[str, Any]) -> Receipt | None:
        status = ReceiptStatus.CONFLICT if document["name"] == "b" else ReceiptStatus.ACCEPTED
        return accepted(document, status=status)

    process.bus.owner = owner
    answer = process.http.post(BATCH, json=specs("a", "b", "c"), params={"create_only": "true"})
    assert answer.status_code == 200
    assert [item["status"] for item in answer.json()["items"]] == ["accepted", "conflict", "accepted"]


def test_given_an_owner_that_says_nothing_then_202_tells_which_is_pending(process: Process) -> None:
    process.bus.owner = lambda document: None if document["name"] == "b" else accepted(document)
    answer = process.http.post(BATCH, json=specs("a", "b"))
    assert (answer.status_code, [item["status"] for item in answer.json()["items"]]) == (202, ["accepted", "pending"])
    assert answer.headers["Location"].startswith("/api/v1/requests/flights/")
