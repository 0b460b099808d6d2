"""Event triggers from the log to the program, on a virtual clock (rows US-08, US-10, US-11, CD-069)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    Doc,
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
from tests.support.harness.effect_matchers import a_commit
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Commit, EndOffsets, LookedUp, Lookup, Read, ReadEndOffsets, Watch
from tidegate_core.shard.timer_rows import AT_LEAST
from tidegate_spark.run_context import read_context

GIGABYTE = 1_000_000_000
SIZED: Doc = {"type": "data_size", "dataset": "clicks", "bytes": "100GB", "at_least_every": "4h"}
SIZED_OR_RUN: Doc = {
    "type": "any_of",
    "triggers": [{"type": "data_size", "dataset": "clicks", "bytes": "100GB"}, on_run_of("up")],
    "at_least_every": "4h",
}


def a_bench(trigger: Doc, **more: Any) -> ActorHarness:
    bench = ActorHarness()
    bench.passes_over_routine = True
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger, **more)))
    bench.run(SECOND)
    return bench


def clicks(bench: ActorHarness, number: int, gigabytes: int) -> None:
    bench.event(an_event(f"h{number}", "clicks", bytes=gigabytes * GIGABYTE))
    bench.run(SECOND)


def told_to(bench: ActorHarness) -> dict[str, Any]:
    """What the first program is told."""
    context: dict[str, Any] = dict(bench.started[0].context)
    return context


def dispositions(bench: ActorHarness) -> list[str]:
    return [str(entry[0]) for entry in bench.ledger()]


def test_given_a_size_or_so_long_then_a_burst_runs_at_once_and_the_next_is_due_so_long_after_that_run() -> None:
    """Rows US-11, US-10, CD-069: 100 GB or every 4 h, where firing one resets the other."""
    bench = a_bench(SIZED)
    clicks(bench, 1, 60)
    bench.run(HOUR)
    clicks(bench, 2, 60)
    assert dispositions(bench) == ["launched"], "the burst, after an hour"
    clicks(bench, 3, 1)
    bench.run(4 * HOUR - MINUTE)
    assert dispositions(bench) == ["launched"], "four hours after the first reminder, not after the run"
    bench.run(2 * MINUTE)
    assert dispositions(bench) == ["launched"] * 2
    bench.run(4 * HOUR)
    assert sorted(dispositions(bench)) == ["launched", "launched", "skipped/nothing_new"]


@pytest.mark.parametrize("trigger", [SIZED, SIZED_OR_RUN])
def test_given_a_run_asked_for_by_hand_then_the_next_is_due_so_long_after_it(trigger: Doc) -> None:
    """SEMANTICS 5.6: `at_least_every` is re-armed by any run; what was counted stays for the next one."""
    bench = a_bench(trigger)
    clicks(bench, 1, 1)
    bench.run(3 * HOUR)
    bench.request(a_request("trigger"))
    bench.run(4 * HOUR - MINUTE)
    assert dispositions(bench) == ["launched"], "the one that was asked for"
    bench.run(2 * MINUTE)
    assert dispositions(bench) == ["launched"] * 2
    assert [len(read_context(dict(each.context)).manifest) for each in bench.started] == [0, 1]


def test_given_a_reminder_that_waits_when_a_run_is_asked_for_then_it_is_dealt_with() -> None:
    """It waits for what was appended before it and is not read, up to 5 minutes."""
    bench = a_bench(SIZED)
    bench.run(4 * HOUR - MINUTE)
    bench.hold_back(lambda effect: isinstance(effect, ReadEndOffsets), times=10_000)
    bench.run(2 * MINUTE)
    assert [row for row in bench.rows("T#") if str(row["ref"]).endswith(AT_LEAST)] != []
    bench.request(a_request("trigger"))
    bench.run(MINUTE)
    bench.release()
    bench.run(10 * MINUTE)
    assert dispositions(bench) == ["launched"]


def test_given_allow_empty_then_it_runs_with_an_empty_manifest() -> None:
    bench = a_bench({**SIZED, "allow_empty": True})
    bench.run(8 * HOUR + MINUTE)
    assert dispositions(bench) == ["launched"] * 2
    assert all(launch.context["manifest"] == [] for launch in bench.started)


NIGHT: Doc = {"type": "time_window", "opens": "23:00", "closes": "03:00"}
"""A bench begins at 02:13:20: closed from its first hour on until it has run for twenty hours and three quarters."""


@pytest.mark.parametrize("crashes", [False, True])
def test_given_an_empty_job_that_waits_then_reminders_make_no_further_ones(*, crashes: bool) -> None:
    """Each made one: as the window opened five programs ran one behind the other, for nothing."""
    bench = a_bench({**SIZED, "allow_empty": True}, constraints=[NIGHT])
    bench.run(9 * HOUR)
    if crashes:
        bench.crash()
    bench.run(11 * HOUR)
    assert len(bench.rows("J#")) == 1
    bench.run(2 * HOUR)
    assert dispositions(bench) == ["launched"]
    bench.run(2 * HOUR + 30 * MINUTE)
    assert dispositions(bench) == ["launched"] * 2, "the next one comes at its pace"


def test_given_a_program_that_takes_longer_than_its_reminders_are_apart_then_one_job_waits_behind_it() -> None:
    bench = a_bench({**SIZED, "allow_empty": True})
    bench.behaves = lambda order: Behaviour(runs_for=13 * HOUR)
    bench.run(16 * HOUR + MINUTE)
    assert len(bench.rows("J#")) == 2
    bench.run(3 * HOUR)
    assert len(bench.started) == 2


@pytest.mark.parametrize("how", ["suspend", "update"])
def test_given_an_empty_job_that_a_request_has_ended_then_the_next_reminder_makes_one(how: str) -> None:
    trigger = {**SIZED, "allow_empty": True}
    bench = a_bench(trigger, constraints=[NIGHT])
    bench.run(5 * HOUR)
    if how == "update":
        bench.request(an_apply(a_spec(trigger=trigger, constraints=[NIGHT], priority="high"), "again"))
    else:
        bench.request(a_request("suspend"))
        bench.request(a_request("resume"))
    assert bench.rows("J#") == []
    bench.run(4 * HOUR + MINUTE)
    assert len(bench.rows("J#")) == 1


def test_given_an_empty_job_that_waits_then_data_that_are_enough_have_a_job_of_their_own() -> None:
    bench = a_bench({**SIZED, "allow_empty": True}, constraints=[NIGHT])
    bench.run(5 * HOUR)
    clicks(bench, 1, 100)
    assert len(bench.rows("J#")) == 2
    bench.run(15 * HOUR + 50 * MINUTE)
    assert [len(launch.context["manifest"]) for launch in bench.started] == [0, 1]  # type: ignore[arg-type]


def test_given_a_reminder_that_is_looked_at_again_while_it_waits_then_it_is_told_of_once() -> None:
    """It waits for what was appended and is not read, up to 5 minutes; meanwhile its row is read again."""
    bench = a_bench(SIZED)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "cursor", times=10_000)
    bench.event(an_event("h1", "elsewhere"))
    bench.run(4 * HOUR + 20 * MINUTE)
    assert dispositions(bench) == ["skipped/nothing_new"]


@pytest.mark.parametrize("how", ["suspend", "delete"])
def test_given_a_schedule_that_was_stopped_then_nothing_reminds_of_it(how: str) -> None:
    bench = a_bench({**SIZED, "allow_empty": True})
    bench.request(a_request(how))
    bench.run(9 * HOUR)
    assert dispositions(bench) == []
    assert [row for row in bench.rows("T#") if row["kind"] in {"S", "E"}] == []


@pytest.mark.parametrize("how", ["update", "resume"])
def test_given_a_job_by_a_clock_that_was_ahead_then_the_first_reminder_of_what_begins_anew_is_not_left_out(
    how: str,
) -> None:
    """A hand-over to a node whose clock is behind, and a request right behind it: the reminder passed for dealt with."""
    bench = a_bench({**SIZED, "allow_empty": True})
    bench.request(a_request("trigger"))
    bench.crash()
    bench.now -= 400
    if how == "update":
        bench.request(an_apply(a_spec(trigger={**SIZED, "allow_empty": True}, priority="high"), "again"))
    else:
        bench.request(a_request("suspend"))
        bench.request(a_request("resume"))
    before = dispositions(bench)
    bench.run(4 * HOUR + MINUTE)
    assert dispositions(bench) == [*before, "launched"]


def test_given_downtime_then_a_reminder_takes_in_what_was_appended_before_it() -> None:
    bench = a_bench(SIZED)
    clicks(bench, 1, 1)
    bench.event(an_event("h2", "clicks", bytes=GIGABYTE))
    bench.away(5 * HOUR)
    bench.run(MINUTE)
    assert dispositions(bench) == ["launched"]
    assert len(told_to(bench)["manifest"]) == 2


def test_given_a_number_beyond_any_float_in_an_event_then_it_is_a_dead_letter_and_the_next_event_counts() -> None:
    """One stopped the ingest for good once: what compares it must never meet it (`test_limits.py` has the bound)."""
    bench = a_bench({"type": "event", "name": "custom.truck", "where": {"field": "/data/pallets", "at_least": 10}})
    for pallets in (10**400, 10**307):
        bench.event({"type": "custom.truck", "namespace": "flights", "data": {"pallets": pallets}})
    bench.run(SECOND)
    assert len(bench.on("tidegate.events.dlq")) == 1
    assert (dispositions(bench), bench.rows("I#")) == (["launched"], [])


def test_given_a_start_that_is_waited_for_then_it_fires_while_the_program_goes_on() -> None:
    bench = a_bench(on_run_of("up", "started"))
    bench.request(an_apply(a_spec("after", on_run_of("up"))))
    bench.request(an_apply(a_spec("both", {**on_run_of("up", "started", "succeeded"), "times": 2})))
    bench.behaves = lambda order: Behaviour(runs_for=10 * MINUTE if "flights/up" in str(order.context) else SECOND)
    bench.request(an_apply(a_spec("up", every("20m"))))
    bench.run(8 * MINUTE)
    assert dispositions(bench) == ["launched"]
    bench.run(10 * MINUTE)
    assert sorted(name for _, name, *_ in bench.ledger()) == ["after", "nightly", "up"], (
        "a run counts once, in two states"
    )


def test_given_a_program_that_ends_before_anybody_looks_then_its_start_is_told_with_its_end() -> None:
    bench = a_bench(on_run_of("up", "started"))
    bench.behaves = lambda order: Behaviour(starts_after=1, runs_for=1)
    bench.request(an_apply(a_spec("up", every("20m"))))
    bench.run(21 * MINUTE)
    assert sorted(name for _, name, *_ in bench.ledger())[:2] == ["nightly", "up"]


def test_given_a_run_that_is_lost_then_it_is_told_before_its_end_is_known() -> None:
    bench = a_bench(on_run_of("up", "lost"))
    bench.behaves = lambda order: Behaviour(runs_for=30 * MINUTE if "flights/up" in str(order.context) else SECOND)
    bench.request(an_apply(a_spec("up", every("20m"))))
    bench.run(7 * MINUTE)
    bench.answer_with(lambda effect: isinstance(effect, Lookup), LookedUp("unknown"), times=1_000)
    bench.crash()
    bench.run(11 * MINUTE)
    assert [entry[1] for entry in bench.ledger()] == ["nightly"]


def test_given_a_run_that_is_lost_comes_back_and_is_lost_again_then_both_are_told() -> None:
    """Seed 38024439: the second one lay in the inbox under the key of the first, which its reader knew as counted and gone, until another
    node took the shard over.
    """
    up = next(
        name for name in "abcdefgh" if schedule_shard("flights", name, 4) != schedule_shard("flights", "nightly", 4)
    )
    bench = a_bench(on_run_of(up, "lost"))
    assert bench.holding.shards == 4
    bench.behaves = lambda order: Behaviour(runs_for=5 * HOUR if f"flights/{up}" in str(order.context) else SECOND)
    bench.request(an_apply(a_spec(up, every("20m"))))
    for number in (1, 2):
        bench.answer_with(lambda effect: isinstance(effect, Watch), LookedUp("unknown"))
        _run_until(bench, "running")
        bench.answer_with(lambda effect: isinstance(effect, Lookup), LookedUp("unknown"), times=1_000)
        _run_until(bench, "lost")
        bench.run(MINUTE)
        bench.end_scripts()
        assert ([entry[1] for entry in bench.ledger()], bench.rows("I#")) == (["nightly"] * number, [])


def _run_until(bench: ActorHarness, state: str) -> None:
    for _ in range(2 * HOUR // SECOND):
        bench.run(SECOND)
        if [row["state"] for row in bench.rows("R#") if "ended_at" not in row] == [state]:
            return
    raise AssertionError(f"the run is never {state}")


def test_given_a_composite_with_at_least_every_then_time_is_one_of_its_alternatives() -> None:
    """Rows US-11, CD-069: 100 GB, or a run of another schedule, or 4 h."""
    sized = {"type": "data_size", "dataset": "clicks", "bytes": "100GB"}
    bench = a_bench({"type": "any_of", "triggers": [sized, on_run_of("up")], "at_least_every": "4h"})
    clicks(bench, 1, 60)
    bench.run(4 * HOUR + MINUTE)
    assert dispositions(bench) == ["launched"]
    assert told_to(bench)["missing"] == ["40GB of 100GB of clicks", "a run of up that succeeded"]
    clicks(bench, 2, 100)
    assert dispositions(bench) == ["launched"] * 2


def test_given_custom_events_then_they_count_by_what_they_say_and_the_program_is_told() -> None:
    where = {"field": "/data/pallets", "at_least": 10}
    bench = a_bench({"type": "event", "name": "custom.truck", "count": 2, "where": where})
    for number, pallets in enumerate((12, 3, 10)):
        event = {
            "type": "custom.truck",
            "namespace": "flights",
            "subject": f"gate-{number}",
            "data": {"pallets": pallets},
        }
        bench.event(event)
    bench.run(SECOND)
    assert dispositions(bench) == ["launched"]
    told = told_to(bench)["events"]
    assert [dict(each) for each in read_context(told_to(bench)).events] == told
    assert [(each["subject"], each["data"]) for each in told] == [
        ("gate-0", {"pallets": 12}),
        ("gate-2", {"pallets": 10}),
    ]


def test_given_a_partial_fire_then_the_program_is_told_what_is_missing() -> None:
    """Row US-08: join when all inputs are new, else after waiting with what is there."""
    bench = a_bench(all_of(on_data("a"), on_data("b"), timeout="1h", on_timeout="partial"))
    bench.event(an_event("d1", "a"))
    bench.run(HOUR + MINUTE)
    assert dispositions(bench) == ["launched"]
    context = told_to(bench)
    assert (context["missing"], len(context["manifest"])) == (["1 of 1 data partitions of b"], 1)


def test_given_what_was_missing_and_came_before_the_start_then_the_program_is_told_that_nothing_is() -> None:
    """The job absorbs until it is sealed: what the manifest holds is not missing."""
    window = [{"type": "delay", "after": "1h"}]
    bench = a_bench(all_of(*map(on_data, "abc"), timeout="1h", on_timeout="partial"), constraints=window)
    bench.event(an_event("d1", "a"))
    bench.run(HOUR + MINUTE)
    bench.event(an_event("d1", "b"))
    bench.run(2 * HOUR)
    assert told_to(bench)["missing"] == ["1 of 1 data partitions of c"]
    assert len(told_to(bench)["manifest"]) == 2


def test_given_all_that_was_missing_came_before_the_start_then_nothing_is_missing() -> None:
    bench = a_bench({**on_data("a", 2), "max_wait": "1h"}, constraints=[{"type": "delay", "after": "1h"}])
    bench.event(an_event("d1", "a"))
    bench.run(HOUR + MINUTE)
    bench.event(an_event("d2", "a"))
    bench.run(2 * HOUR)
    assert (told_to(bench)["missing"], len(told_to(bench)["manifest"])) == ([], 2)


def test_given_downtime_over_a_deadline_then_what_was_appended_in_time_still_counts() -> None:
    """A quiet period that only downtime made is none: the events are there (SEMANTICS 6.2)."""
    bench = a_bench({**on_data("a"), "settle": "1m", "max_settle": "1h"})
    bench.event(an_event("d1", "a"))
    bench.run(SECOND)
    bench.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "I#", times=10_000)
    for number in range(2, 6):
        bench.run(40 * SECOND)
        bench.event(an_event(f"d{number}", "a"))
    bench.as_usual()
    bench.away(10 * MINUTE)
    bench.run(2 * MINUTE)
    assert dispositions(bench) == ["launched"]
    assert len(told_to(bench)["manifest"]) == 5


def test_given_ends_of_the_log_that_lack_a_topic_partition_then_what_came_before_the_request_does_not_count() -> None:
    """Of a topic that was made anew, or has grown, the brokers may tell other ends than those that are read here."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), EndOffsets({}))
    versions = {keys.index_version(shard) for shard in range(keys.INDEX_SHARDS)}
    bench.hold_back(lambda effect: isinstance(effect, Read) and set(effect.keys) <= versions)
    bench.event(an_event("2013-01-01"))
    bench.run(5 * SECOND)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    bench.release()
    bench.run(SECOND)
    assert bench.started == []
    bench.event(an_event("2013-01-02"))
    bench.run(SECOND)
    assert len(bench.started) == 1


@pytest.mark.parametrize("falls", [False, True], ids=["", "its owner falls amid them"])
def test_given_a_run_that_fifty_leaves_hear_then_each_of_them_has_its_job(falls: bool) -> None:
    """Found in review: their evidence and jobs were more than one transaction holds; the end of the run was set aside for good."""
    bench = ActorHarness()
    bench.run(SECOND)
    each = {"type": "any_of", "or_mode": "each", "triggers": [on_run_of("up")] * 50}
    bench.request(an_apply(a_spec("down", each, overlap="allow")))
    bench.request(an_apply(a_spec("up", every("10h"))))
    bench.run(SECOND)
    if falls:
        bench.crash_at(a_commit("count"))
    bench.request(a_request("trigger", "up"))
    bench.run(MINUTE)
    files = [order.file for order in bench.started]
    assert (files.count("/jobs/up.py"), files.count("/jobs/down.py")) == (1, 50)
    assert (bench.rows("I#"), bench.notices("decision_failed")) == ([], [])
