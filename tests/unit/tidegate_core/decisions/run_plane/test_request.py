"""Requests on schedules, jobs and runs, from the log to the receipt: what each makes of each state (SEMANTICS 10 to 12, 17)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate_core.decisions.inputs import Poked
from tidegate_core.effects import Commit, Write
from tidegate_core.model.instants import format_instant
from tidegate_core.model.position import Position
from tidegate_core.model.quotas import Quota
from tidegate_core.model.shards import schedule_shard
from tidegate_core.records.codec import to_item
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store.values import Put
from tidegate_testkit.bench import Behaviour, Bench
from tidegate_testkit.builders import (
    HOUR,
    MINUTE,
    REQUESTS_ID,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
    on_run_of,
)

CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00"}


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.run(SECOND)
    return made


def answer(bench: Bench, document: Doc, run: int = 0) -> Doc:
    bench.request(document)
    bench.run(run)
    return bench.receipts()[str(document["id"])]


def brought_to(bench: Bench, status: str) -> None:
    """A schedule in that status; `unknown` is none at all."""
    if status != "unknown":
        answer(bench, an_apply(a_spec(trigger=every("1h"), suspended=status == "suspended"), "made"))
    if status == "deleted":
        answer(bench, a_request("delete", request_id="removed"))


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
def test_given_a_status_then_each_request_has_its_answer(bench: Bench, kind: str, status: str, expected: str) -> None:
    brought_to(bench, status)
    assert answer(bench, the_request(kind))["status"] == expected


@pytest.mark.parametrize(("kind", "status", "expected"), CASES)
def test_given_a_repeated_request_id_then_the_same_answer_comes_and_nothing_is_done_again(
    bench: Bench, kind: str, status: str, expected: str
) -> None:
    brought_to(bench, status)
    first = answer(bench, the_request(kind), run=2 * SECOND)
    state, jobs = bench.state_of(), bench.ledger()
    assert answer(bench, the_request(kind), run=2 * SECOND) == first
    assert bench.state_of() == state
    assert bench.ledger() == jobs


def test_given_versions_then_they_count_up_over_updates_tombstones_and_new_lives(bench: Bench) -> None:
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
        ("active", 0, "conflict"),
        ("active", 1, "accepted"),
        ("active", 2, "conflict"),
        pytest.param("deleted", 0, "accepted", id="a deleted one does not exist"),
        pytest.param("deleted", 2, "conflict", id="the tombstone's version is not its"),
    ],
)
def test_given_an_expected_version_then_it_is_compare_and_set(
    bench: Bench, status: str, expected_version: int, answered: str
) -> None:
    brought_to(bench, status)
    before = bench.state_of()
    receipt = answer(bench, the_request("apply", expected_version=expected_version))
    assert receipt["status"] == answered
    if answered == "conflict":
        assert receipt["errors"][0]["field"] == "expected_version"
        assert bench.state_of() == before


def test_given_an_identical_spec_then_nothing_changes_but_the_position(bench: Bench) -> None:
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
def test_given_an_older_request_that_comes_later_then_it_is_superseded(bench: Bench, kind: str) -> None:
    """From the topic partition of another holder, through the inbox: its position decides, not its arrival."""
    brought_to(bench, "active")
    before = bench.state_of()
    older = Position(bench.now - 1, REQUESTS_ID, 1, 9).text()
    row = InboxRow(namespace="flights", name="nightly", kind="Q", origin=older, body=json.dumps(the_request(kind)))
    shard = schedule_shard("flights", "nightly", 4)
    bench.store.write([Put(row.key(shard), {**to_item(row, row.key(shard)), "rev": 1})])
    bench.give(Poked(shard))
    assert bench.status_of("it") == "superseded"
    assert bench.state_of() == before
    assert bench.rows("I#") == []


def test_given_a_bad_schedule_then_it_is_rejected_with_all_problems_and_nothing_is_made(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=every("500ms"), overlap="perhaps")))
    receipt = bench.receipts()["apply-nightly"]
    assert receipt["status"] == "rejected"
    assert [error["field"] for error in receipt["errors"]] != []
    assert bench.state_of() is None


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param(a_spec(file="/jobs/missing.py"), "target.program.file", id="file"),
        pytest.param(a_spec(trigger=every("1h", end="2020-01-01T00:00:00Z")), "trigger.end", id="over"),
    ],
)
def test_given_a_schedule_that_could_never_run_then_it_is_rejected_when_applied(
    bench: Bench, spec: Doc, field: str
) -> None:
    receipt = answer(bench, an_apply(spec))
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", field)
    assert bench.state_of() is None
    assert bench.rows("DEF#") == []


def test_given_a_time_trigger_then_the_receipt_names_the_next_three_instants(bench: Bench) -> None:
    receipt = answer(bench, an_apply(a_spec(trigger=every("1h"))))
    assert receipt["next"] == ["2025-11-13T03:00:00Z", "2025-11-13T04:00:00Z", "2025-11-13T05:00:00Z"]


@pytest.mark.parametrize("letter", ["x", "é", "日"])
@pytest.mark.parametrize("kilobytes", [60, 70])
def test_given_a_large_program_then_it_is_refused_when_applied_or_it_runs(
    bench: Bench, letter: str, kilobytes: int
) -> None:
    """What is accepted has to fit where it is kept, in every form in which it is kept."""
    letters = kilobytes * 1_000 // len(letter.encode()) // 25
    receipt = answer(bench, an_apply(a_spec(trigger=every("10h"), args=[letter * letters] * 25)))
    assert receipt["status"] == ("accepted" if kilobytes == 60 else "rejected")
    if receipt["status"] == "accepted":
        answer(bench, a_request("trigger"), run=5 * SECOND)
        assert [entry[0] for entry in bench.ledger()] == ["launched"]
    assert bench.notices("decision_failed") == []


@pytest.mark.parametrize("letter", ["x", "é", "日", "\U0001f600"])
@pytest.mark.parametrize("times", [1, 2, 6])
def test_given_large_outputs_then_the_run_they_fire_is_told_of_them_or_skipped_and_blocks_nobody(
    letter: str, times: int
) -> None:
    outputs = {"x": letter * (63_000 // len(letter.encode()))}
    bench = Bench(behaviour=Behaviour(outputs=outputs))
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("10h"), args=["y" * 1_000] * 20)))
    bench.request(an_apply(a_spec("down", on_run_of("up"), args=["${upstream.outputs.x}"] * times)))
    bench.request(an_apply(a_spec("next", on_run_of("up"))))
    answer(bench, a_request("trigger", "up"), run=5 * SECOND)
    ended = {entry[1]: entry[0] for entry in bench.ledger()}
    assert ended["down"] in {"launched", "skipped/unresolved_template"}
    assert ended["down"] == "launched" or times > 1
    assert (ended["up"], ended["next"]) == ("launched", "launched")
    assert bench.notices("decision_failed") == []


# -- what is pending --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param(a_request("delete", request_id="it"), "schedule_deleted", id="delete"),
        pytest.param(a_request("suspend", request_id="it"), "suspended", id="suspend"),
        pytest.param(an_apply(a_spec(args=["new"]), "it"), "superseded", id="update"),
    ],
)
@pytest.mark.parametrize("minutes", [1, 6, 7, 20])
def test_given_pending_jobs_then_all_are_cancelled_before_the_answer(
    bench: Bench, request_: Doc, reason: str, minutes: int
) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
    bench.run(minutes * MINUTE)
    waiting = {str(row["id"]) for row in bench.rows("J#")}
    assert len(waiting) == minutes
    receipt = answer(bench, request_)
    assert set(receipt["discarded"]["jobs"]) == waiting
    assert [entry[0] for entry in bench.ledger()] == [f"cancelled/{reason}"] * minutes
    assert bench.rows("J#") == []


@pytest.mark.parametrize("kind", ["delete", "suspend"])
def test_given_runs_before_and_past_the_gate_then_the_former_are_closed_and_the_latter_listed(kind: str) -> None:
    bench = Bench()
    bench.run(SECOND)
    behaviours = iter([Behaviour(runs_for=None), Behaviour(starts_after=None), Behaviour(starts_after=None)])
    bench.behaves = lambda order: next(behaviours)
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.run(25 * SECOND)
    ids = sorted((int(str(row["nominal"])), str(row["id"])) for row in bench.rows("R#"))
    receipt = answer(bench, a_request(kind))
    assert receipt["running"] == [ids[0][1]]
    assert set(receipt["discarded"]["jobs"]) == {run for _, run in ids[1:]}
    assert [str(row["id"]) for row in bench.rows("R#") if "ended_at" not in row] == [ids[0][1]]


@pytest.mark.parametrize("kind", ["delete", "suspend"])
def test_given_an_acknowledged_end_then_nothing_of_it_ever_starts(kind: str) -> None:
    """I7, with a program that comes to the gate just after the acknowledgement."""
    bench = Bench(behaviour=Behaviour(starts_after=5 * SECOND))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.run(28 * SECOND)
    started = len(bench.started)
    assert answer(bench, a_request(kind))["status"] == "accepted"
    bench.run(HOUR)
    assert len(bench.started) == started


def test_given_discarded_evidence_then_the_answer_says_how_much_and_counting_starts_anew(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=3))))
    for day in ("a", "b"):
        bench.event(an_event(day))
    bench.run(SECOND)
    receipt = answer(bench, an_apply(a_spec(trigger=on_data(count=3), args=["new"]), "it"))
    assert receipt["discarded"]["evidence"] == {"": 2}
    bench.event(an_event("c"))
    bench.run(SECOND)
    assert bench.started == []
    for day in ("d", "e"):
        bench.event(an_event(day))
    bench.run(SECOND)
    assert len(bench.started) == 1


def test_given_evidence_under_many_keys_then_all_of_it_is_discarded_before_the_answer(bench: Bench) -> None:
    trigger = all_of(on_data("a"), on_data("b"), correlate="data_partition")
    bench.request(an_apply(a_spec(trigger=trigger)))
    for number in range(15):
        bench.event(an_event(f"d{number:02d}", "a"))
    bench.run(SECOND)
    receipt = answer(bench, a_request("suspend"))
    assert receipt["discarded"]["evidence"] == {f"d{number:02d}": 1 for number in range(15)}
    assert bench.rows("E#") == []
    assert [row for row in bench.rows("T#") if row["kind"] == "E"] == []


def test_given_runs_under_a_shared_limit_then_a_suspend_returns_all_their_permits() -> None:
    bench = Bench(behaviour=Behaviour(starts_after=None))
    bench.run(SECOND)
    limits = [at_most(4, "program")]
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow", constraints=limits)))
    bench.run(35 * SECOND)
    assert answer(bench, a_request("suspend"))["status"] == "accepted"
    (limit,) = bench.rows("LIMIT")
    assert limit["in_use"] == 0


# -- activation -----------------------------------------------------------------------------------------------------------------


def test_given_events_before_the_request_then_they_never_count_and_those_after_the_receipt_do(bench: Bench) -> None:
    bench.event(an_event("before"))
    bench.request(an_apply(a_spec(trigger=on_data(count=1))))
    bench.run(SECOND)
    assert bench.started == []
    bench.event(an_event("after"))
    bench.run(SECOND)
    assert len(bench.started) == 1


def test_given_events_while_suspended_then_they_are_ignored_and_those_after_the_resume_count(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=2))))
    bench.request(a_request("suspend"))
    for day in ("a", "b", "c"):
        bench.event(an_event(day))
    bench.run(SECOND)
    bench.request(a_request("resume"))
    bench.event(an_event("d"))
    bench.run(SECOND)
    assert bench.started == []
    bench.event(an_event("e"))
    bench.run(SECOND)
    assert len(bench.started) == 1


def test_given_a_suspended_span_then_its_instants_are_no_misses(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    bench.request(a_request("suspend"))
    bench.run(10 * MINUTE)
    bench.request(a_request("resume"))
    bench.run(90 * SECOND)
    assert [entry[0] for entry in bench.ledger()] == ["launched"]


def test_given_an_at_inside_a_suspended_span_then_it_makes_no_occurrence(bench: Bench) -> None:
    at = {"type": "at", "instant": format_instant(bench.now + 5 * MINUTE)}
    bench.request(an_apply(a_spec(trigger=at)))
    bench.request(a_request("suspend"))
    bench.run(10 * MINUTE)
    assert answer(bench, a_request("resume"), run=SECOND)["next"] == []
    bench.run(MINUTE)
    assert bench.ledger() == []


def test_given_an_at_behind_a_suspended_span_then_it_fires_at_its_instant(bench: Bench) -> None:
    at = {"type": "at", "instant": format_instant(bench.now + 5 * MINUTE)}
    bench.request(an_apply(a_spec(trigger=at)))
    bench.request(a_request("suspend"))
    bench.run(MINUTE)
    assert answer(bench, a_request("resume"), run=SECOND)["next"] == [at["instant"]]
    bench.run(5 * MINUTE)
    assert [entry[0] for entry in bench.ledger()] == ["launched"]


def test_given_an_update_then_index_rows_of_the_older_generation_are_gone(bench: Bench) -> None:
    """CD-013."""
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b")))))
    bench.request(an_apply(a_spec(trigger=on_data("c")), "it"))
    bench.run(SECOND)
    assert [row["event_key"] for row in bench.rows("data/")] == ["data/flights/c"]


@pytest.mark.parametrize("kind", ["delete", "suspend"])
def test_given_nobody_who_listens_any_more_then_the_index_rows_are_gone(bench: Bench, kind: str) -> None:
    bench.request(an_apply(a_spec(trigger=on_run_of("up"))))
    bench.request(a_request(kind))
    bench.run(SECOND)
    assert bench.rows("run/") == []


def test_given_an_activation_then_index_rows_come_first_then_their_version_then_the_state(bench: Bench) -> None:
    """CD-010, CD-011. DESIGN 7: whoever reads an event that was produced after the receipt must see the rows."""
    before = len(bench.asked)
    bench.request(an_apply(a_spec(trigger=on_data())))
    names = [
        effect.transaction.name if isinstance(effect, Commit) else effect.batch.name
        for effect in bench.asked[before:]
        if isinstance(effect, Commit | Write)
    ]
    wanted = [name for name in names if name in {"vector", "index", "raise_index", "control"}]
    assert wanted == ["vector", "index", "raise_index", "control"]


# -- one occurrence -------------------------------------------------------------------------------------------------------------


def test_given_a_trigger_by_hand_then_a_run_comes_of_it_under_the_answered_id(bench: Bench) -> None:
    brought_to(bench, "active")
    receipt = answer(bench, a_request("trigger"), run=2 * SECOND)
    assert [order.run_id for order in bench.started] == [receipt["id"]]
    assert [entry[0] for entry in bench.ledger()] == ["launched"]


def test_given_a_trigger_by_hand_then_limits_and_windows_hold(bench: Bench) -> None:
    bench.request(an_apply(a_spec(trigger=every("1h"), constraints=[CLOSED])))
    answer(bench, a_request("trigger"), run=5 * SECOND)
    assert bench.started == []
    assert len(bench.rows("J#")) == 1


@pytest.mark.parametrize(
    ("which", "status"),
    [
        pytest.param({}, "cancelled", id="waiting"),
        pytest.param({"namespace": "flights"}, "cancelled", id="own namespace"),
        pytest.param({"namespace": "others"}, "not_found", id="another namespace"),
        pytest.param({"job_id": "0000-" + "a" * 26}, "not_found", id="unknown"),
    ],
)
def test_given_a_job_cancel_then_its_answer(bench: Bench, which: Doc, status: str) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
    bench.run(MINUTE)
    (job,) = bench.rows("J#")
    request = {"id": "it", "type": "job.cancel", "job_id": str(job["id"]), **which}
    assert answer(bench, request)["status"] == status
    assert (bench.rows("J#") == []) == (status == "cancelled")


def test_given_a_job_that_was_cancelled_before_then_a_second_cancel_is_too_late_and_only_in_its_namespace(
    bench: Bench,
) -> None:
    """It was `not_found`, where the documents say `too_late` and `why` knew it well."""
    bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
    bench.run(MINUTE)
    (job,) = bench.rows("J#")
    asked = {"type": "job.cancel", "job_id": str(job["id"])}
    assert answer(bench, {"id": "1", **asked})["status"] == "cancelled"
    again = answer(bench, {"id": "2", **asked})
    assert (again["status"], again["namespace"], again["name"]) == ("too_late", job["namespace"], job["name"])
    assert answer(bench, {"id": "3", **asked, "namespace": "others"})["status"] == "not_found"


def test_given_a_job_that_became_a_run_then_its_cancel_is_too_late() -> None:
    bench = Bench(behaviour=Behaviour(runs_for=None))
    bench.run(SECOND)
    brought_to(bench, "active")
    run = answer(bench, a_request("trigger"), run=SECOND)["id"]
    assert answer(bench, {"id": "it", "type": "job.cancel", "job_id": run})["status"] == "too_late"


@pytest.mark.parametrize(
    ("behaviour", "status", "running", "state"),
    [
        pytest.param(Behaviour(starts_after=None), "cancelled", 0, "closed", id="before the gate"),
        pytest.param(Behaviour(runs_for=None), "cancelled", 1, "killed", id="past the gate"),
        pytest.param(Behaviour(runs_for=10), "too_late", 0, "succeeded", id="over"),
    ],
)
def test_given_a_run_cancel_then_its_answer_and_the_runs_end(
    behaviour: Behaviour, status: str, running: int, state: str
) -> None:
    bench = Bench(behaviour=behaviour)
    bench.run(SECOND)
    brought_to(bench, "active")
    run = answer(bench, a_request("trigger"), run=SECOND)["id"]
    receipt = answer(bench, {"id": "it", "type": "run.cancel", "run_id": run}, run=SECOND)
    assert receipt["status"] == status
    assert len(receipt["running"]) == running
    assert [entry[3] for entry in bench.ledger()] == [state]


def test_given_several_requests_in_one_batch_then_they_are_applied_in_the_order_of_the_log(bench: Bench) -> None:
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


def test_given_a_request_without_id_then_it_is_applied_and_its_inbox_row_goes(bench: Bench) -> None:
    document = an_apply(a_spec(trigger=every("1h")))
    del document["id"]
    bench.request(document)
    bench.run(SECOND)
    assert bench.state_of() is not None
    assert bench.rows("I#") == []


# -- ids -------------------------------------------------------------------------------------------------------------------


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
    bench = Bench(shards=1)
    bench.run(SECOND)
    assert answer(bench, an_apply(a_spec("one"), "q"))["status"] == "accepted"
    receipt = answer(bench, second)
    assert (receipt["status"], receipt["errors"][0]["field"], receipt["name"]) == ("rejected", "id", second["name"])
    assert {str(row["sk"]) for row in bench.rows("S#")} == {"S#flights/one"}
    (state,) = bench.rows("S#")
    assert state["status"] == "active"
    assert answer(bench, an_apply(a_spec("one"), "q"))["status"] == "accepted"


def test_given_one_request_id_in_two_namespaces_then_both_are_applied() -> None:
    bench = Bench(shards=1)
    bench.run(SECOND)
    for namespace in ("flights", "orders"):
        spec = {**a_spec("one"), "namespace": namespace}
        assert answer(bench, an_apply(spec, "q"))["namespace"] == namespace
    assert {str(row["sk"]) for row in bench.rows("S#")} == {"S#flights/one", "S#orders/one"}


# -- names that come back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("months", [0, 1, 2, 30])
def test_given_a_name_that_comes_back_long_after_its_delete_then_it_is_a_new_version_and_the_shard_goes_on(
    bench: Bench, months: int
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
    bench: Bench,
) -> None:
    """CD-015."""
    assert answer(bench, a_request("delete", request_id="1"))["status"] == "not_found"
    bench.months(1)
    assert answer(bench, a_request("delete", request_id="2"))["status"] == "not_found"
    bench.months(2)
    assert bench.rows("S#") == []
    assert answer(bench, an_apply(a_spec(), "3"))["version"] == 1


# -- run now -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("expected_version", "status"), [(1, "accepted"), (0, "conflict"), (7, "conflict")])
def test_given_an_expected_version_then_run_now_is_compare_and_set_as_well(
    bench: Bench, expected_version: int, status: str
) -> None:
    brought_to(bench, "active")
    receipt = answer(bench, a_request("trigger", expected_version=expected_version), run=5 * SECOND)
    assert receipt["status"] == status
    assert len(bench.started) == (1 if status == "accepted" else 0)


def test_given_a_run_now_that_is_older_than_the_schedule_then_it_is_superseded(bench: Bench) -> None:
    brought_to(bench, "active")
    older = Position(bench.now - 1, REQUESTS_ID, 1, 9).text()
    row = InboxRow(namespace="flights", name="nightly", kind="Q", origin=older, body=json.dumps(the_request("trigger")))
    shard = schedule_shard("flights", "nightly", 4)
    bench.store.write([Put(row.key(shard), {**to_item(row, row.key(shard)), "rev": 1})])
    bench.give(Poked(shard))
    bench.run(5 * SECOND)
    assert bench.status_of("it") == "superseded"
    assert bench.started == []


def test_given_a_job_cancel_of_a_run_that_is_over_then_it_is_too_late(bench: Bench) -> None:
    brought_to(bench, "active")
    run = answer(bench, a_request("trigger"), run=5 * SECOND)["id"]
    assert answer(bench, {"id": "it", "type": "job.cancel", "job_id": run})["status"] == "too_late"
    other = {"id": "it2", "type": "run.cancel", "run_id": run, "namespace": "elsewhere"}
    assert answer(bench, other)["status"] == "not_found"


# -- suspended ----------------------------------------------------------------------------------------------------------------


def test_given_an_active_schedule_then_an_update_that_begins_suspended_is_refused_with_what_to_do(bench: Bench) -> None:
    brought_to(bench, "active")
    receipt = answer(bench, an_apply(a_spec(trigger=every("2h"), suspended=True), "it"))
    assert receipt["status"] == "rejected"
    (error,) = receipt["errors"]
    assert (error["field"], error["hint"]) == ("suspended", "leave it out, and suspend the schedule")
    assert bench.status_of("it") == "rejected"


def test_given_a_schedule_that_began_suspended_and_was_resumed_then_its_document_need_not_change(bench: Bench) -> None:
    answer(bench, an_apply(a_spec(trigger=every("1h"), suspended=True), "1"))
    answer(bench, a_request("resume"))
    assert answer(bench, an_apply(a_spec(trigger=every("2h"), suspended=True), "2"))["status"] == "accepted"
    state = bench.state_of()
    assert state is not None
    assert state.status == "active"


# -- the index ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["apply", "delete", "suspend"])
@pytest.mark.parametrize("effects", range(1, 14))
def test_given_a_crash_anywhere_in_a_change_then_no_index_row_or_vector_of_before_is_left(
    kind: str, effects: int
) -> None:
    """CD-010, CD-014: killed at every step."""
    bench = Bench()
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b"), on_run_of("up")))))
    change = an_apply(a_spec(trigger=on_data("c")), "it") if kind == "apply" else a_request(kind, request_id="it")
    bench.crash_after = bench.effects_outside + effects
    bench.request(change)
    bench.run(MINUTE)
    assert bench.status_of("it") == "accepted"
    assert [row["event_key"] for row in bench.rows("") if "event_key" in row] == (
        ["data/flights/c"] if kind == "apply" else []
    )
    assert len(bench.rows("VEC")) == (1 if kind == "apply" else 0)


# -- many missed instants -------------------------------------------------------------------------------------------------------


def test_given_thousands_of_missed_instants_before_a_request_then_others_fire_meanwhile() -> None:
    bench = Bench(shards=1)
    bench.run(SECOND)
    never = {"type": "time_window", "opens": "02:00", "closes": "02:01"}
    many = {"max_runs": 10_000}
    for name in ("much", "other"):
        bench.request(an_apply(a_spec(name, every("1s"), overlap="allow", constraints=[never], catchup=many)))
    bench.run(SECOND)
    bench.store_answers_after = 50
    bench.away(20 * MINUTE)
    bench.run(2 * SECOND)
    bench.request(a_request("suspend", "much"))
    bench.run(SECOND)

    def made() -> int:
        return len([row for row in bench.rows("J#") if row["name"] == "other"])

    before = made()
    bench.run(2 * SECOND)
    assert bench.status_of("suspend-much") is None
    assert made() > before + 50
    bench.store_answers_after = 0
    bench.run(10 * SECOND)
    assert bench.status_of("suspend-much") == "accepted"
    assert len([entry for entry in bench.ledger() if entry[1] == "much"]) >= 1_200


def test_given_a_namespaces_quota_then_the_owner_refuses_what_is_beyond_it_and_keeps_what_there_is() -> None:
    spec = a_spec(trigger=every("1h"))
    bench = Bench()
    bench.run(SECOND)
    assert answer(bench, an_apply(spec, "before"))["status"] == "accepted"
    strict = Bench(beside=bench, owner="strict", quotas={str(spec["namespace"]): Quota(minimum_period_ms=2 * HOUR)})
    strict.run(SECOND)
    assert answer(strict, an_apply(spec, "the-same"))["status"] == "unchanged"
    refused = answer(strict, an_apply(a_spec(trigger=every("90m")), "shorter"))
    assert (refused["status"], refused["errors"][0]["field"]) == ("rejected", "trigger.period")
