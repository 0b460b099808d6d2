"""Requests, from log to receipt: the answer in each status, repeats, ids, versions, order (SEMANTICS 10 to 12, 17)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders import REQUESTS_ID, SECOND, Doc, a_request, a_spec, an_apply, every, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.request_bench import answer, brought_to
from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Key, Put


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


APPLY = an_apply(a_spec(trigger=every("2h")), "it")
SAME = an_apply(a_spec(trigger=every("1h")), "it")
TABLE = {
    #              unknown      active       suspended    deleted
    "apply": ["accepted", "accepted", "accepted", "accepted"],
    "delete": ["not_found", "accepted", "accepted", "not_found"],
    "suspend": ["not_found", "accepted", "unchanged", "not_found"],
    "resume": ["not_found", "unchanged", "accepted", "not_found"],
    "trigger": ["not_found", "accepted", "rejected", "not_found"],
}
STATUSES = ["unknown", "active", "suspended", "deleted"]
CASES = [
    pytest.param(kind, status, expected, id=f"{kind} when {status}")
    for kind, row in TABLE.items()
    for status, expected in zip(STATUSES, row, strict=True)
]


def the_request(kind: str, **more: Any) -> Doc:
    return {**(APPLY if kind == "apply" else a_request(kind, request_id="it")), **more}


@pytest.mark.parametrize(("kind", "status", "expected"), CASES)
def test_given_a_status_then_each_request_has_its_answer(
    bench: ActorHarness, kind: str, status: str, expected: str
) -> None:
    brought_to(bench, status)
    assert answer(bench, the_request(kind))["status"] == expected


@pytest.mark.parametrize(("kind", "status", "expected"), CASES)
def test_given_a_repeated_request_id_then_the_same_answer_comes_and_nothing_is_done_again(
    bench: ActorHarness, kind: str, status: str, expected: str
) -> None:
    brought_to(bench, status)
    first = answer(bench, the_request(kind), run=2 * SECOND)
    state, jobs = bench.state_of(), bench.ledger()
    assert answer(bench, the_request(kind), run=2 * SECOND) == first
    assert bench.state_of() == state
    assert bench.ledger() == jobs


@pytest.mark.parametrize("falls", [False, True], ids=["same owner", "successor"])
def test_given_another_definition_under_an_id_that_was_used_then_it_is_refused_and_not_called_accepted(
    bench: ActorHarness, falls: bool
) -> None:
    """Found in review: whoever applied each version under one id was told `accepted`, with the first one's version, and nothing changed."""
    assert answer(bench, SAME)["status"] == "accepted"
    if falls:
        bench.crash()
        bench.run(10 * SECOND)
    refused = answer(bench, APPLY)
    assert (refused["status"], refused["errors"][0]["problem"]) == ("rejected", "was used for another request")
    state = bench.state_of()
    assert state is not None
    assert state.version == 1
    assert answer(bench, SAME)["status"] == "accepted"


def test_given_an_answer_that_an_older_release_stored_then_a_repeat_gets_it(bench: ActorHarness) -> None:
    first = answer(bench, SAME)
    (row,) = [each for each in bench.rows("RQ#") if "definition" in each]
    key = Key(str(row["pk"]), str(row["sk"]))
    bench.store.write([Put(key, {name: value for name, value in row.items() if name != "definition"})])
    bench.crash()
    bench.run(10 * SECOND)
    assert answer(bench, SAME) == first


def test_given_versions_then_they_count_up_over_updates_tombstones_and_new_lives(bench: ActorHarness) -> None:
    versions, incarnations = [], []
    requests = [
        an_apply(a_spec(trigger=every("1h")), "1"),
        an_apply(a_spec(trigger=every("2h")), "2"),
        a_request("suspend", request_id="3"),
        a_request("resume", request_id="4"),
        a_request("delete", request_id="5"),
        an_apply(a_spec(trigger=every("2h")), "6"),
    ]
    for request in requests:
        versions.append(answer(bench, request)["version"])
        state = bench.state_of()
        assert state is not None
        incarnations.append(state.incarnation)
    assert versions == [1, 2, 2, 2, 3, 4]
    assert len(set(incarnations[:5])) == 1
    assert incarnations[5] != incarnations[0]


@pytest.mark.parametrize(
    ("status", "expected_version", "answered"),
    [
        ("unknown", 0, "accepted"),
        ("unknown", 1, "conflict"),
        ("unknown", "any", "conflict"),
        ("active", "any", "accepted"),
        pytest.param("deleted", "any", "conflict", id="a deleted one is none of any that exist"),
        ("active", 0, "conflict"),
        ("active", 1, "accepted"),
        ("active", 2, "conflict"),
        pytest.param("deleted", 0, "accepted", id="a deleted one does not exist"),
        pytest.param("deleted", 2, "conflict", id="the tombstone's version is not its"),
    ],
)
def test_given_an_expected_version_then_it_is_compare_and_set(
    bench: ActorHarness, status: str, expected_version: int | str, answered: str
) -> None:
    brought_to(bench, status)
    before = bench.state_of()
    receipt = answer(bench, the_request("apply", expected_version=expected_version))
    assert receipt["status"] == answered
    if answered == "conflict":
        assert receipt["errors"][0]["field"] == "expected_version"
        assert bench.state_of() == before


def test_given_an_identical_spec_then_nothing_changes_but_the_position(bench: ActorHarness) -> None:
    brought_to(bench, "active")
    before = bench.state_of()
    bench.run(SECOND)
    assert answer(bench, SAME)["status"] == "unchanged"
    after = bench.state_of()
    assert before is not None
    assert after is not None
    assert (after.version, after.generation, after.next_nominal) == (1, 1, before.next_nominal)
    assert after.position > before.position


@pytest.mark.parametrize("kind", ["apply", "delete", "suspend", "resume"])
def test_given_an_older_request_that_comes_later_then_it_is_superseded(bench: ActorHarness, kind: str) -> None:
    """From the topic partition of another holder, through the inbox: its position decides, not its arrival."""
    brought_to(bench, "active")
    before = bench.state_of()
    older = Position(bench.now - 1, REQUESTS_ID, 1, 9).text()
    row = InboxRow(namespace="flights", name="nightly", kind="Q", origin=older, body=json.dumps(the_request(kind)))
    shard = schedule_shard("flights", "nightly", 4)
    bench.store.write([Put(row.key(shard), {**to_item(row, row.key(shard)), "rev": 1})])
    bench.give(Woken(shard))
    assert bench.status_of("it") == "superseded"
    assert bench.state_of() == before
    assert bench.rows("I#") == []


def test_given_several_requests_in_one_batch_then_they_are_applied_in_the_order_of_the_log(bench: ActorHarness) -> None:
    documents = [
        an_apply(a_spec(trigger=every("1h")), "1"),
        a_request("suspend", request_id="2"),
        a_request("resume", request_id="3"),
        a_request("delete", request_id="4"),
        a_request("resume", request_id="5"),
    ]
    bench.append("tidegate.requests", 0, *documents)
    bench.run(SECOND)
    assert [bench.status_of(str(number)) for number in range(1, 6)] == ["accepted"] * 4 + ["not_found"]
    order = [str(each.document["request_id"]) for each in bench.on("tidegate.receipts")]
    assert order == ["1", "2", "3", "4", "5"]


def test_given_a_request_without_id_then_it_is_applied_and_its_inbox_row_goes(bench: ActorHarness) -> None:
    document = an_apply(a_spec(trigger=every("1h")))
    del document["id"]
    bench.request(document)
    bench.run(SECOND)
    assert bench.state_of() is not None
    assert bench.rows("I#") == []


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(an_apply(a_spec("two"), "q"), id="another schedule"),
        pytest.param(a_request("delete", "one", request_id="q"), id="another type"),
    ],
)
def test_given_a_request_id_that_was_used_for_another_request_then_it_is_rejected_and_does_nothing(
    second: Doc,
) -> None:
    """Else its sender would take the first one's answer for its own (SEMANTICS 17)."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    assert answer(bench, an_apply(a_spec("one"), "q"))["status"] == "accepted"
    receipt = answer(bench, second)
    assert (receipt["status"], receipt["errors"][0]["field"], receipt["name"]) == ("rejected", "id", second["name"])
    assert {str(row["sk"]) for row in bench.rows("S#")} == {"S#flights/one"}
    (state,) = bench.rows("S#")
    assert state["status"] == "active"
    assert answer(bench, an_apply(a_spec("one"), "q"))["status"] == "accepted"


def test_given_one_request_id_in_two_namespaces_then_both_are_applied() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    for namespace in ("flights", "orders"):
        spec = {**a_spec("one"), "namespace": namespace}
        assert answer(bench, an_apply(spec, "q"))["namespace"] == namespace
    assert {str(row["sk"]) for row in bench.rows("S#")} == {"S#flights/one", "S#orders/one"}


@pytest.mark.parametrize("months", [0, 1, 2, 30])
def test_given_a_name_that_comes_back_long_after_its_delete_then_it_is_a_new_version_and_the_shard_goes_on(
    bench: ActorHarness, months: int
) -> None:
    """The definitions of the first life are still there, whatever TTL removed: no version may be given twice."""
    for version, kind in ((1, "apply"), (2, "delete"), (3, "apply"), (4, "delete"), (5, "apply")):
        apply = an_apply(a_spec(trigger=on_data()), f"{version}")
        document = apply if kind == "apply" else a_request(kind, request_id=f"{version}")
        assert answer(bench, document, run=SECOND)["version"] == version
        if months:
            bench.months(months)
            bench.run(SECOND)
    assert bench.notices("decision_failed") == []
    assert len(bench.commits("control")) == 5
    neighbour = next(n for n in (f"x{n}" for n in range(99)) if schedule_shard("flights", n, 4) == 0)
    assert answer(bench, an_apply(a_spec(neighbour)), run=SECOND)["status"] == "accepted"


def test_given_deletes_of_names_that_never_were_then_their_tombstones_go_and_a_create_begins_at_one(
    bench: ActorHarness,
) -> None:
    """CD-015."""
    for request_id, months in (("1", 1), ("2", 2)):
        receipt = answer(bench, a_request("delete", request_id=request_id))
        assert (receipt["status"], receipt.get("version")) == ("not_found", None), "it told of a version 1"
        if months == 1:
            bench.months(months)
    bench.months(2)
    assert bench.rows("S#") == []
    assert answer(bench, an_apply(a_spec(), "3"))["version"] == 1


@pytest.mark.parametrize(("expected_version", "status"), [(1, "accepted"), (0, "conflict"), (7, "conflict")])
def test_given_an_expected_version_then_run_now_is_compare_and_set_as_well(
    bench: ActorHarness, expected_version: int, status: str
) -> None:
    brought_to(bench, "active")
    receipt = answer(bench, a_request("trigger", expected_version=expected_version), run=5 * SECOND)
    assert receipt["status"] == status
    assert len(bench.started) == (1 if status == "accepted" else 0)


def test_given_a_run_now_that_is_older_than_the_schedule_then_it_is_superseded(bench: ActorHarness) -> None:
    brought_to(bench, "active")
    older = Position(bench.now - 1, REQUESTS_ID, 1, 9).text()
    row = InboxRow(namespace="flights", name="nightly", kind="Q", origin=older, body=json.dumps(the_request("trigger")))
    shard = schedule_shard("flights", "nightly", 4)
    bench.store.write([Put(row.key(shard), {**to_item(row, row.key(shard)), "rev": 1})])
    bench.give(Woken(shard))
    bench.run(5 * SECOND)
    assert bench.status_of("it") == "superseded"
    assert bench.started == []


def test_given_a_create_after_a_delete_of_a_name_that_never_was_then_it_is_version_one(bench: ActorHarness) -> None:
    answer(bench, a_request("delete", request_id="1"))
    assert answer(bench, an_apply(a_spec(), "2", expected_version=0))["version"] == 1
    assert answer(bench, a_request("delete", request_id="3"))["version"] == 2
    assert answer(bench, a_request("delete", request_id="4"))["version"] == 2
