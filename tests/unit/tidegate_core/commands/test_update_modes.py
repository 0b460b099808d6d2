"""Updates that restart, carry what is pending, or let the old finish; deletes that cancel what runs (SEMANTICS 11, 12)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Doc,
    a_recurring,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.recorded_effects import manifest_text
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.ownership.quarantine import TRY_AGAIN_MS
from tidegate_core.rows.effects import Commit, Invalid
from tidegate_core.rows.evidence import EvidenceChunk
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import ScheduleState

CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00"}
OPENS_IN = 46 * MINUTE + 40 * SECOND
PAIR = all_of(on_data("a"), on_data("b"), correlate="data_partition", timeout="2h", on_timeout="abort")


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def answer(bench: ActorHarness, document: Doc, run: int = 0) -> Doc:
    bench.request(document)
    bench.run(run)
    return bench.receipts()[str(document["id"])]


def update(bench: ActorHarness, spec: Doc, how: str, request_id: str = "it") -> Doc:
    return answer(bench, an_apply(spec, request_id, on_update=how))


def waiting(bench: ActorHarness) -> list[Job]:
    found = [from_item(Job, row) for row in bench.rows("J#")]
    return [job for job in found if job.state == "pending_constraint"]


def args_of(bench: ActorHarness) -> list[list[str]]:
    return [list(order.args) for order in bench.started]


# -- what waits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "started", "discarded"),
    [("restart", [], 3), ("carry", [["new"]] * 3, 0), ("finish_old", [["old"]] * 3, 0)],
)
def test_given_waiting_jobs_then_each_mode_completes_them_as_it_says(
    bench: ActorHarness, how: str, started: list[list[str]], discarded: int
) -> None:
    """Rows CD-006 and CD-033: a job launches with the snapshot that its update left it, or not at all."""
    spec: Doc = {"trigger": every("1m", end=format_instant(bench.now + 3 * MINUTE)), "constraints": [CLOSED]}
    bench.request(an_apply(a_spec(args=["old"], **spec)))
    bench.run(3 * MINUTE)
    update_spec = {**spec, "trigger": every("10h")} if how != "carry" else spec
    if how == "carry":
        bench.run(SECOND)
    receipt = update(bench, a_spec(args=["new"], **update_spec), how)
    assert (receipt["status"], receipt["errors"]) == ("accepted", [])
    assert len((receipt["discarded"] or {"jobs": []})["jobs"]) == discarded
    bench.run(OPENS_IN + MINUTE)
    assert args_of(bench) == started


def test_given_carry_then_new_constraints_hold_for_what_waits(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1h"), constraints=[CLOSED])))
    bench.request(a_request("trigger"))
    bench.run(MINUTE)
    update(bench, a_spec(trigger=every("1h")), "carry")
    bench.run(MINUTE)
    assert len(bench.started) == 1
    (row,) = bench.rows("L#")
    assert row["version"] == 2


def test_given_another_trigger_then_carry_is_refused_and_nothing_changes(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=2))))
    before = bench.state_of()
    receipt = update(bench, a_spec(trigger=on_data(count=3)), "carry")
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", "on_update")
    assert bench.state_of() == before


# -- what is counted ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "more"), [("restart", 3), ("carry", 1), ("finish_old", 3)])
def test_given_evidence_then_carry_counts_on_and_the_others_begin_anew(
    bench: ActorHarness, how: str, more: int
) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=3))))
    for day in ("a", "b"):
        bench.event(an_event(day))
    bench.run(SECOND)
    receipt = update(bench, a_spec(trigger=on_data(count=3), args=["new"]), how)
    assert (receipt["discarded"] or {"evidence": {}})["evidence"] == ({} if how == "carry" else {"": 2})
    for number in range(more):
        assert bench.started == []
        bench.event(an_event(f"later-{number}"))
        bench.run(SECOND)
    assert args_of(bench) == [["new"]]


def test_given_carry_amid_events_then_none_is_lost_and_none_counts_twice(bench: ActorHarness) -> None:
    """I3: the update comes between the record of an event and its counting."""
    bench.request(an_apply(a_spec(trigger=PAIR, args=["0"])))
    for number in range(12):
        bench.event(an_event(f"d{number}", "a"))
        bench.request(an_apply(a_spec(trigger=PAIR, args=[str(number + 1)]), f"it{number}", on_update="carry"))
        bench.event(an_event(f"d{number}", "b"))
    bench.run(10 * SECOND)
    assert sorted(str(order.context["correlation"]) for order in bench.started) == sorted(f"d{n}" for n in range(12))
    state = bench.state_of()
    assert state is not None
    assert (state.version, state.generation, state.carried) == (13, 1, (1, 13))


def test_given_carry_then_a_time_out_of_evidence_stays_where_it_was(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=PAIR)))
    bench.event(an_event("d1", "a"))
    bench.run(HOUR)
    update(bench, a_spec(trigger=PAIR, args=["new"]), "carry")
    bench.run(50 * MINUTE)
    assert bench.ledger() == []
    bench.run(20 * MINUTE)
    assert [entry[0] for entry in bench.ledger()] == ["expired/trigger_timeout"]


@pytest.mark.parametrize("how", ["carry", "finish_old"])
def test_given_a_job_that_still_absorbs_then_only_carry_lets_it_absorb_more(bench: ActorHarness, how: str) -> None:
    """Under `finish_old` the place of its evidence is the new version's, from the update on."""
    bench.request(an_apply(a_spec(trigger=on_data(), args=["old"], constraints=[CLOSED])))
    bench.event(an_event("a"))
    bench.run(SECOND)
    update(bench, a_spec(trigger=on_data(), args=["new"], constraints=[CLOSED]), how)
    bench.event(an_event("b"))
    bench.run(SECOND)
    assert len(waiting(bench)) == (1 if how == "carry" else 2)
    bench.run(OPENS_IN + MINUTE)
    told = [(order.args[0], manifest_text(order)) for order in bench.started]
    assert told == ([("new", "a,b")] if how == "carry" else [("old", "a"), ("new", "b")])


def test_given_both_kinds_in_turn_then_each_job_keeps_the_version_it_was_promised(bench: ActorHarness) -> None:
    """Carried from 1 to 2, left to finish at 3, carried from 3 to 4: the first stays with 2, the second goes to 4."""
    waits: Doc = {"trigger": every("10h"), "constraints": [CLOSED], "overlap": "allow"}
    bench.request(an_apply(a_spec(args=["1"], **waits)))
    bench.request(a_request("trigger", request_id="t1"))
    bench.run(SECOND)
    update(bench, a_spec(args=["2"], **waits), "carry", "u2")
    update(bench, a_spec(args=["3"], **waits), "finish_old", "u3")
    bench.request(a_request("trigger", request_id="t2"))
    bench.run(SECOND)
    update(bench, a_spec(args=["4"], **waits), "carry", "u4")
    bench.run(OPENS_IN + MINUTE)
    assert args_of(bench) == [["2"], ["4"]]


def test_given_finish_old_then_the_instants_of_the_new_trigger_count_from_the_update(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1h"), args=["old"], constraints=[CLOSED])))
    bench.request(a_request("trigger"))
    receipt = update(bench, a_spec(trigger=every("20m"), args=["new"]), "finish_old")
    assert receipt["next"][0] == "2025-11-13T02:20:00Z"
    bench.run(10 * MINUTE)
    assert args_of(bench) == []  # Overlap `queue`: the older job is first, and its window is closed.
    bench.run(OPENS_IN)
    assert args_of(bench)[:2] == [["old"], ["new"]]


@pytest.mark.parametrize("how", ["carry", "finish_old", "restart"])
@pytest.mark.parametrize("effect", range(1, 9, tier.at_night(1, else_=3)))
def test_given_a_crash_at_any_effect_of_an_update_then_what_waits_completes_once(
    bench: ActorHarness, how: str, effect: int
) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(), args=["old"], constraints=[CLOSED])))
    bench.event(an_event("a"))
    bench.run(SECOND)
    bench.crash_after = bench.effects_outside + effect
    update(bench, a_spec(trigger=on_data(), args=["new"], constraints=[CLOSED]), how)
    bench.run(OPENS_IN + MINUTE)
    assert args_of(bench) == {"carry": [["new"]], "finish_old": [["old"]], "restart": []}[how]
    assert bench.receipts()["it"]["status"] == "accepted"


# -- by default ---------------------------------------------------------------------------------------------------------------


FLEXIBLE = every("1h", start=format_instant(parse_instant("2025-11-13T00:00:00Z")), flexible="1h")


@pytest.mark.parametrize("waits", ["a place in a flexible window", "a constraint"])
def test_given_a_deploy_each_half_hour_then_no_hourly_run_is_lost(bench: ActorHarness, waits: str) -> None:
    """Found by trying: hourly deploys lost the runs that waited for their instant in the window."""
    trigger, constraints = (FLEXIBLE, []) if waits.startswith("a place") else (every("1h"), [CLOSED])
    for number in range(10):
        spec = a_spec(trigger=trigger, args=[str(number)], constraints=constraints)
        answer(bench, an_apply(spec, f"deploy-{number}"), run=30 * MINUTE)
    bench.run(2 * HOUR if waits.startswith("a place") else 24 * HOUR)
    rows = sorted((str(row["nominal"]), str(row["disposition"])) for row in bench.rows("L#"))
    assert len(rows) >= 6
    assert {disposition for _, disposition in rows} == {"launched"}
    nominals = [int(nominal) for nominal, _ in rows]
    assert [after - before for before, after in itertools.pairwise(nominals)] == [HOUR] * (len(rows) - 1)


def test_given_a_due_job_that_waits_then_an_update_gives_it_the_new_arguments(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("100h"), args=["old"], constraints=[CLOSED])))
    bench.run(SECOND)
    at = format_instant(bench.now + MINUTE)
    once = {"type": "at", "instant": at}
    bench.request(an_apply(a_spec(trigger=once, args=["old"], constraints=[CLOSED]), "once"))
    bench.run(2 * MINUTE)
    receipt = answer(bench, an_apply(a_spec(trigger=every("100h"), args=["new"], constraints=[CLOSED]), "it"))
    assert receipt["discarded"] in (None, {"jobs": [], "evidence": {}, "messages": 0})
    bench.run(OPENS_IN + MINUTE)
    assert args_of(bench) == [["new"]]


@pytest.mark.parametrize("said_by", ["the request", "the definition"])
def test_given_that_somebody_says_restart_then_the_due_job_is_superseded_too(bench: ActorHarness, said_by: str) -> None:
    trigger = every("1m")
    bench.request(an_apply(a_spec(trigger=trigger, args=["old"], constraints=[CLOSED])))
    bench.run(90 * SECOND)
    assert waiting(bench)
    own = {"on_update": "restart"} if said_by == "the definition" else {}
    asked = {"on_update": "restart"} if said_by == "the request" else {}
    receipt = answer(bench, an_apply(a_spec(trigger=every("10h"), constraints=[CLOSED], **own), "it", **asked))
    assert len(receipt["discarded"]["jobs"]) >= 1
    assert waiting(bench) == []
    assert {(row["disposition"], row["reason"]) for row in bench.rows("L#")} == {("cancelled", "superseded")}


@pytest.mark.parametrize("made_by", ["event", "hand"])
def test_given_a_job_of_an_event_or_by_hand_then_an_update_ends_it_as_ever(bench: ActorHarness, made_by: str) -> None:
    """Scenarios TS-04 and TS-05."""
    bench.request(an_apply(a_spec(trigger=on_data(), args=["old"], constraints=[CLOSED])))
    if made_by == "event":
        bench.event(an_event("a"))
    else:
        bench.request(a_request("trigger"))
    bench.run(SECOND)
    receipt = answer(bench, an_apply(a_spec(trigger=on_data(), args=["new"], constraints=[CLOSED]), "it"))
    assert len(receipt["discarded"]["jobs"]) == 1
    bench.run(OPENS_IN + MINUTE)
    assert args_of(bench) == []


@pytest.mark.parametrize(("preset", "args"), [({}, "new"), ({"preset": "cdap", "suspended": False}, "old")])
def test_given_a_due_run_before_the_gate_then_it_starts_once_with_the_arguments_that_its_preset_wants(
    bench: ActorHarness, preset: Doc, args: str
) -> None:
    """Row CD-006: with CDAP's preset what is being launched launches with its old snapshot."""
    bench.behaves = lambda order: Behaviour(starts_after=10 * SECOND)
    once = every("1h", end=format_instant(bench.now + HOUR))
    bench.request(an_apply(a_spec(trigger=once, args=["old"], **preset)))
    bench.run(46 * MINUTE + 45 * SECOND)  # It is due at 03:00, and comes to the gate ten seconds later.
    assert [row["state"] for row in bench.rows("R#")] == ["submitted"]
    receipt = answer(bench, an_apply(a_spec(trigger=every("10h"), args=["new"], **preset), "it"))
    assert receipt["discarded"] in (None, {"jobs": [], "evidence": {}, "messages": 0})
    bench.run(MINUTE)
    assert args_of(bench) == [[args]]
    (row,) = bench.rows("L#")
    assert (row["disposition"], row["state"]) == ("launched", "succeeded")


@pytest.mark.parametrize("effect", range(1, 9, tier.at_night(1, else_=3)))
def test_given_a_crash_at_any_effect_of_an_update_then_what_is_due_runs_once_with_the_new_arguments(
    bench: ActorHarness, effect: int
) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"), args=["old"], constraints=[CLOSED], overlap="allow")))
    bench.run(9 * MINUTE + 30 * SECOND)
    due = len(waiting(bench))
    assert due > 6  # More than one page.
    bench.crash_after = bench.effects_outside + effect
    update(bench, a_spec(trigger=every("10h"), args=["new"], constraints=[CLOSED], overlap="allow"), "keep_due")
    bench.run(OPENS_IN + MINUTE)
    assert args_of(bench) == [["new"]] * due
    assert bench.receipts()["it"]["status"] == "accepted"


def test_given_a_definitions_own_word_then_its_update_follows_it_unless_the_request_says_otherwise(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_spec(trigger=every("1h"), constraints=[CLOSED])))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    answer(bench, an_apply(a_spec(trigger=every("1h"), constraints=[CLOSED], on_update="carry"), "u2"))
    assert len(waiting(bench)) == 1
    kept = a_spec(trigger=every("1h"), constraints=[CLOSED], on_update="carry", args=["3"])
    receipt = answer(bench, an_apply(kept, "u3", on_update="restart"))
    assert len(receipt["discarded"]["jobs"]) == 1


@pytest.mark.parametrize("how", ["restart", "carry", "finish_old"])
def test_given_an_identical_spec_then_no_mode_changes_anything(bench: ActorHarness, how: str) -> None:
    """SEMANTICS 12.1, row CD-150: equal ones are untouched, with their status and what is pending."""
    bench.request(an_apply(a_spec(trigger=on_data(count=2), constraints=[CLOSED])))
    bench.event(an_event("a"))
    bench.run(SECOND)
    before: ScheduleState | None = bench.state_of()
    receipt = update(bench, a_spec(trigger=on_data(count=2), constraints=[CLOSED]), how)
    after = bench.state_of()
    assert receipt["status"] == "unchanged"
    assert before is not None
    assert after is not None
    assert (after.version, after.generation) == (before.version, before.generation)
    assert len(bench.rows("E#")) == 1


@pytest.mark.parametrize("how", ["carry", "finish_old"])
def test_given_a_schedule_that_sends_messages_then_it_restarts_only(bench: ActorHarness, how: str) -> None:
    bench.request(an_apply(a_recurring("nightly")))
    receipt = update(bench, a_recurring("nightly", payload="other"), how)
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", "on_update")


@pytest.mark.parametrize("how", ["carry", "finish_old"])
def test_given_no_schedule_then_the_mode_does_not_matter(bench: ActorHarness, how: str) -> None:
    assert update(bench, a_spec(), how)["status"] == "accepted"


@pytest.mark.parametrize("mode", ["hold", "freeze"])
def test_given_an_update_while_held_then_what_is_due_stays_parked_and_goes_on_with_the_new_arguments(
    bench: ActorHarness, mode: str
) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"), args=["old"], constraints=[CLOSED], overlap="allow")))
    bench.run(3 * MINUTE)
    bench.request(a_request("suspend", mode=mode))
    bench.run(SECOND)
    due = len(waiting(bench))
    new = a_spec(trigger=every("10h"), args=["new"], overlap="allow")
    assert answer(bench, an_apply(new, "it"), run=MINUTE)["status"] == "accepted"
    assert (len(waiting(bench)), bench.started) == (due, [])
    answer(bench, a_request("resume", backlog="all"), run=MINUTE)
    assert args_of(bench) == [["new"]] * due


def test_given_an_update_while_drained_then_what_is_due_launches_with_the_new_arguments(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"), args=["old"], constraints=[CLOSED], overlap="allow")))
    bench.run(3 * MINUTE)
    bench.request(a_request("suspend", mode="drain"))
    answer(bench, an_apply(a_spec(trigger=every("10h"), args=["new"], overlap="allow"), "it"), run=MINUTE)
    assert args_of(bench) == [["new"]] * 3


def test_given_carry_while_held_then_the_backlog_is_bound_to_the_new_version(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1m"), args=["old"])))
    bench.request(a_request("suspend", mode="hold"))
    bench.run(3 * MINUTE)
    assert update(bench, a_spec(trigger=every("1m"), args=["new"]), "carry")["status"] == "accepted"
    bench.run(2 * MINUTE)
    assert answer(bench, a_request("resume"), run=10 * SECOND)["backlog"] == 5
    assert args_of(bench) == [["new"]] * 5


def test_given_a_running_program_then_no_update_touches_it(bench: ActorHarness) -> None:
    """SEMANTICS 12.3: running runs stay on their version; the answer of a restart lists them."""
    bench.behaves = lambda order: Behaviour(runs_for=MINUTE)
    bench.request(an_apply(a_spec(trigger=every("1h"), args=["old"])))
    run = answer(bench, a_request("trigger"), run=SECOND)["id"]
    assert update(bench, a_spec(trigger=every("1h"), args=["new"]), "restart")["running"] == [run]
    bench.run(2 * MINUTE)
    (row,) = bench.rows("L#")
    assert (row["disposition"], row["state"], row["version"]) == ("launched", "succeeded", 1)


# -- delete -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cancels", "ended"), [(False, "succeeded"), (True, "killed")])
@pytest.mark.parametrize("runs", [1, 9])
def test_given_running_programs_then_a_delete_ends_them_only_when_it_says_so(
    bench: ActorHarness, cancels: bool, ended: str, runs: int
) -> None:
    """SEMANTICS 11: they are listed either way."""
    bench.behaves = lambda order: Behaviour(runs_for=MINUTE)
    bench.request(an_apply(a_spec(trigger=every("10h"), overlap="allow")))
    ids = {answer(bench, a_request("trigger", request_id=f"t{n}"), run=SECOND)["id"] for n in range(runs)}
    more: dict[str, Any] = {"cancel_running": True} if cancels else {}
    receipt = answer(bench, a_request("delete", **more))
    assert set(receipt["running"]) == ids
    bench.run(2 * MINUTE)
    assert {entry[3] for entry in bench.ledger()} == {ended}


def test_given_a_delete_of_what_others_listen_to_then_they_end_and_its_open_runs_fire_nobody(
    bench: ActorHarness,
) -> None:
    """Row CD-017: a schedule that waits for the deleted one alone is deleted with it."""
    bench.behaves = lambda order: Behaviour(runs_for=MINUTE)
    bench.request(an_apply(a_spec("up", every("10h"))))
    bench.request(an_apply(a_spec("down", on_run_of("up"))))
    bench.request(a_request("trigger", "up"))
    bench.run(SECOND)
    answer(bench, a_request("delete", "up"))
    bench.run(3 * MINUTE)
    assert [entry[1] for entry in bench.ledger()] == ["up"]
    assert {row["status"] for row in bench.rows("S#")} == {"deleted"}


@pytest.mark.parametrize(("how", "after"), [("finish_old", "1m"), ("finish_old", "15m"), ("restart", "15m")])
def test_given_an_event_before_the_pages_of_an_update_are_through_then_the_old_job_keeps_what_it_has(
    bench: ActorHarness, how: str, after: str
) -> None:
    """What the new version counts took the place of the old job's evidence: it was never launched, or its chunks stayed for ever."""
    bench.request(an_apply(a_spec(trigger=on_data(), constraints=[{"type": "delay", "after": after}])))
    bench.event(an_event("d1"))
    bench.run(SECOND)
    (old,) = bench.rows("J#")
    bench.answer_with(
        lambda each: isinstance(each, Commit) and each.transaction.name == "end_pending",
        Invalid("too large"),
        times=100,
    )
    bench.request(an_apply(a_spec(trigger=on_data(), overlap="allow"), "update", on_update=how))
    bench.event(an_event("d2"))
    bench.run(5 * SECOND)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + 10 * MINUTE)
    told = ["launched", "launched"] if how == "finish_old" else ["cancelled/superseded", "launched"]
    assert sorted(entry[0] for entry in bench.ledger()) == told
    assert (old["id"] in {each.run_id for each in bench.started}) == (how == "finish_old")
    assert bench.rows("E#") == []
    chunks = [from_item(EvidenceChunk, row) for row in bench.rows("EC#")]
    to_go = {row["ref"] for row in bench.rows("T#") if row["kind"] == "C"}
    assert len(chunks) == 2
    assert {chunk.evidence_id for chunk in chunks} <= to_go
