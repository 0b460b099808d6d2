"""Records of recurring messages: far ones are brought near in time, and go once nothing needs them (DESIGN 5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_cancel, a_recurring, a_request, a_send, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit, a_produce
from tests.support.harness.recurring_bench import (
    AWAY,
    a_control,
    nominals,
    records,
    shown,
    tally,
    to_out,
)
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.messages.wire.message_record import WIRE_PATIENCE_MS
from tidegate_core.rows.effects import Committed, Drained
from tidegate_core.rows.store_operations import Delete, Item, Key

DAY = 24 * HOUR
PING = b'"ping"'


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def test_given_a_monthly_schedule_then_it_is_brought_near_in_its_time_and_moved_out_again(bench: ActorHarness) -> None:
    monthly = {"type": "cron", "expression": "0 0 1 * *"}
    bench.request(an_apply(a_recurring(trigger=monthly)))
    for due in shown(bench, "apply-ping"):
        assert {kind: len(found) for kind, found in records(bench).items()} == {"C": 0, "CF": 1, "D": 1}
        bench.away(due - bench.now - 2 * MINUTE)
        bench.run(2 * MINUTE - SECOND)
        assert {kind: len(found) for kind, found in records(bench).items()} == {"C": 1, "CF": 0, "D": 0}
        bench.run(MINUTE)
        assert (bench.on("out")[-1].at, nominals(bench)[-1]) == (due, due)
    assert len(bench.on("out")) == 3


@pytest.mark.parametrize("down", [2 * DAY, 35 * DAY])
def test_given_a_far_schedule_whose_time_passes_while_nobody_is_here_then_it_is_delivered(
    bench: ActorHarness, down: int
) -> None:
    due = bench.now + DAY
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(due)})))
    bench.away(down)
    bench.run(MINUTE)
    assert nominals(bench) == [due]


@pytest.mark.parametrize("kind", ["suspend", "delete"])
@pytest.mark.parametrize("ahead", [DAY, 70 * MINUTE])
def test_given_a_stop_of_a_far_schedule_then_nothing_is_sent_and_nothing_is_left(
    bench: ActorHarness, kind: str, ahead: int
) -> None:
    at = {"type": "at", "instant": format_instant(bench.now + ahead)}
    bench.request(an_apply(a_recurring(trigger=at)))
    assert len(records(bench)["CF"]) == 1
    bench.request(a_request(kind, "ping"))
    assert records(bench) == {"C": [], "CF": [], "D": []}
    bench.away(ahead - MINUTE)
    bench.run(2 * MINUTE)
    assert bench.on("out") == []


def test_given_an_update_of_a_far_schedule_then_only_its_new_time_counts(bench: ActorHarness) -> None:
    begun = bench.now
    for number, ahead in enumerate((DAY, 2 * DAY, 30 * MINUTE, 2 * HOUR)):
        at = {"type": "at", "instant": format_instant(begun + ahead)}
        bench.request(an_apply(a_recurring(trigger=at), f"apply-{number}"))
        assert bench.status_of(f"apply-{number}") == "accepted"
    for ahead in (30 * MINUTE, 2 * HOUR, DAY, 2 * DAY):
        bench.away(begun + ahead - MINUTE - bench.now)
        bench.run(2 * MINUTE)
    assert nominals(bench) == [begun + 2 * HOUR]


def test_given_a_far_record_that_is_written_late_then_its_time_is_not_passed(bench: ActorHarness) -> None:
    """Between the decision and its commit the window was extended past the fire's slot: nobody would load the row."""
    bench = ActorHarness(recurring_near_ms=61 * SECOND)
    bench.run(SECOND)
    due = bench.now + 70 * SECOND
    bench.hold_back(a_control)
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(due)})))
    bench.run(50 * SECOND)
    bench.release()
    bench.run(MINUTE)
    assert nominals(bench) == [due]


def test_given_a_rare_schedule_then_a_crash_right_after_its_fire_loses_nothing(bench: ActorHarness) -> None:
    """It may be moved out only once a checkpoint has passed what was sent."""
    bench.request(an_apply(a_recurring(trigger=every("2h"))))
    due = shown(bench, "apply-ping")[0]
    bench.away(due - bench.now - MINUTE)
    bench.answer_with(to_out, AWAY, times=100_000)
    bench.run(3 * MINUTE)
    assert len(records(bench)["C"]) == 1
    bench.as_usual()
    bench.crash()
    bench.run(MINUTE)
    assert nominals(bench) == [due]
    assert len(records(bench)["CF"]) == 1


def test_given_a_schedule_that_has_run_its_course_then_it_is_not_read_at_recoveries(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(bench.now + SECOND)})))
    bench.run(MINUTE)
    assert {kind: len(found) for kind, found in records(bench).items()} == {"C": 0, "CF": 1, "D": 0}


def test_given_schedules_that_have_sent_all_then_nothing_of_them_is_kept_in_memory() -> None:
    """1.4 KB of each, for as long as its shard was held."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.hold_back(a_produce("out"))  # One is acknowledged behind the next one of its schedule.
    bench.request(an_apply(a_recurring("often", trigger=every("1s"))))
    for number in range(5):
        at = {"type": "at", "instant": format_instant(bench.now + SECOND)}
        bench.request(an_apply(a_recurring(f"once-{number}", trigger=at)))
        bench.run(SECOND)
    source = bench.actor.planes[0].recurring
    assert len(source.open_rows("flights/often")) == 2
    bench.release()
    bench.run(SECOND // 2)
    assert source._open == {}
    bench.request(a_request("delete", "often"))
    bench.run(MINUTE)
    assert (len(bench.on("out")), source._near) == (11, {})


def test_given_a_suspended_schedule_then_its_record_goes_once_checkpoints_have_told(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.run(5 * SECOND)
    bench.request(a_request("suspend", "ping"))
    assert len(records(bench)["C"]) == 1
    bench.run(MINUTE)
    assert records(bench) == {"C": [], "CF": [], "D": []}


def test_given_records_that_the_store_does_not_give_at_once_then_no_checkpoint_passes_them(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.run(5 * SECOND)
    bench.lose(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "C#", times=30)
    bench.request(a_send("m-1", after="5s"))
    bench.crash()
    bench.run(30 * SECOND)
    reached = set(nominals(bench))
    assert (
        set(range(min(reached), bench.now, SECOND))
        - {parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out")}
        == set()
    )


def test_given_a_hand_over_while_a_far_schedule_is_loaded_late_then_nothing_is_sent_again() -> None:
    """What was summoned before places that were sent already is brought near, although the shard writer takes no more work."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    due = bench.now + 65 * MINUTE
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(due)})))
    assert len(records(bench)["CF"]) == 1
    bench.away(due - bench.now - 100 * SECOND)
    bench.run(40 * SECOND)
    bench.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "D#", times=1_000)
    bench.run(55 * SECOND)
    bench.request(a_send("m-1", after="10s", topic="other"))
    bench.run(15 * SECOND)
    assert len(bench.on("other")) == 1
    bench.drain()
    bench.as_usual()
    bench.run(2 * SECOND)
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("other")) == 1
    assert nominals(bench) == [due]


def test_given_a_hand_over_while_the_lease_is_moved_to_other_controls_then_the_owner_does_not_take_itself_for_fenced() -> (
    None
):
    """What is brought near beside the shard writer was decided under the controls of before, which the lease does not carry any more."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    due = bench.now + 65 * MINUTE
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(due)})))
    bench.away(due - bench.now - 100 * SECOND)
    bench.run(40 * SECOND)
    bench.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "D#", times=1_000)
    bench.run(55 * SECOND)
    bench.request(a_send("m-1", after="10s", topic="other"))
    bench.run(15 * SECOND)
    bench.lose_answer_of(a_commit("controls"))
    bench.request({"id": "c-1", "type": "control.suspend", "scope": "namespace", "namespace": "elsewhere"})
    bench.drain()
    bench.as_usual()
    bench.lose_answer_of(a_commit("controls"), times=6)
    bench.run(5 * SECOND)
    assert bench.notices("fenced") == []
    assert len(bench.all_asked(Drained)) == 1
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("other")) == 1
    assert nominals(bench) == [due]


def test_given_a_move_of_a_record_that_arrives_a_second_time_then_it_is_refused(bench: ActorHarness) -> None:
    """The record has come back meanwhile, with the very revision that the first send consumed."""
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.run(5 * SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.run(MINUTE)
    assert records(bench)["C"] == []
    for number in range(4):
        bench.request(a_request("resume", "ping", f"resume-{number}"))
        bench.request(an_apply(a_recurring(trigger=every("2s"), payload=number), f"update-{number}"))
        for late in bench.commits("recurring"):
            # The store remembers a token for ten minutes only.
            assert not isinstance(bench.transact(replace(late, token=f"{late.token}-{bench.now}")), Committed)
        bench.request(a_request("suspend", "ping", f"suspend-{number}"))
        bench.run(MINUTE * (number % 2))
    assert len(bench.commits("recurring")) >= 3


def test_given_a_far_record_that_went_and_came_then_late_repeats_of_its_moves_are_refused(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring(trigger=every("2h"))))
    for _ in range(3):
        bench.away(2 * HOUR - 3 * MINUTE)
        bench.run(2 * MINUTE)
        for late in bench.commits("recurring"):
            # The store remembers a token for ten minutes only.
            assert not isinstance(bench.transact(replace(late, token=f"{late.token}-{bench.now}")), Committed)
        bench.run(MINUTE)
    assert len(bench.commits("recurring")) >= 3


def position(bench: ActorHarness) -> tuple[int, str]:
    (progress,) = bench.rows("PROGRESS")
    return int(str(progress["fired_slot"])), str(progress["fired_id"])


def test_given_a_summons_that_somebody_removed_then_putting_it_back_does_not_move_the_position_back() -> None:
    """Found in review: it was put back at its own time, behind the position, which went back to it; what was sent since came again."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("24h"))))
    bench.run(30 * SECOND)
    (row,) = records(bench)["D"]
    due = int(str(row["slot"]))
    bench.passes_over_routine = True
    bench.run(due - bench.now - 90 * SECOND)
    bench.passes_over_routine = False
    bench.store.write([Delete(Key(str(row["pk"]), str(row["sk"])))])
    bench.request(a_send("far", after="5h"))
    number = 0
    while not bench.notices("recurring_row_missing"):
        number += 1
        if bench.now < due + MINUTE:
            bench.request(a_send(f"m-{number}", after="1s"))
        bench.run(5 * SECOND)
    before = position(bench)
    sent = len(bench.on("out"))
    assert before[0] > due
    bench.hold_back(a_produce("out"))
    bench.request(a_send("on the wire", after="1s"))
    bench.request(a_cancel(message_id="far"))
    bench.run(10 * SECOND)
    assert position(bench) >= before
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("out")) <= sent + 3


def left_out(number: int, blanks: str) -> list[Doc]:
    """Exclusions of instants that do not come, each as long as an expression may be."""
    return [{"type": "cron", "expression": f"5{blanks}5 1 1 *"}] * number


NO_BREAKS = "\u00a0" * 247
SMALL = every("1s", exclude=left_out(1, " "))
LARGE = [
    pytest.param(every("1s", exclude=left_out(50, NO_BREAKS)), 300_000, id="large"),
    pytest.param(
        {
            "type": "times",
            "specs": [every("1s", exclude=left_out(50, NO_BREAKS))] * 2
            + [every("1s", exclude=left_out(13, NO_BREAKS))],
        },
        380_000,
        id="the largest",
    ),
]


def stopped_again_and_again(trigger: Doc) -> ActorHarness:
    """Each span sends something, or has it due while the broker is away, and no checkpoint tells of it."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.lose(a_commit("checkpoint"), times=100_000)
    bench.request(an_apply(a_recurring(trigger=trigger)))
    assert bench.status_of("apply-ping") == "accepted"
    for number in range(10):
        if number == 5:
            bench.answer_with(to_out, AWAY, times=100_000)
        bench.run(2 * SECOND + 150)
        bench.request(a_request("suspend", "ping", f"suspend-{number}"))
        bench.run(WIRE_PATIENCE_MS + SECOND)
        bench.request(a_request("resume", "ping", f"resume-{number}"))
        assert {bench.status_of(f"{kind}-{number}") for kind in ("suspend", "resume")} == {"accepted"}
    return bench


@pytest.mark.parametrize(("trigger", "most"), LARGE)
def test_given_stops_of_a_large_schedule_faster_than_checkpoints_then_each_is_taken_and_none_of_its_messages_is_lost(
    trigger: Doc, most: int
) -> None:
    """Its record would not fit the store, and each further resume was rejected."""
    bench, small = (stopped_again_and_again(each) for each in (trigger, SMALL))
    assert max(size_of(record) for record in records(bench)["C"]) <= most
    for each in (bench, small):
        each.as_usual()
        each.run(MINUTE)
        each.drain()
    assert nominals(bench) == nominals(small)
    assert len(nominals(bench)) > 60
    for counted in ("delivered", "cancelled"):
        assert tally(bench, counted) == tally(small, counted) > 0
    assert tally(bench, "delivered") == len(nominals(bench))


def test_given_a_large_schedule_whose_record_forgets_and_a_crash_then_nothing_of_what_it_forgot_is_sent_again() -> None:
    trigger = every("1s", exclude=left_out(50, NO_BREAKS))
    bench = stopped_again_and_again(trigger)
    ended, resumed = nominals(bench), bench.now
    bench.as_usual()
    bench.crash()
    bench.run(10 * SECOND)
    assert nominals(bench)[len(ended) :] == list(range(resumed // SECOND * SECOND + SECOND, bench.now + 1, SECOND))


def size_of(record: Item) -> int:
    texts = record["intervals"]
    assert isinstance(texts, list)
    return sum(len(str(text)) for text in texts)
