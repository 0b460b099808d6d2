"""A resume that means one suspend and no other: what letting go on all of a span is made of (rows CD-019, CD-170)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_recurring, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import ScheduleState


@pytest.fixture
def bench() -> ActorHarness:
    bench = ActorHarness()
    bench.run(SECOND)
    return bench


def answer(bench: ActorHarness, document: Doc, run: int = SECOND) -> Doc:
    bench.request(document)
    bench.run(run)
    return bench.receipts()[str(document["id"])]


def state_of(bench: ActorHarness, name: str) -> ScheduleState:
    states = [from_item(ScheduleState, row) for row in bench.rows("S#")]
    return next(state for state in states if state.name == name)


def resume(bench: ActorHarness, name: str, suspended_at: int, request_id: str = "r") -> Doc:
    return answer(bench, a_request("resume", name, request_id, suspended_at=format_instant(suspended_at)))


def test_given_two_that_were_suspended_one_after_the_other_then_only_the_one_of_the_span_goes_on(
    bench: ActorHarness,
) -> None:
    """CD-019, CD-170: A is suspended at t1, B at t2; only B goes on, and can be suspended again, which proves it."""
    for name in ("a", "b"):
        answer(bench, an_apply(a_spec(name, every("1m")), f"apply-{name}"))
        answer(bench, a_request("suspend", name, actor="ana", reason="repair"))
    a, b = state_of(bench, "a"), state_of(bench, "b")
    assert a.suspended_at < b.suspended_at
    assert (b.stopped_by, b.stopped_for) == ("ana", "repair")
    # Whoever goes by what he listed of B reaches neither A nor a later suspend of B.
    assert resume(bench, "a", b.suspended_at, "r-a")["status"] == "conflict"
    assert resume(bench, "b", b.suspended_at, "r-b")["status"] == "accepted"
    assert [state_of(bench, name).status for name in ("a", "b")] == ["suspended", "active"]
    assert state_of(bench, "b").stopped_by is None
    assert answer(bench, a_request("suspend", "b", "s-2"))["status"] == "accepted"
    stale = resume(bench, "b", b.suspended_at, "r-2")
    assert (stale["status"], stale["errors"][0]["field"]) == ("conflict", "suspended_at")
    bench.run(5 * MINUTE)
    assert state_of(bench, "b").status == "suspended"


@pytest.mark.parametrize("updated", [False, True])
def test_given_one_that_was_never_active_then_no_instant_of_a_suspend_lets_it_go_on(
    bench: ActorHarness, updated: bool
) -> None:
    """CD-019: CDAP enables it as well; here nobody suspended it, so nobody's repair ends with it."""
    answer(bench, an_apply(a_spec("new", every("1m"), suspended=True)))
    if updated:
        answer(bench, an_apply(a_spec("new", every("2m"), suspended=True), "u"))
    before = state_of(bench, "new")
    assert before.stopped_by is None
    assert resume(bench, "new", before.suspended_at)["status"] == "conflict"
    assert state_of(bench, "new").status == "suspended"
    assert answer(bench, a_request("resume", "new"))["status"] == "accepted"
    answer(bench, a_request("suspend", "new"))
    assert state_of(bench, "new").stopped_by == ""
    assert resume(bench, "new", state_of(bench, "new").suspended_at, "r-2")["status"] == "accepted"


@pytest.mark.parametrize("spec", [a_spec("it", every("1m")), a_recurring("it", every("1m"))])
def test_given_an_update_meanwhile_then_the_suspend_is_still_known_and_a_repeat_changes_nothing(
    bench: ActorHarness, spec: Doc
) -> None:
    answer(bench, an_apply(spec))
    answer(bench, a_request("suspend", "it", actor="ana", reason="x" * 300))
    suspended = state_of(bench, "it")
    changed: dict[str, Any] = {**spec, "labels": {"team": "night"}}
    answer(bench, {**an_apply(changed, "u"), "actor": "bob", "reason": "labels"})
    after = state_of(bench, "it")
    assert (after.actor, after.stopped_by, after.stopped_for) == ("bob", "ana", "x" * 100)
    assert resume(bench, "it", suspended.suspended_at)["status"] == "accepted"
    assert resume(bench, "it", suspended.suspended_at, "again")["status"] == "unchanged"


def test_given_delete_and_the_same_name_again_then_the_former_suspend_means_nothing(bench: ActorHarness) -> None:
    answer(bench, an_apply(a_spec("it", every("1m"))))
    answer(bench, a_request("suspend", "it"))
    suspended = state_of(bench, "it")
    answer(bench, a_request("delete", "it"))
    assert resume(bench, "it", suspended.suspended_at)["status"] == "not_found"
    answer(bench, an_apply(a_spec("it", every("1m"), suspended=True), "again"))
    assert resume(bench, "it", suspended.suspended_at, "r-2")["status"] == "conflict"
