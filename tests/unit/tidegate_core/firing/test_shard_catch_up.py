"""Catch-up as a schedule words it, from the outage, the pause or the creation to the ledger (SEMANTICS 3)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    Doc,
    a_recurring,
    a_request,
    a_spec,
    an_apply,
    at_most,
    every,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.firing import catch_up
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Commit, Invalid, LaunchOrder
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.store_operations import Check, Delete
from tidegate_core.shard.outages.outage_recorder import heartbeat_row


def a_bench(catch_up: Doc, overlap: str = "allow", trigger: Doc | None = None, **more: Any) -> ActorHarness:
    bench = ActorHarness(shards=1, behaviour=Behaviour(runs_for=5 * SECOND))
    bench.run(SECOND)
    spec = a_spec(trigger=trigger or every("10m"), overlap=overlap, catchup=catch_up, **more)
    bench.request(an_apply(spec))
    bench.run(SECOND)
    return bench


def away(bench: ActorHarness, milliseconds: int) -> None:
    """Nobody is there for so long; before it everybody was."""
    bench.store.write([heartbeat_row(bench.holding.owner, "node", bench.now, {0: bench.now}, bench.now // 1_000 + 1)])
    bench.away(milliseconds)


def once_failing(name: str) -> Callable[[LaunchOrder], Behaviour]:
    """Programs of which the very first of this schedule fails."""
    known: list[str] = []

    def behaves(order: LaunchOrder) -> Behaviour:
        fails = not known and order.context["schedule"]["name"] == name  # type: ignore[call-overload,index]
        known.extend([order.run_id] * fails)
        return Behaviour(runs_for=SECOND, outcome="failed" if fails else "succeeded")

    return behaves


def entries(bench: ActorHarness) -> list[LedgerRow]:
    return sorted((from_item(LedgerRow, item) for item in bench.rows("L#")), key=lambda row: row.nominal)


def stood_for(bench: ActorHarness, period: int = 10 * MINUTE) -> list[int]:
    rows = entries(bench)
    return [at for row in rows for at in range(row.covered_from or row.nominal, row.nominal + 1, period)]


def test_given_more_than_may_run_then_the_surplus_is_one_job_and_nothing_is_uncovered() -> None:
    """CD-061."""
    bench = a_bench({"max_runs": 3})
    begun = bench.now
    away(bench, 10 * HOUR)
    bench.run(MINUTE)
    rows = entries(bench)
    assert [row.covered for row in rows] == [None, None, None, 57]
    assert {row.disposition for row in rows} == {"launched"}
    assert rows[-1].interval_start == rows[2].nominal
    assert stood_for(bench) == list(range(-(-begun // (10 * MINUTE)) * 10 * MINUTE, bench.now + 1, 10 * MINUTE))


def test_given_what_is_older_than_the_window_then_one_entry_and_one_line_say_so() -> None:
    bench = a_bench({"window": "2h"})
    away(bench, 10 * HOUR)
    bench.run(2 * MINUTE)
    first, *others = entries(bench)
    assert (first.disposition, first.reason, first.covered) == ("expired", "catchup_window", 48)
    assert len(others) == 12
    (told,) = bench.notices("catchup_expired")
    assert (told.fields["schedule"], told.fields["occurrences"]) == ("flights/nightly", 48)


@pytest.mark.parametrize("overlap", ["allow", "queue"])
def test_given_many_to_make_up_for_then_they_run_one_at_a_time_and_what_is_due_now_goes_beside_them(
    overlap: str,
) -> None:
    """SEMANTICS 3.5: no herd after an outage."""
    bench = a_bench({}, overlap, every("1m"), constraints=[at_most(2)])
    bench.behaves = lambda order: Behaviour(runs_for=40 * SECOND)
    away(bench, 20 * MINUTE)
    back = bench.now
    bench.run(40 * MINUTE)
    rows = entries(bench)
    missed = [row for row in rows if row.nominal < back]
    assert len(missed) == 20
    for before, after in itertools.pairwise(missed):
        assert before.ended_at is not None
        assert after.started_at is not None
        assert before.ended_at <= after.started_at
    timely = [row.started_at - row.nominal for row in rows if row.nominal >= back and row.started_at]
    assert max(timely) < SECOND


@pytest.mark.parametrize("action", ["abort", "force", "alert"])
def test_given_a_drain_longer_than_the_pending_time_out_then_it_stays_paced_and_none_expires(action: str) -> None:
    """The time-out of each counts from its turn: nothing but the pacing holds it back until then."""
    bench = a_bench({}, trigger=every("10m"), pending_timeout="25m", pending_timeout_action=action)
    bench.behaves = lambda order: Behaviour(runs_for=12 * MINUTE)
    away(bench, 2 * HOUR)
    back = bench.now
    bench.passes_over_routine = True
    bench.run(4 * HOUR)
    missed = [row for row in entries(bench) if row.nominal < back]
    assert len(missed) == 12
    assert {row.disposition for row in missed} == {"launched"}
    for before, after in itertools.pairwise(missed):
        assert (before.ended_at or 0) <= (after.admitted_at or 0)


def test_given_a_turn_in_which_something_else_is_in_the_way_then_the_time_out_counts_from_there() -> None:
    """One turn for all that nothing else has kept waiting: they do not expire one after another."""
    closed = {"type": "time_window", "opens": "01:00", "closes": "02:00"}
    bench = a_bench({}, trigger=every("10m"), pending_timeout="25m", constraints=[closed])
    away(bench, 3 * HOUR)
    back = bench.now
    bench.run(HOUR)
    missed = [row for row in entries(bench) if row.nominal < back]
    assert len(missed) == 18
    assert {(row.reason, row.at) for row in missed} == {("constraint_timeout", back + 25 * MINUTE)}


def test_given_another_outage_within_a_turn_then_what_it_brings_waits_for_as_long_as_its_own_time_out_says() -> None:
    """Seed 830206: it came after the turn had begun, and expired with those for whom it had. Their time-out stood still meanwhile."""
    closed = {"type": "time_window", "opens": "01:00", "closes": "02:00"}
    bench = a_bench({"mode": "coalesce"}, trigger=every("10m"), pending_timeout="25m", constraints=[closed])
    away(bench, 3 * HOUR)
    first_back = bench.now
    bench.run(5 * MINUTE)
    away(bench, 10 * MINUTE)
    second_back = bench.now
    bench.run(HOUR)
    missed = [row for row in entries(bench) if row.nominal < second_back]
    assert [(row.reason, row.at) for row in missed] == [
        ("constraint_timeout", counted_from + 25 * MINUTE) for counted_from in (first_back + 10 * MINUTE, second_back)
    ]


def test_given_one_that_waits_for_another_then_the_job_says_so() -> None:
    bench = a_bench({}, "allow", every("1m"))
    bench.behaves = lambda order: Behaviour(runs_for=None)
    away(bench, 20 * MINUTE)
    bench.run(SECOND)
    waiting = [row for row in bench.rows("J#") if row["state"] == "pending_constraint"]
    assert len(waiting) == 19
    assert [str(row["unmet"]) for row in waiting if "unmet" in row and "catch_up_pacing" in str(row["unmet"])]


def test_given_a_try_that_is_waited_for_then_it_holds_back_what_else_its_schedule_missed_and_nothing_else() -> None:
    """Review finding, decided by SEMANTICS 3.5 and 4: its run is open until its end is written, so another one would be a second."""
    bench = a_bench({}, trigger=every("10m"), retry={"tries": 1, "backoff": "25m"})
    bench.request(an_apply(a_spec("hourly", every("1h"), overlap="allow"), "hourly"))
    bench.run(SECOND)
    bench.behaves = once_failing("nightly")
    away(bench, 2 * HOUR)
    back = bench.now
    bench.run(20 * MINUTE)
    mine, others = ([row for row in entries(bench) if row.name == name] for name in ("nightly", "hourly"))
    assert [row.nominal > back for row in mine] == [True] * 2, "what is due now goes beside it"
    assert len(others) == 2, "another schedule's goes on"
    bench.run(10 * MINUTE)
    missed = [row for row in entries(bench) if row.name == "nightly" and row.nominal <= back]
    assert len(missed) == 12
    for before, after in itertools.pairwise(missed):
        assert (before.ended_at or 0) <= (after.admitted_at or 0)


def test_given_a_crash_after_any_effect_then_bounds_hold_and_each_instant_is_accounted_for_once() -> None:
    whole: list[tuple[int, int | None]] | None = None
    for crash_after in (None, *range(1, 30, tier.at_night(1, else_=4))):
        bench = a_bench({"max_runs": 10, "window": "4h"})
        away(bench, 1)
        bench.new_actor()
        bench.now += 10 * HOUR
        bench.effects_outside, bench.crash_after = 0, crash_after
        bench.run(2 * MINUTE)
        found = [(row.nominal, row.covered) for row in entries(bench)]
        whole = whole or found
        assert found == whole, crash_after
    assert len(whole or ()) == 12


@pytest.mark.parametrize(("mode", "covered"), [("none", []), ("all", [None] * 6), ("last", [6]), ("coalesce", [6])])
def test_given_a_pause_then_its_own_word_says_what_is_made_up_for(mode: str, covered: list[int | None]) -> None:
    bench = a_bench({"after_pause": mode})
    bench.request(a_request("suspend"))
    bench.run(HOUR)
    bench.request(a_request("resume"))
    shown = bench.receipts()["resume-nightly"]["next"]
    bench.run(MINUTE)
    assert [row.covered for row in entries(bench)] == covered
    assert all(instant > format_instant(bench.now - 5 * MINUTE) for instant in shown)
    bench.run(10 * MINUTE)
    assert [row.covered for row in entries(bench)] == [*covered, None]


@pytest.mark.parametrize(("mode", "made"), [("none", 0), ("all", 12), ("last", 1)])
def test_given_a_start_in_the_past_then_creating_makes_up_for_as_much_as_is_wanted(mode: str, made: int) -> None:
    start = format_instant(NOW - 2 * HOUR)
    bench = a_bench({"on_create": mode}, trigger=every("10m", start=start))
    bench.run(5 * MINUTE)
    assert len(entries(bench)) == made


PAST = every("10m", start=format_instant(NOW - 2 * HOUR), end=format_instant(NOW - HOUR))


@pytest.mark.parametrize(("mode", "made"), [("all", 6), ("last", 1), ("coalesce", 1)])
def test_given_a_closed_range_of_the_past_then_creating_makes_up_for_it_and_nothing_follows(
    mode: str, made: int
) -> None:
    """It was refused, because "nothing would ever fire"."""
    bench = a_bench({"on_create": mode}, trigger=PAST)
    assert bench.receipts()["apply-nightly"]["status"] == "accepted"
    bench.run(2 * HOUR)
    assert len(entries(bench)) == made
    again = a_spec(trigger=PAST, overlap="allow", catchup={"on_create": mode})
    bench.request(an_apply(again, "again"))
    bench.run(MINUTE)
    assert bench.receipts()["again"]["status"] == "unchanged"


def test_given_a_closed_range_of_the_past_that_begins_suspended_then_its_first_resume_makes_up_for_it() -> None:
    bench = a_bench({"on_create": "all"}, trigger=PAST, suspended=True)
    bench.run(MINUTE)
    assert entries(bench) == []
    bench.request(a_request("resume"))
    bench.run(5 * MINUTE)
    assert len(entries(bench)) == 6


@pytest.mark.parametrize(
    ("catch_up", "status", "made"), [({"on_create": "all"}, "rejected", 0), ({"after_update": "all"}, "accepted", 6)]
)
def test_given_an_update_to_a_closed_range_of_the_past_then_after_update_decides(
    catch_up: Doc, status: str, made: int
) -> None:
    """What is made up for of an update begins behind the last occurrence; `on_create` says nothing about it."""
    bench = a_bench(catch_up, trigger=every("1h", start=format_instant(NOW - MINUTE)))
    bench.run(HOUR + 30 * MINUTE)
    before = len(entries(bench))
    past = every("1m", start=format_instant(bench.now - 8 * MINUTE), end=format_instant(bench.now - 2 * MINUTE))
    bench.request(an_apply(a_spec(trigger=past, overlap="allow", catchup=catch_up), "update"))
    bench.run(10 * MINUTE)
    assert bench.receipts()["update"]["status"] == status
    assert len(entries(bench)) - before == made


@pytest.mark.parametrize(
    ("catch_up", "told"),
    [
        ({}, "nothing would ever fire; to run past occurrences, create it with catchup: {on_create: all}"),
        ({"on_create": "all", "window": "30m"}, "no time of the trigger is within catchup.window, 30m"),
    ],
)
def test_given_a_closed_range_of_the_past_that_nothing_makes_up_for_then_the_refusal_says_what_would(
    catch_up: Doc, told: str
) -> None:
    bench = a_bench(catch_up, trigger=PAST)
    receipt = bench.receipts()["apply-nightly"]
    assert receipt["status"] == "rejected"
    assert told in "; ".join(f"{each['problem']}; {each['hint']}" for each in receipt["errors"])


def test_given_a_start_in_the_past_and_a_schedule_that_begins_suspended_then_its_first_resume_makes_up_for_it() -> None:
    trigger = every("10m", start=format_instant(NOW - 2 * HOUR))
    bench = a_bench({"on_create": "all"}, trigger=trigger, suspended=True)
    bench.run(MINUTE)
    assert entries(bench) == []
    bench.request(a_request("resume"))
    bench.run(3 * MINUTE)
    assert len(entries(bench)) == 12
    bench.request(a_request("suspend"))
    bench.run(HOUR)
    bench.request(a_request("resume", request_id="again"))
    bench.run(MINUTE)
    assert len(entries(bench)) == 12, "later pauses are pauses"


@pytest.mark.parametrize("on_update", ["restart", "carry", "finish_old"])
def test_given_an_update_of_a_schedule_that_began_suspended_then_its_first_resume_makes_up_for_its_creation(
    on_update: str,
) -> None:
    """Found in review: behind an update nothing was made up for."""
    trigger = every("10m", start=format_instant(NOW - 2 * HOUR))
    bench = a_bench({"on_create": "all"}, trigger=trigger, suspended=True)
    bench.run(MINUTE)
    again = a_spec(
        trigger=trigger, overlap="allow", catchup={"on_create": "all"}, suspended=True, args=["x"], on_update=on_update
    )
    bench.request(an_apply(again, "again"))
    bench.run(MINUTE)
    bench.request(a_request("resume"))
    bench.run(3 * MINUTE)
    assert bench.receipts()["resume-nightly"]["backlog"] == 12
    assert len(entries(bench)) == 12


@pytest.mark.parametrize("mode", ["none", "last", "all"])
@pytest.mark.parametrize("kind", ["program", "message"])
def test_given_a_past_instant_that_is_applied_after_an_outage_then_it_is_made_whatever_was_missed_then(
    mode: str, kind: str
) -> None:
    """Nobody missed it: it was not there in the outage."""
    bench = a_bench({})
    gone = bench.now
    away(bench, 10 * HOUR)
    bench.run(MINUTE)
    at = {"type": "at", "instant": format_instant(gone + HOUR)}
    make = a_recurring if kind == "message" else a_spec
    bench.request(an_apply({**make("once", trigger=at), "catchup": {"mode": mode}}))
    bench.run(MINUTE)
    if kind == "message":
        assert len(bench.on("out")) == 1
    else:
        (row,) = [row for row in entries(bench) if row.name == "once"]
        assert (row.disposition, row.covered) == ("launched", None)


@pytest.mark.parametrize(("ago", "shown"), [(8 * 24 * HOUR, 0), (HOUR, 1)])
def test_given_a_past_instant_then_the_receipt_shows_it_only_where_it_is_made(ago: int, shown: int) -> None:
    """The receipt named one as `next` that had passed, and that ended as `expired/catchup_window` at once."""
    bench = a_bench({})
    past = format_instant(bench.now - ago)
    bench.request(an_apply(a_spec("once", trigger={"type": "at", "instant": past}), "once"))
    bench.run(MINUTE)
    assert bench.receipts()["once"].get("next", []) == [past] * shown
    (row,) = [row for row in entries(bench) if row.name == "once"]
    assert (row.disposition == "launched") == bool(shown)


@pytest.mark.parametrize(("mode", "made"), [("none", 0), ("all", 2)])
def test_given_an_update_then_what_the_new_trigger_named_since_the_last_occurrence_is_made_if_wanted(
    mode: str, made: int
) -> None:
    bench = a_bench({}, trigger=every("1h"))
    bench.run(HOUR)
    before = len(entries(bench))
    spec = a_spec(trigger=every("10m", phase="5m"), overlap="allow", catchup={"after_update": mode})
    bench.run(18 * MINUTE)
    bench.request(an_apply(spec, "again"))
    since = bench.now - entries(bench)[-1].nominal
    bench.run(30 * SECOND)
    expected = made and len(list(range(5 * MINUTE, since, 10 * MINUTE)))
    assert len(entries(bench)) - before == expected


def test_given_an_old_instant_that_is_wanted_then_it_is_made_unless_it_is_older_than_the_window() -> None:
    """SEMANTICS 1.5."""
    for window, entry in (("3h", "launched"), ("1h", "expired")):
        at = {"type": "at", "instant": format_instant(NOW - 2 * HOUR)}
        bench = a_bench({"window": window}, trigger=at)
        bench.run(MINUTE)
        assert [row.disposition for row in entries(bench)] == [entry]


@pytest.mark.parametrize(("mode", "sent"), [("last", 1), ("none", 0), ("all", 18)])
def test_given_a_recurring_message_then_its_mode_says_what_is_sent_after_an_outage(mode: str, sent: int) -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply({**a_recurring(), "catchup": {"mode": mode}}))
    bench.run(15 * SECOND)
    before = len(bench.delivered())
    away(bench, 3 * MINUTE)
    bench.run(100)
    assert len(bench.delivered()) - before == sent


def test_given_a_request_that_makes_what_was_due_before_it_then_the_rows_that_it_went_through_cost_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seed 20510393: each of its transactions left a decision in the shard writer, behind the next request, that took away what was gone."""
    monkeypatch.setattr(catch_up, "WALKED_PER_TRANSACTION", 2)
    bench = ActorHarness(shards=1, behaviour=Behaviour(runs_for=5 * SECOND))
    bench.run(SECOND)
    for name in ("one", "two"):
        bench.request(an_apply(a_spec(name=name, trigger=every("10m"), catchup={"mode": "last"})))
    bench.run(SECOND)
    bench.store_answers_after = 10
    away(bench, 100 * HOUR)
    for name in ("one", "two"):
        bench.request(a_request("suspend", name, f"stop-{name}"))
    bench.run(MINUTE)
    assert [bench.status_of(f"stop-{name}") for name in ("one", "two")] == ["accepted", "accepted"]
    fires = bench.commits("fire")
    assert len(fires) >= 2 * 600 // 2
    assert not [each for each in fires if all(isinstance(action, Check | Delete) for action in each.actions)]
    assert not bench.rows("T#")


def test_given_one_in_its_turn_that_cannot_be_written_then_the_others_have_theirs() -> None:
    """The next one, which is handed the turn by the same decision, is not to blame (review)."""
    closed = {"type": "time_window", "opens": "01:00", "closes": "02:00"}
    bench = a_bench({}, trigger=every("10m"), pending_timeout="25m", constraints=[closed])
    away(bench, 3 * HOUR)
    back = bench.now
    bench.run(10 * MINUTE)
    first = min((str(row["nominal"]), str(row["sk"])) for row in bench.rows("J#"))[1]
    bench.answer_with(
        lambda effect: isinstance(effect, Commit) and any(each.key.sk == first for each in effect.transaction.actions),
        Invalid("too large"),
        times=100_000,
    )
    bench.run(50 * MINUTE)
    assert len([row for row in entries(bench) if row.nominal < back]) == 17
