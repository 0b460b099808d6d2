"""What a resume makes of the span: jobs that waited, and instants that made nothing (SEMANTICS 10)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import MINUTE, SECOND, a_request, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.request_bench import answer
from tests.support.harness.suspend_bench import a_bench, suspend, waiting
from tidegate_core.ownership.quarantine import TRY_AGAIN_MS
from tidegate_core.rows.effects import Commit, Invalid


@pytest.mark.parametrize(
    ("backlog", "started", "ended"),
    [
        (None, 8, []),
        ("all", 8, []),
        ("last", 1, ["cancelled/suspended"] * 7),
        ("coalesce", 1, ["coalesced"] * 7),
        ("none", 0, ["cancelled/suspended"] * 8),
    ],
)
def test_given_a_backlog_of_hold_then_the_resume_chooses_what_goes_on(
    backlog: str | None, started: int, ended: list[str]
) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    suspend(bench, "hold")
    bench.run(8 * MINUTE)
    wanted = {} if backlog is None else {"backlog": backlog}
    receipt = answer(bench, a_request("resume", **wanted), run=20 * SECOND)
    assert receipt["backlog"] == started
    assert len(receipt["discarded"]["jobs"]) == len(ended)
    assert len(bench.started) == started
    told = [entry[0].split("/")[0] if entry[0].startswith("coalesced") else entry[0] for entry in bench.ledger()]
    assert sorted(told) == sorted([*ended, *["launched"] * started])
    if backlog == "coalesce":
        interval: Any = bench.started[0].context["interval"]
        assert interval["start"] == "2025-11-13T02:13:00Z"


@pytest.mark.parametrize("effect", range(1, 14))
def test_given_a_crash_at_any_effect_of_a_resume_then_the_backlog_is_cut_once_and_the_answer_complete(
    effect: int,
) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    suspend(bench, "hold")
    bench.run(20 * MINUTE)
    bench.crash_after = bench.effects_outside + effect
    bench.request(a_request("resume", backlog="last"))
    bench.run(30 * SECOND)
    receipt = bench.receipts()["resume-nightly"]
    assert (receipt["backlog"], len(receipt["discarded"]["jobs"])) == (1, 19)
    assert len(bench.started) == 1


@pytest.mark.parametrize("mode", ["drop", "drain", "freeze"])
@pytest.mark.parametrize(
    ("backlog", "count", "started"), [("all", 5, 5), ("last", 1, 1), ("coalesce", 1, 1), ("none", 0, 0), (None, 0, 0)]
)
def test_given_instants_that_made_nothing_then_a_resume_makes_up_for_them_only_when_asked(
    mode: str, backlog: str | None, count: int, started: int
) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    suspend(bench, mode)
    bench.run(5 * MINUTE)
    wanted = {} if backlog is None else {"backlog": backlog}
    receipt = answer(bench, a_request("resume", **wanted), run=20 * SECOND)
    assert receipt["backlog"] == count
    assert len(bench.started) == started
    covered = [row["covered"] for row in bench.rows("L#") if "covered" in row]
    assert covered == ([5] if backlog in {"last", "coalesce"} else [])
    bench.run(MINUTE)
    assert len(bench.started) == started + 1


def test_given_many_missed_instants_then_they_are_made_up_for_across_transactions_and_a_crash() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="allow", catchup={"max_runs": 100})))
    suspend(bench, "drop")
    bench.run(40 * MINUTE)
    bench.crash_after = bench.effects_outside + 6
    receipt = answer(bench, a_request("resume", backlog="all"), run=MINUTE)
    assert receipt["backlog"] == 40
    assert len([entry for entry in bench.ledger() if entry[0] == "launched"]) == 41


def test_given_more_missed_instants_than_the_schedule_makes_up_for_one_by_one_then_one_job_stands_for_the_rest() -> (
    None
):
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="allow", catchup={"max_runs": 3})))
    suspend(bench, "drop")
    bench.run(40 * MINUTE)
    receipt = answer(bench, a_request("resume", backlog="all"), run=30 * SECOND)
    assert receipt["backlog"] == 4
    assert [row["covered"] for row in bench.rows("L#") if "covered" in row] == [37]


@pytest.mark.parametrize("mode", ["drop", "drain", "freeze"])
def test_given_a_schedule_that_makes_up_for_pauses_then_a_resume_needs_no_word_of_its_own(mode: str) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), catchup={"after_pause": "coalesce"})))
    suspend(bench, mode)
    bench.run(5 * MINUTE)
    receipt = answer(bench, a_request("resume"), run=20 * SECOND)
    assert receipt["backlog"] == 1
    assert [row["covered"] for row in bench.rows("L#") if "covered" in row] == [5]


@pytest.mark.parametrize(("most", "runs"), [(3, 3), (5, 5)])
def test_given_a_most_number_of_fires_then_a_backlog_does_not_exceed_it(most: int, runs: int) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger={**every("1m"), "max_fires": most}, overlap="allow")))
    bench.run(3 * MINUTE + SECOND)
    assert len(bench.started) == 3
    suspend(bench, "drop")
    bench.run(10 * MINUTE)
    receipt = answer(bench, a_request("resume", backlog="all"), run=MINUTE)
    assert receipt["backlog"] == runs - 3
    bench.run(10 * MINUTE)
    assert len(bench.started) == runs


def test_given_an_event_trigger_then_its_backlog_is_not_merged() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data())))
    suspend(bench, "hold")
    receipt = answer(bench, a_request("resume", backlog="coalesce"))
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", "backlog")


# -- owners whose clocks differ ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("backlog", "goes_on"), [("none", 0), ("last", 1), ("coalesce", 1), ("all", 4)])
def test_given_a_successor_whose_clock_is_behind_then_what_was_made_before_it_is_backlog(
    backlog: str, goes_on: int
) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    suspend(bench, "hold")
    bench.run(40 * SECOND - bench.now % (10 * SECOND))
    assert waiting(bench)[-1].satisfied_at == bench.now
    bench.crash()
    bench.now -= 400
    receipt = answer(bench, a_request("resume", backlog=backlog), run=5 * SECOND)
    assert receipt["backlog"] == len(bench.started) == goes_on


def test_given_a_job_that_is_made_amid_a_resume_by_an_owner_whose_clock_is_behind_then_it_is_no_backlog() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data(), overlap="allow")))
    suspend(bench, "hold")
    bench.event(an_event("d1"))
    bench.run(5 * SECOND)
    bench.answer_with(
        lambda each: isinstance(each, Commit) and each.transaction.name == "release", Invalid("too large"), times=100
    )
    bench.request(a_request("resume", backlog="none"))
    bench.crash()
    bench.now -= 400
    bench.request(a_request("trigger"))
    parked, made_since = waiting(bench)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    assert bench.receipts()["resume-nightly"]["discarded"]["jobs"] == [parked.id]
    assert sorted(entry[0] for entry in bench.ledger()) == ["cancelled/suspended", "launched"]
    assert [each.run_id for each in bench.started] == [made_since.id]


@pytest.mark.parametrize("falls_after", range(1, 6, tier.at_night(1, else_=2)))
@pytest.mark.parametrize(("backlog", "made"), [("all", 5), ("last", 1), ("coalesce", 1), ("none", 0)])
def test_given_a_fall_before_the_pages_of_a_resume_then_what_it_makes_up_for_is_counted_once(
    backlog: str, made: int, falls_after: int
) -> None:
    """Found in review: the successor made it before it went on with the pages, which took it for a part of what had waited."""
    bench = a_bench(Behaviour(runs_for=None))
    bench.request(an_apply(a_spec(trigger=every("10m"))))
    bench.run(35 * MINUTE)
    suspend(bench, "freeze")
    bench.run(50 * MINUTE)
    kept = len(waiting(bench))
    assert kept > 0
    bench.crash_after = bench.effects_outside + falls_after
    receipt = answer(bench, a_request("resume", backlog=backlog), run=3 * SECOND)
    assert len(waiting(bench)) == kept + made
    assert receipt["backlog"] == kept + made
