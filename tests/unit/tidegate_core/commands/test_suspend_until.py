"""A suspend that names its end: the schedule is resumed by itself, once (SEMANTICS 10)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support import tier
from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    a_recurring,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.request_bench import answer
from tests.support.harness.suspend_bench import MODES, a_bench, suspend
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.rows.effects import Commit, Read, ReadRange, Write
from tidegate_core.shard.outages.outage_recorder import heartbeat_row


def test_given_a_suspended_schedule_then_another_end_is_a_conflict_and_the_same_one_changes_nothing() -> None:
    """`unchanged` would let it start by the former end, in the span for which somebody has just suspended it."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    end = bench.now + 5 * MINUTE
    suspend(bench, "drop", until=format_instant(end))
    longer = suspend(bench, "drop", until=format_instant(end + HOUR), request_id="longer")
    assert (longer["status"], longer["errors"][0]["field"]) == ("conflict", "until")
    assert suspend(bench, "drop", until=format_instant(end), request_id="same")["status"] == "unchanged"
    assert suspend(bench, "drop", request_id="without")["status"] == "unchanged"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("away", [False, True])
def test_given_an_end_then_the_schedule_is_resumed_by_itself(mode: str, away: bool) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    suspend(bench, mode, until=format_instant(bench.now + 10 * MINUTE + SECOND))
    bench.run(9 * MINUTE)
    assert bench.started == []
    if away:
        bench.away(2 * MINUTE)
    bench.run(3 * MINUTE)
    state = bench.state_of()
    assert state is not None
    assert (state.status, state.until, state.actor) == ("active", None, "tidegate")
    assert len(bench.started) >= (1 if mode != "hold" else 10)
    assert [row for row in bench.rows("T#") if row["kind"] == "U"] == []


@pytest.mark.parametrize("kind", ["resume", "delete"])
def test_given_somebody_who_is_quicker_then_nothing_is_resumed_at_the_end(kind: str) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("10h"))))
    suspend(bench, "hold", until=format_instant(bench.now + 10 * MINUTE))
    answer(bench, a_request(kind))
    before = bench.state_of()
    bench.run(HOUR)
    assert bench.state_of() == before
    assert [row for row in bench.rows("T#") if row["kind"] == "U"] == []


def test_given_an_end_that_has_passed_then_it_is_refused() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("10h"))))
    receipt = suspend(bench, "hold", until=format_instant(bench.now - 1))
    assert (receipt["status"], [error["field"] for error in receipt["errors"]]) == ("rejected", ["until"])


@pytest.mark.parametrize("effect", range(1, 10))
def test_given_a_crash_at_any_effect_of_the_end_then_the_successor_resumes(effect: int) -> None:
    bench = a_bench()
    pair = all_of(on_data("a"), on_data("b"), timeout="10m", on_timeout="abort")
    bench.request(an_apply(a_spec(trigger=pair)))
    bench.event(an_event("d1", "a"))
    bench.run(SECOND)
    suspend(bench, "freeze", until=format_instant(bench.now + 10 * MINUTE))
    bench.run(9 * MINUTE)
    bench.crash_after = bench.effects_outside + effect
    bench.run(2 * MINUTE)
    bench.event(an_event("d1", "b"))
    bench.run(SECOND)
    assert len(bench.started) == 1


def test_given_a_drop_whose_pages_were_cut_and_whose_end_has_passed_then_what_was_counted_before_it_is_gone() -> None:
    """Found in review: a successor resumed the schedule before it had read the rest of the suspend from its inbox."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=on_data("a", 3))))
    bench.run(3 * SECOND)
    for day in ("d1", "d2"):
        bench.event(an_event(day, "a"))
    bench.run(SECOND)
    assert len(bench.rows("E#")) == 1
    bench.lose(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "end_pending")
    bench.request(a_request("suspend", mode="drop", until=format_instant(bench.now + MINUTE)))
    bench.away(2 * MINUTE)
    bench.run(20 * SECOND)
    state = bench.state_of()
    assert state is not None
    assert state.status == "active"
    assert bench.rows("E#") == []
    bench.event(an_event("d3", "a"))
    bench.run(5 * SECOND)
    assert bench.started == []


def test_given_many_ends_at_once_behind_an_outage_then_the_inbox_is_not_read_for_each() -> None:
    """Found in review: each read all of it, when it is longest."""
    bench = a_bench()
    for number in range(20):
        bench.request(an_apply(a_spec(name=f"s-{number}", trigger=every("10h")), f"apply-{number}"))
    bench.run(3 * SECOND)
    until = format_instant(bench.now + MINUTE)
    for number in range(20):
        bench.request(a_request("suspend", f"s-{number}", f"suspend-{number}", until=until))
    bench.run(5 * SECOND)
    bench.asked.clear()
    bench.away(2 * MINUTE)
    bench.run(5 * SECOND)
    assert [row for row in bench.rows("T#") if row["kind"] == "U"] == []
    assert sum(isinstance(each, ReadRange) and each.range.low.startswith("I#") for each in bench.asked) < 20


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "hold"])
@pytest.mark.parametrize("answers_after", [0, 2])
def test_given_an_instant_right_at_the_end_then_it_is_no_part_of_the_suspension(mode: str, answers_after: int) -> None:
    """Found in review: a store that takes any time moved the resume behind it; suspended until 06:00, what runs at 06:00 did not."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("10m"))))
    end = (bench.now // (10 * MINUTE) + 2) * 10 * MINUTE
    suspend(bench, mode, until=format_instant(end))
    bench.store_answers_after = answers_after
    bench.run(end - bench.now + MINUTE)
    assert [int(str(row["nominal"])) for row in (*bench.rows("L#"), *bench.rows("J#"), *bench.rows("R#"))][:1] == [end]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "hold"])
@pytest.mark.parametrize("silent", [False, True], ids=["nobody is there", "a silent store"])
def test_given_an_end_that_passes_in_an_outage_then_what_is_missed_behind_it_is_made_up_for(
    mode: str, silent: bool
) -> None:
    """Found in review: the suspension grew to the take-over, and nothing was made, or told, of what was due behind its end."""
    bench = a_bench()
    spec = a_spec(trigger=every("10m"), overlap="allow", catchup={"mode": "all", "max_runs": 100})
    bench.request(an_apply(spec))
    end = (bench.now // (10 * MINUTE) + 4) * 10 * MINUTE
    suspend(bench, mode, until=format_instant(end))
    bench.run(end - 5 * MINUTE - bench.now)
    outage = tier.at_night(180, else_=30) * MINUTE
    if silent:
        bench.lose(lambda effect: isinstance(effect, Commit | Write | Read | ReadRange), times=10**7)
        bench.run(outage)
        bench.as_usual()
    else:
        bench.store.write([heartbeat_row(bench.holding.owner, "node", bench.now, {0: bench.now}, 1)])
        bench.away(outage)
    bench.run(4 * MINUTE)
    made = {int(str(row["nominal"])) for row in (*bench.rows("L#"), *bench.rows("J#"))}
    assert set(range(end, end + outage - 5 * MINUTE, 10 * MINUTE)) <= made
    assert min(made) == end


def held_behind_an_outage(falls_after: int | None) -> tuple[ActorHarness, int]:
    """A hold of five instants whose end comes three hours before anybody is there again; returns the end as well."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="allow", catchup={"mode": "all", "max_runs": 1_000})))
    end = (bench.now // (10 * MINUTE) + 2) * 10 * MINUTE
    bench.run(end - 5 * MINUTE - SECOND - bench.now)
    suspend(bench, "hold", until=format_instant(end))
    bench.store.write([heartbeat_row(bench.holding.owner, "node", bench.now, {0: bench.now}, 1)])
    if falls_after is not None:
        bench.crash_after = bench.effects_outside + falls_after
    bench.away(3 * HOUR)
    bench.run(20 * SECOND)
    return bench, end


def ends_of(bench: ActorHarness, begin: int) -> dict[int, str]:
    """What became of each instant from one on."""
    waiting = {int(str(row["nominal"])): "made" for row in (*bench.rows("J#"), *bench.rows("R#"))}
    ended = {nominal: what for what, _, nominal, _ in bench.ledger()}
    return {nominal: what for nominal, what in (waiting | ended).items() if nominal >= begin}


@pytest.mark.parametrize("falls_after", [None, *range(1, 30, tier.at_night(2, else_=6))])
def test_given_a_hold_that_ends_in_an_outage_then_what_is_missed_behind_it_is_made_up_for_as_without_it(
    falls_after: int | None,
) -> None:
    """Found by the simulation (seed 28005297): all of it was parked first, where more than 100 jobs of `allow` are one."""
    bench, end = held_behind_an_outage(falls_after)
    assert bench.crash_after is None
    made = ends_of(bench, end - 5 * MINUTE)
    assert set(made.values()) <= {"made", "launched"}
    assert sorted(made) == list(range(end - 5 * MINUTE, bench.now + 1, MINUTE))


def test_given_a_hold_that_ends_in_an_outage_then_it_ends_before_what_is_missed_behind_it_is_looked_at() -> None:
    bench = a_bench()
    waited: list[int] = []

    def at_the_end(effect: object) -> bool:
        if isinstance(effect, Commit) and effect.transaction.name == "control":
            waited.append(len(bench.rows("J#")))
        return False

    bench.lose(at_the_end)
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="allow", catchup={"mode": "all", "max_runs": 1_000})))
    suspend(bench, "hold", until=format_instant(bench.now + 3 * MINUTE))
    bench.away(3 * HOUR)
    bench.run(20 * SECOND)
    assert waited == [0, 0, 3]


@pytest.mark.parametrize("answers_after", [0, 2])
def test_given_an_instant_right_at_the_end_of_a_hold_then_it_runs_at_once(answers_after: int) -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("10m"))))
    end = (bench.now // (10 * MINUTE) + 2) * 10 * MINUTE
    suspend(bench, "hold", until=format_instant(end))
    bench.store_answers_after = answers_after
    bench.run(end - bench.now + SECOND)
    assert {int(str(row["nominal"])) for row in (*bench.rows("L#"), *bench.rows("J#"))} == {end - 10 * MINUTE, end}


def test_given_a_message_at_the_end_of_its_suspension_then_it_is_sent() -> None:
    bench = a_bench()
    bench.request(an_apply(a_recurring(trigger=every("10m"))))
    end = (bench.now // (10 * MINUTE) + 2) * 10 * MINUTE
    bench.run(SECOND)
    bench.request(a_request("suspend", "ping", until=format_instant(end)))
    bench.store_answers_after = 2
    bench.run(end - bench.now + MINUTE)
    assert [parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out")][-1:] == [end]


@pytest.mark.parametrize("silent", [False, True], ids=["nobody is there", "a silent store"])
@pytest.mark.parametrize("falls_after", [None, *range(1, 12, 2)])
def test_given_messages_behind_an_end_that_is_carried_out_late_then_each_is_sent(
    silent: bool, falls_after: int | None
) -> None:
    """Found by the simulation (seed 7000235): all that were late had one place, and the first of them alone was sent."""
    bench = a_bench()
    bench.request(an_apply(a_recurring(trigger=every("10s"))))
    bench.run(SECOND)
    end = (bench.now // (10 * SECOND) + 2) * 10 * SECOND
    bench.request(a_request("suspend", "ping", until=format_instant(end)))
    bench.run(end - bench.now - 5 * SECOND)
    if silent:
        bench.lose(lambda effect: isinstance(effect, Commit | Write | Read | ReadRange), times=10**7)
        bench.run(45 * SECOND)
        bench.as_usual()
    else:
        bench.away(45 * SECOND)
    if falls_after is not None:
        bench.crash_after = bench.effects_outside + falls_after
    bench.run(90 * SECOND)
    sent = {each.headers["tidegate-id"]: parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out")}
    looked_at = range(end - 2 * SECOND, bench.now - SECOND)
    due = list(range(end, looked_at.stop, 10 * SECOND))
    assert sorted(nominal for nominal in sent.values() if nominal in looked_at) == due


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("between", [(), ("update",), ("delete", "update")], ids=["", "updated", "made anew"])
def test_given_a_successor_whose_clock_is_behind_that_of_an_end_then_that_end_has_passed(
    mode: str, between: Sequence[str]
) -> None:
    """It was taken once more, and answered as the first one had been: the schedule was suspended for ever; so was one made anew."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    end = bench.now + 30 * SECOND
    suspend(bench, mode, until=format_instant(end))
    bench.run(end - bench.now + 50)
    bench.now -= 400
    bench.crash()
    bench.run(10)
    changed = an_apply(a_spec(trigger=every("1m"), priority="high"), "update")
    for each in between:
        bench.request(changed if each == "update" else a_request(each))
    receipt = suspend(bench, mode, until=format_instant(end), request_id="again")
    assert (receipt["status"], [error["field"] for error in receipt["errors"]]) == ("rejected", ["until"])
    bench.run(2 * MINUTE)
    state = bench.state_of()
    assert state is not None
    assert state.status == "active"
