"""Each check objects when one fact of a world that is right is changed: a judge that accepts everything proves nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from tests.simulation.checks import violations
from tests.simulation.checks.case import Case
from tests.simulation.checks.constraints import check_constraints
from tests.simulation.checks.dispositions import check_dispositions
from tests.simulation.checks.events import check_events
from tests.simulation.checks.evidence import check_evidence
from tests.simulation.checks.fires import check_fires
from tests.simulation.checks.quiescence import check_rest
from tests.simulation.checks.receipts import check_answers
from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.checks.retries import check_retries
from tests.simulation.checks.runs import check_runs
from tests.simulation.users.requests import Asked
from tests.simulation.world.cluster import RUNS
from tests.simulation.world.observations import UPSTREAM, ReceiptSeen
from tests.simulation.world.world import World
from tests.unit.support.simulation.checks.lying import MINUTE_MS, found, one_of, with_rows
from tests.unit.support.simulation.checks.steps import a_step
from tidegate_core.rows.ledger import LedgerRow


def changed_one(case: Case, wanted: LedgerRow, **changes: Any) -> Case:
    return with_rows(case, lambda row: replace(row, **changes) if row == wanted else row)


def test_given_a_calm_world_then_nothing_is_wrong(world: World) -> None:
    assert violations(world) == []


@pytest.mark.parametrize("name", ["tick"])
@pytest.mark.parametrize(
    ("disposition", "reason"),
    [
        ("skipped", "because"),
        ("skipped", "concurrency"),
        ("coalesced", "into"),
        ("expired", "constraint_timeout"),
        ("expired", "trigger_timeout"),
        ("cancelled", "by_request"),
        ("cancelled", "schedule_deleted"),
        ("cancelled", "suspended"),
        ("cancelled", "superseded"),
    ],
)
def test_given_a_reason_that_is_not_true_then_it_is_no_disposition(
    case: Case, name: str, disposition: str, reason: str
) -> None:
    row = next(each for each in case.rows_of[name] if each.disposition == "launched")
    # Long after everything: nothing that a user asked for explains it.
    lie = changed_one(case, row, disposition=disposition, reason=reason, at=row.at + 10 * MINUTE_MS)
    assert found(check_dispositions(lie), "I1", row.job_id)


@pytest.mark.parametrize(("through_after", "is_true"), [(10_000, True), (1_000, False)])
def test_given_a_delete_of_what_ended_with_its_upstream_then_what_was_left_of_that_ended_by_it(
    case: Case, through_after: int, is_true: bool
) -> None:
    """Seed 36009541: who ended it fell before its pages were through; the user's delete, which found nothing, ended the rest."""
    row = next(each for each in case.rows_of["tick"] if each.disposition == "launched")
    at = row.at + 10 * MINUTE_MS
    upstream, asked = a_step("delete", at - 5_000), a_step("delete", at - 500)
    seen = ReceiptSeen(at - 5_000 + through_after, {"status": "accepted"})
    ended = replace(
        upstream,
        asked=replace(upstream.asked, document={**upstream.asked.document, "id": f"{UPSTREAM}x"}, receipt=seen),
        version=2,
    )
    lie = changed_one(case, row, disposition="cancelled", reason="schedule_deleted", at=at)
    with mock.patch.object(Case, "steps", return_value=[ended, replace(asked, moves=False, version=2)]):
        assert found(check_dispositions(lie), "I1", row.job_id, "no delete of then") is not is_true


def test_given_an_instant_without_entry_then_it_was_lost(case: Case) -> None:
    row = one_of(case, "tick", "time")
    assert found(check_fires(with_rows(case, lambda each: None if each == row else each)), "I1", "tick")


def test_given_satisfied_evidence_without_entry_then_an_occurrence_vanished(case: Case) -> None:
    row = one_of(case, "count", "events")
    problems = check_evidence(with_rows(case, lambda each: None if each == row else each))
    assert found(problems, "I1", row.job_id, "no entry")


def test_given_an_entry_of_events_without_evidence_then_it_came_from_nowhere(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = one_of(case, "count", "events")
    monkeypatch.setattr(case.record.evidence[row.job_id], "chunks", [])
    assert found(check_evidence(Case(case.world)), "I1", row.job_id, "without any evidence")


@pytest.mark.parametrize("later", [0, 1])
def test_given_a_pair_that_expired_although_both_came_in_time_then_only_brokers_that_did_not_tell_of_one_excuse_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    """A time-out waits for the ends of what the brokers tell of; after a growth that is too little for a while."""
    life = next(life for life in case.lives if life.name == "pair")
    row = one_of(case, "pair", "events")
    halves = [each for each in case.world.producers.announced.values() if each.partition == row.correlation]
    first, deadline = min(each.appended[0] for each in halves), row.at + MINUTE_MS
    lie = changed_one(case, row, disposition="expired", reason="trigger_timeout", nominal=first, at=deadline)
    trigger = {**life.definition.trigger, "timeout": f"{deadline - first}ms"}
    lie.lives = [replace(life, definition=replace(life.definition, trigger=trigger))]
    assert found(check_dispositions(lie), "I1", row.job_id, "came in time")
    monkeypatch.setattr(halves[0], "untold_until", deadline + later)
    assert found(check_dispositions(lie), "I1", row.job_id, "came in time") is (later == 0)


def test_given_a_program_that_nobody_started_then_the_ledger_lies(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    row = one_of(case, "tick", "time")
    bodies = [body for body in case.record.bodies if body.run_id != row.job_id]
    monkeypatch.setattr(case.record, "bodies", bodies)
    assert found(check_runs(Case(case.world)), "I1", row.job_id)


@pytest.mark.parametrize("lie", ["told to nobody"])
def test_given_the_end_of_a_run_then_it_is_told_and_as_the_ledger_has_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    row = one_of(case, "tick", "time")
    topic = case.world.cluster.broker.topics[RUNS]
    ends = [
        each
        for log in topic.logs
        for each in log
        if each.key == row.job_id.encode() and b"succeeded" in (each.value or b"")
    ]
    others = [[each for each in log if each not in ends] for log in topic.logs]
    more = {
        "told to nobody": [],
        "told as something else": [
            each._replace(value=(each.value or b"").replace(b"succeeded", b"failed")) for each in ends
        ],
        "told twice": [*ends, *ends],
    }[lie]
    monkeypatch.setattr(topic, "logs", [[*others[0], *more], *others[1:]])
    assert found(check_runs(case), "I1", row.job_id, "was told as") is (lie != "told twice")


def test_given_a_program_that_started_twice_then_the_gate_failed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case.record, "bodies", [*case.record.bodies, case.record.bodies[0]])
    assert found(check_runs(Case(case.world)), "I2", "2 times")


@pytest.mark.parametrize("reported", [True], ids=["it said so"])
@pytest.mark.parametrize(("tries", "is_wrong"), [(1, True), (2, False)])
def test_given_a_run_that_failed_as_often_as_it_may_then_its_dead_letter_is_missing(
    case: Case, monkeypatch: pytest.MonkeyPatch, tries: int, is_wrong: bool, reported: bool
) -> None:
    life = next(life for life in case.lives if life.name == "tick")
    row = one_of(case, "tick", "time")
    (body,) = case.bodies_by_run[row.job_id]
    lie = changed_one(case, row, state="failed")
    definitions = [replace(each.definition, tries=tries if each == life else 0) for each in case.lives]
    lie.lives = [replace(each, definition=changed) for each, changed in zip(case.lives, definitions, strict=True)]
    attempts = [body, replace(body, attempt=2, reported=reported)]
    monkeypatch.setattr(case.record, "bodies", attempts if tries else [body])
    assert found(check_retries(lie), "dead letters", row.job_id, "has none") is is_wrong


@pytest.mark.parametrize(("state", "is_asked", "is_wrong"), [("timed_out", True, False), ("timed_out", False, True)])
def test_given_a_cancel_of_a_run_that_has_timed_out_as_often_as_it_may_then_nobody_is_told(
    case: Case, monkeypatch: pytest.MonkeyPatch, state: str, is_asked: bool, is_wrong: bool
) -> None:
    """Seed 36011685: its second attempt had timed out when the cancel that came before that was answered."""
    row = one_of(case, "tick", "time")
    (body,) = case.bodies_by_run[row.job_id]
    lie = changed_one(case, row, state=state)
    lie.lives = [replace(each, definition=replace(each.definition, tries=each.name == "tick")) for each in case.lives]
    monkeypatch.setattr(case.record, "bodies", [body, replace(body, attempt=2)])
    cancel = {"id": "c", "type": "run.cancel", "run_id": row.job_id if is_asked else "another"}
    monkeypatch.setitem(case.world.requests.asked, "c", Asked(cancel, row.at))
    assert found(check_retries(lie), "dead letters", row.job_id, "has none") is is_wrong


def test_given_an_event_in_two_pieces_of_evidence_then_it_counted_twice(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = one_of(case, "count", "events")
    seen = case.record.evidence[row.job_id]
    monkeypatch.setattr(seen, "chunks", [*seen.chunks, *seen.chunks])
    assert found(check_events(Case(case.world)), "I3", "2 times")


def test_given_a_late_write_that_changed_something_then_a_former_owner_was_heard(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case.world, "came_late", ("bodies: +1",))
    assert found(check_rest(case), "I5", "bodies: +1")


@pytest.mark.parametrize(
    "constraint",
    [{"type": "rate", "max": 2, "per": "4s"}, {"type": "since_last_run", "at_least": "4s", "of": "success"}],
)
@pytest.mark.parametrize("is_forced", [True, False])
def test_given_admissions_of_one_instant_then_those_that_were_forced_came_after_the_one_that_a_constraint_let_go(
    case: Case, constraint: dict[str, Any], is_forced: bool
) -> None:
    """Seed 800274: the ledger does not tell their order."""
    life = next(life for life in case.lives if life.name == "tick")
    row = one_of(case, "tick", "time")
    forced = "{}" if is_forced else None
    definition = replace(life.definition, constraints=(constraint,), pending_timeout="1ms", late="force")
    changed = with_rows(case, lambda each: None)
    changed.rows = [replace(row, job_id=f"forced-{number}", forced=forced) for number in range(2)] + [row]
    changed.lives = [replace(life, definition=definition)]
    assert found(check_constraints(changed), "constraints", row.job_id) is not is_forced


@pytest.mark.parametrize(
    ("merged_into", "waited", "problem"),
    [
        pytest.param("standing", 16_000 - SKEW_MS, None, id="takes over the time-out"),
        pytest.param("another", 16_000, "which its schedule does not want", id="waited by itself"),
        pytest.param(
            "standing", 16_000 - SKEW_MS - 1, "before its time", id="takes over the time-out, which is not there yet"
        ),
    ],
)
def test_given_a_job_that_stands_for_one_of_the_version_before_then_its_time_out_is_that_one_s_as_well(
    case: Case, monkeypatch: pytest.MonkeyPatch, merged_into: str, waited: int, problem: str | None
) -> None:
    """Seed 38011371: version 1 waits for 16 s, version 2 for a day, and what waits too long is forced; a resume merged their jobs."""
    life = next(life for life in case.lives if life.name == "tick")
    version_2 = replace(life.definition, pending_timeout=None, late="force")
    version_1 = replace(version_2, pending_timeout="16s")
    row = replace(one_of(case, "tick", "time"), job_id="standing", version=2, forced="{}")
    begin = (row.admitted_at or 0) - waited
    of_before = replace(row, job_id="before", nominal=begin, version=1, forced=None, admitted_at=None)
    of_before = replace(of_before, disposition="coalesced", reason="backlog", detail=f"into {merged_into}")
    changed = Case(case.world)
    changed.rows_of, changed.lives = {"tick": [of_before, row]}, [life]
    monkeypatch.setattr(changed, "shape", lambda _, version: {1: version_1, 2: version_2}[version])
    objections = [each for each in check_constraints(changed) if "forced" in each]
    assert [each.removeprefix("constraints: standing of tick was forced").strip(", ") for each in objections] == (
        [] if problem is None else [problem]
    )


@pytest.mark.parametrize(
    ("reason", "of", "since_admission", "since_end", "is_wrong"),
    [pytest.param("ran_recently", "start", 3_999, None, False, id="one was admitted just before")],
)
@pytest.mark.parametrize("is_of_this_life", [True, False])
def test_given_a_job_that_was_skipped_for_an_earlier_run_then_there_was_one(
    case: Case,
    monkeypatch: pytest.MonkeyPatch,
    reason: str,
    of: str,
    since_admission: int,
    since_end: int | None,
    is_wrong: bool,
    is_of_this_life: bool,
) -> None:
    life = next(life for life in case.lives if life.name == "tick")
    row = one_of(case, "tick", "time")
    assert row.state == "succeeded"
    skipped = replace(row, job_id="skipped", disposition="skipped", reason=reason, admitted_at=None)
    incarnation = row.incarnation if is_of_this_life else "another"
    other = replace(row, job_id="other", admitted_at=row.at - since_admission, incarnation=incarnation)
    if since_end is not None:
        other = replace(other, ended_at=row.at - since_end, at=row.at - since_end)
    constraint = {"type": "since_last_run", "at_least": "4s", "of": of, "on_unmet": "abort"}
    changed = with_rows(case, lambda each: None)
    changed.rows = [skipped, other]
    changed.lives = [replace(life, definition=replace(life.definition, constraints=(constraint,)))]
    # A suspend or an update after the skip may have taken a run back, whose first admission the ledger does not have.
    monkeypatch.setattr(changed, "steps", lambda _: [])
    assert found(check_constraints(changed), "constraints", "skipped", "no run was") is (
        is_wrong or not is_of_this_life
    )


@pytest.mark.parametrize(
    ("status", "errors", "word"),
    [
        pytest.param("rejected", [], "nobody said why", id="refused without a reason"),
        pytest.param("accepted", [{"problem": "is wrong"}], "with problems", id="carried out, with a reason"),
        pytest.param("rejected", [{"problem": "internal error"}], "an error of ours", id="a fault of ours"),
    ],
)
def test_given_an_answer_whose_reasons_do_not_fit_then_it_is_told(
    case: Case, status: str, errors: list[Any], word: str
) -> None:
    request_id, (seen, *_) = next(iter(sorted(case.record.receipts.items())))
    told = replace(seen, body={**seen.body, "status": status, "errors": errors})
    with mock.patch.dict(case.record.receipts, {request_id: [told]}):
        assert found(check_answers(case), "answers", request_id, word)
    assert not found(check_answers(case), "answers", request_id)
