"""The checks of what launchers refuse, keep or lose, and of programs that do not end, object when one fact is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from tests.simulation.checks import violations
from tests.simulation.checks.case import Case
from tests.simulation.checks.retries import check_retries
from tests.simulation.checks.runs import check_runs
from tests.simulation.checks.submissions import (
    START_TIMEOUT,
    SUBMIT_TIMEOUT,
    check_submissions,
    is_explained,
    is_given_up,
)
from tests.simulation.runner.runner import run
from tests.simulation.runner.world_drawing import swarm_of, trapped
from tests.simulation.users.misbehaving_programs import TRAP
from tests.simulation.world.cluster import RUNS_DLQ
from tests.simulation.world.observations import Body, ReceiptSeen, Said
from tests.simulation.world.world import World, build
from tests.unit.support.simulation.checks.lying import found, with_rows
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import PASSING_ERRORS

SEED = 89
Undo: TypeAlias = Callable[[], None]
LONG_MS = 600_000


@pytest.fixture(scope="module")
def world() -> World:
    """A world at rest in which each of these things has happened."""
    swarm = trapped(swarm_of(SEED, faults=False), SEED, TRAP)
    launcher = replace(
        swarm.launcher, rejected=0.1, in_line=0.1, away=0.3, hung=0.15, given_up=0.4, endless=0.2, overseen=0.3
    )
    return run(build(SEED, swarm=replace(swarm, launcher=launcher)))


@pytest.fixture
def undone() -> Iterator[list[Undo]]:
    """What a test puts here is done when it is over: the world is that of all tests."""
    undo: list[Undo] = []
    yield undo
    for each in undo:
        each()


def ended_by(case: Case, *, is_rejected: bool) -> LedgerRow:
    """Returns an entry that names the platform's verdict on a run that it had not taken before, or had, and that nobody parks."""
    for row in case.rows:
        verdict = case.record.verdicts.get(row.job_id, {}).get(row.detail or "")
        if (
            verdict is None
            or verdict.is_rejected != is_rejected
            or verdict.error_class in PASSING_ERRORS
            or _parks(case, row)
        ):
            continue
        if ((row.job_id, verdict.attempt) in case.record.taken_on) != is_rejected:
            return row
    raise AssertionError("no such entry")


def rejected(case: Case) -> LedgerRow:
    return ended_by(case, is_rejected=True)


def given_up(case: Case) -> LedgerRow:
    return next(
        row
        for row in case.rows
        if is_explained(case, row) and is_given_up(case, row) and _verdict(case, row, is_rejected=False)
    )


def timed_out(case: Case, detail: str) -> LedgerRow:
    return next(row for row in case.rows if row.detail == detail)


def _verdict(case: Case, row: LedgerRow, *, is_rejected: bool) -> bool:
    verdict = case.record.verdicts.get(row.job_id, {}).get(row.detail or "")
    return verdict is not None and verdict.is_rejected == is_rejected


def told_otherwise(case: Case, wanted: LedgerRow, **changes: Any) -> Case:
    return with_rows(case, lambda row: replace(row, **changes) if row == wanted else row)


def with_body(case: Case, row: LedgerRow, attempt: int) -> Case:
    body = replace(case.record.bodies[0], run_id=row.job_id, attempt=attempt)
    lie = Case(case.world)
    lie.bodies_by_run = {**case.bodies_by_run, row.job_id: [body]}
    return lie


def test_given_the_world_then_nothing_is_wrong(world: World) -> None:
    assert violations(world) == []


def test_given_a_run_that_is_rejected_and_whose_program_starts_then_it_should_not(case: Case) -> None:
    row = rejected(case)
    verdict = case.record.verdicts[row.job_id][row.detail or ""]
    assert found(check_submissions(with_body(case, row, verdict.attempt)), "I1", row.job_id, "has started")


def test_given_a_run_that_is_rejected_and_whose_entry_says_otherwise_then_it_is_not_true(case: Case) -> None:
    row = rejected(case)
    lie = told_otherwise(case, row, detail="the program ended with exit code 1 before the start gate")
    assert found(check_submissions(lie), "I1", row.job_id)
    assert found(check_runs(lie), "I1", row.job_id, "nothing ended its artefact")


@pytest.mark.parametrize("stands_still", [False, True])
def test_given_a_run_that_is_rejected_then_its_entry_says_so_unless_whoever_heard_it_fell(
    case: Case, undone: list[Undo], stands_still: bool
) -> None:
    """Seed 36008165: three owners heard it one after the other; two fell before they had written it down, and the third heard it as the run's
    time was over.
    """
    row, heard = next(
        (row, said)
        for row in case.rows
        if _verdict(case, row, is_rejected=True)
        for said in case.record.said[row.job_id]
        if said.what == "rejected" and case.node_serving(int(row.job_id[:4]), said.at, said.at + 15_000) == said.node
    )
    lie = told_otherwise(case, row, detail=SUBMIT_TIMEOUT, at=heard.at + 15_000)
    if stands_still:
        case.record.pauses.append((heard.node, heard.at, heard.at + 10_000))
        undone.append(lambda: case.record.pauses.__delitem__(-1))
    assert found(check_submissions(lie), "I1", row.job_id, "which will never be taken, is failed") is not stands_still


def test_given_a_run_that_is_rejected_and_has_no_entry_then_it_was_lost(case: Case) -> None:
    row = rejected(case)
    lie = with_rows(case, lambda each: None if each == row else each)
    assert found(check_submissions(lie), "I1", row.job_id, "has no entry")


@pytest.mark.parametrize("is_rejected", [True, False])
def test_given_a_run_that_the_platform_has_ended_for_good_and_a_further_attempt_then_nobody_should_have_made_it(
    case: Case, undone: list[Undo], is_rejected: bool
) -> None:
    row = ended_by(case, is_rejected=is_rejected)
    handed_over = case.record.handed_over[row.job_id]
    handed_over.append((row.at + 1, handed_over[-1][1] + 1))
    undone.append(lambda: handed_over.remove(handed_over[-1]))
    assert found(check_submissions(case), "I1", row.job_id, "followed by another one")


def test_given_an_attempt_whose_start_came_late_then_its_end_was_behind_the_gate_and_another_one_may_follow(
    case: Case, undone: list[Undo]
) -> None:
    """Seed 35000171: its program had died without an answer, the start was applied then, and the next copy ended for good."""
    row = ended_by(case, is_rejected=False)
    handed_over = case.record.handed_over[row.job_id]
    attempt = handed_over[-1][1]
    assert (row.job_id, attempt) not in case.record.past_gate
    handed_over.append((row.at + 1, attempt + 1))
    undone.append(lambda: handed_over.remove(handed_over[-1]))
    case.record.past_gate.add((row.job_id, attempt))
    undone.append(lambda: case.record.past_gate.discard((row.job_id, attempt)))
    assert not found(check_submissions(case), "I1", row.job_id, "followed by another one")


@pytest.mark.parametrize("is_rejected", [False])
@pytest.mark.parametrize(("after", "may_be"), [(5_000, True), (-5_000, False)])
def test_given_a_schedule_that_takes_a_run_back_whose_artefact_is_on_its_way_then_another_attempt_may_follow(
    case: Case, undone: list[Undo], is_rejected: bool, after: int, may_be: bool
) -> None:
    """Seed 35003167: the launcher had said nothing, a suspend parked the run, its program began and ended behind that."""
    row = ended_by(case, is_rejected=is_rejected)
    verdict = case.record.verdicts[row.job_id][row.detail or ""]
    handed_over = case.record.handed_over[row.job_id]
    begun = min(at for at, attempt in handed_over if attempt == verdict.attempt) - 10_000
    before = list(handed_over)
    undone.append(lambda: handed_over.__setitem__(slice(None), before))
    handed_over[:] = [(begun, verdict.attempt), *before, (row.at + 1, before[-1][1] + 1)]
    steps = case.steps(case.life(row.name))
    asked = replace(steps[-1].asked, receipt=ReceiptSeen(begun + after, {"status": "accepted"}))
    steps.append(replace(steps[-1], asked=asked, parks=True))
    assert found(check_submissions(case), "I1", row.job_id, "followed by another one") != may_be


def test_given_a_run_that_has_begun_then_the_store_had_taken_its_start(case: Case) -> None:
    assert case.record.bodies
    assert {(body.run_id, body.attempt) for body in case.record.bodies} <= case.record.past_gate


def _parks(case: Case, row: LedgerRow) -> bool:
    return any(step.parks for life in case.lives if life.name == row.name for step in case.steps(life))


@pytest.mark.parametrize("detail", [SUBMIT_TIMEOUT, START_TIMEOUT])
def test_given_a_run_that_is_given_up_before_its_time_then_it_was_not_waited_for(case: Case, detail: str) -> None:
    row = timed_out(case, detail)
    lie = told_otherwise(case, row, at=row.at - 30_000)
    assert found(check_submissions(lie), "I1", row.job_id)


def test_given_a_run_that_is_given_up_while_its_node_keeps_it_in_line_then_nobody_was_asked(
    case: Case, undone: list[Undo]
) -> None:
    row, node = next(
        (row, node)
        for row in case.rows
        if row.detail == SUBMIT_TIMEOUT
        and (node := case.node_serving(int(row.job_id[:4]), row.at - 15_000, row.at)) is not None
    )
    said = case.record.said[row.job_id]
    before = list(said)
    said[:] = [each for each in said if each.at < row.at - 15_000]
    attempt = before[-1].attempt
    said.append(Said(row.at - 15_000, node, attempt, "in line"))
    undone.append(lambda: said.__setitem__(slice(None), before))
    assert found(check_submissions(case), "I1", row.job_id, "kept it from the launcher")


def test_given_a_run_that_is_given_up_and_whose_program_nobody_asks_to_end_then_it_goes_on(
    case: Case, undone: list[Undo]
) -> None:
    """One of them whose owner was there for long enough behind that."""
    rows = [row for row in case.rows if row.detail == START_TIMEOUT]
    before = dict(case.record.asked_to_end)
    undone.append(lambda: case.record.asked_to_end.update(before))
    for row in rows:
        case.record.asked_to_end.pop(row.job_id)
    assert any(found(check_submissions(case), "I1", row.job_id, "nobody has asked") for row in rows)


@pytest.mark.parametrize(
    "of",
    [given_up],
    ids=["tries"],
)
def test_given_a_run_that_is_given_up_without_a_dead_letter_then_nobody_was_told(
    case: Case, undone: list[Undo], of: Callable[[Case], LedgerRow]
) -> None:
    row = of(case)
    topic = case.world.cluster.broker.topics[RUNS_DLQ]
    logs = topic.logs
    topic.logs = [[record for record in log if record.key != row.job_id.encode()] for log in logs]
    undone.append(lambda: setattr(topic, "logs", logs))
    assert found(check_retries(case), "dead letters", row.job_id, "none")


def test_given_a_program_that_is_told_to_end_and_nobody_who_wants_that_then_it_should_not_be(
    case: Case, undone: list[Undo]
) -> None:
    body = _undisturbed(case)
    body.was_ended = True
    undone.append(lambda: setattr(body, "was_ended", False))
    assert found(check_runs(case), "I1", body.run_id, "nobody had asked for it")


def test_given_a_run_that_is_killed_and_nobody_who_wants_that_then_it_should_not_be(case: Case) -> None:
    body = _undisturbed(case)
    (row,) = case.rows_by_id[body.run_id]
    assert found(check_runs(told_otherwise(case, row, state="killed")), "I1", row.job_id, "nobody had asked for it")


@pytest.mark.parametrize("missing", [None, "its artefact"])
def test_given_a_further_attempt_whose_program_never_heard_of_its_start_then_the_entry_is_of_its_end(
    case: Case, monkeypatch: pytest.MonkeyPatch, missing: str | None
) -> None:
    """Seed 38007438: attempt 1 had run out of time; attempt 2 had its start carried out ten times, heard of none, and kept silent."""
    body = _undisturbed(case)
    monkeypatch.setattr(body, "outcome", "timed_out")
    (row,) = case.rows_by_id[body.run_id]
    record, further = case.record, body.attempt + 1
    if missing != "its artefact":
        monkeypatch.setitem(record.handed_over, row.job_id, [*record.handed_over[row.job_id], (row.at, further)])
    if missing != "its start":
        monkeypatch.setattr(record, "past_gate", record.past_gate | {(row.job_id, further)})
    if missing != "its end":
        monkeypatch.setattr(record, "never_ran", record.never_ran | {row.job_id})
    lie = told_otherwise(case, row, state="failed", detail="no_report")
    contradicts = found(check_runs(lie), "I1", row.job_id, "reported timed_out, its entry says failed")
    assert contradicts is (missing is not None)
    assert found(check_runs(case), "I1", row.job_id, "reported timed_out, its entry says succeeded")


def test_given_a_program_without_end_that_is_said_to_have_succeeded_then_it_has_not(case: Case) -> None:
    body = next(
        body for body in case.record.bodies if body.endless and case.rows_by_id[body.run_id][0].state == "killed"
    )
    (row,) = case.rows_by_id[body.run_id]
    lie = told_otherwise(case, row, state="succeeded")
    assert found(check_runs(lie), "I1", row.job_id, "did not end by itself")


def _undisturbed(case: Case) -> Body:
    return next(
        body
        for body in case.record.bodies
        if body.outcome == "succeeded"
        and not {"cancel_running"} & {_policy(case, body.schedule)}
        and not _is_cancelled(case, body)
    )


def _policy(case: Case, name: str) -> str:
    return next(life.definition.policy for life in case.lives if life.name == name)


def _is_cancelled(case: Case, body: Body) -> bool:
    requests = [asked.document for asked in case.world.requests.asked.values()]
    names = {str(each.get("run_id")) for each in requests}
    deleted = {each.get("name") for each in requests if each.get("cancel_running")}
    return body.run_id in names or body.schedule in deleted
