"""A run with its permits on a desk, in each of its states."""

from __future__ import annotations

from dataclasses import replace

from tests.support.builders import NOW, a_job, a_run
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.rows import keys
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.runs.run_lifecycle import CheckRun, RequestCancel
from tidegate_core.writes.limit_permits import Permit, take_permit

ID = a_run().id
SHARED = keys.shared_limit("flights", "program", "p")


def a_desk(run: Run) -> DecisionHarness:
    """The run with its job, an own permit and a shared one."""
    desk = DecisionHarness(
        a_job(1, state="pending_launch"), OwnLimit(namespace="flights", name="nightly", holders=(ID, "other"))
    )
    own = keys.own_limit(0, "flights", "nightly")
    limits = tuple(f"{key.pk}|{key.sk}" for key in (own, SHARED))
    desk.lay(replace(run, limits=limits))
    desk.store.transact(Transaction("before", take_permit(Permit(SHARED, ID), 3), "p", None))
    return desk


def run_of(desk: DecisionHarness) -> Run | None:
    return desk.record(Run, keys.run(0, ID))


def outcome(desk: DecisionHarness) -> str:
    """The state of the open run, or how it ended: `<disposition>/<state>`."""
    run = run_of(desk)
    if run is not None:
        return run.state
    ledger = desk.records(LedgerRow, "L#")
    return f"{ledger[0].disposition}/{ledger[0].state}" if ledger else "gone without a trace"


def look(desk: DecisionHarness) -> None:
    desk.decide(CheckRun(0, ID, lambda run: None), NOW + 10)


def cancelled(desk: DecisionHarness) -> None:
    desk.decide(RequestCancel(0, ID), NOW + 10)


STATES = {
    "submitting": a_run(state="submitting"),
    "submitted": a_run(state="submitted", external_id="ext"),
    "running": a_run(state="running", external_id="ext"),
    "cancel asked": a_run(state="running", external_id="ext", cancel_requested=True),
    "lost": a_run(state="lost", external_id="ext"),
    "reported": a_run(state="running", external_id="ext", ended_at=NOW + 5, outcome="succeeded", outputs='{"rows":3}'),
    "reported while lost": a_run(state="lost", external_id="ext", ended_at=NOW + 5, outcome="failed"),
}
