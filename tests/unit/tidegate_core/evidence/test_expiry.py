"""A composite's time-out waits for events that could still prevent it, and not for ever (SEMANTICS 6.2, 6.6; DESIGN 8)."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    EVENTS,
    EVENTS_ID,
    MINUTE,
    SECOND,
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
from tests.support.harness.two_owners import ConcurrentOwner
from tidegate_core.engine.membership_lease import CLOCK_OFF_MS_MAX
from tidegate_core.evidence.watermark import GAPS_AFTER_MS, PATIENCE_MS
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Commit, FindGaps, Read, ReadEndOffsets, ReadRange, Refused, Unavailable, Write
from tidegate_core.rows.store_operations import Item, Put

NAME = next(name for name in (f"s-{number}" for number in range(99)) if schedule_shard("flights", name, 4) % 2 == 0)
BOTH = all_of(on_data("a"), on_data("b"), correlate="data_partition", timeout="30s")


@pytest.fixture
def bench() -> ActorHarness:
    """Holds one of two topic partitions; the other one's events are read by somebody else, or by nobody."""
    made = ActorHarness(topic_partitions=2)
    made.run(SECOND)
    made.request(an_apply(a_spec(NAME, BOTH)))
    made.run(SECOND)
    made.event(an_event("d1", "a"), 0)
    return made


def read_by_the_other(bench: ActorHarness, next_offset: int) -> None:
    key = keys.topic_position("brokers", EVENTS_ID, 1)
    item: Item = {
        "pk": key.pk,
        "sk": key.sk,
        "epoch": 1,
        "map": 1,
        "next": next_offset,
        "page": "-",
        "last_append_time": 0,
    }
    bench.store.write([Put(key, item)])


def dispositions(bench: ActorHarness) -> list[str]:
    return [entry[0] for entry in bench.ledger()]


def test_given_everything_read_then_the_time_out_comes_at_its_time(bench: ActorHarness) -> None:
    bench.run(29 * SECOND)
    assert dispositions(bench) == []
    bench.run(2 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]


def test_given_unread_events_then_the_time_out_waits_for_them_and_no_longer(bench: ActorHarness) -> None:
    bench.event(an_event("d9", "b"), 1)
    bench.run(60 * SECOND)
    assert dispositions(bench) == []
    read_by_the_other(bench, 1)
    bench.run(2 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]


def test_given_events_that_nobody_reads_then_the_decision_names_what_it_did_not_wait_for(bench: ActorHarness) -> None:
    bench.event(an_event("d9", "b"), 1)
    bench.run(30 * SECOND + PATIENCE_MS - SECOND)
    assert dispositions(bench) == []
    bench.run(5 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]
    (row,) = bench.rows("L#")
    assert "topic partitions 1 of the events topic" in str(row["detail"])


@pytest.mark.parametrize("silent", [True, False], ids=["a silent store", "a process that stands still"])
def test_given_a_time_out_in_an_outage_then_what_came_before_it_is_still_waited_for(
    bench: ActorHarness, silent: bool
) -> None:
    """Found in review: the wait was over with the outage, in which nobody had read either; a pair that was complete in time expired."""
    bench.event(an_event("d1", "b"), 1)
    bench.run(28 * SECOND)
    if silent:
        bench.lose(lambda effect: isinstance(effect, Commit | Write | Read | ReadRange), times=10_000_000)
        bench.run(2 * PATIENCE_MS)
        bench.as_usual()
    else:
        bench.run(5 * SECOND)
        bench.now += 2 * PATIENCE_MS
    bench.run(MINUTE)
    assert dispositions(bench) == []
    bench.run(PATIENCE_MS)
    assert dispositions(bench) == ["expired/trigger_timeout"]


def test_given_only_the_mark_of_a_transaction_at_the_end_then_the_time_out_does_not_wait_for_it(
    bench: ActorHarness,
) -> None:
    """Whoever writes a topic in transactions leaves a mark behind each, which is no record and is never read (KIP-98)."""
    bench.event(an_event("d9", "b"), 1)
    bench.mark(EVENTS, 1)
    read_by_the_other(bench, 1)
    bench.run(30 * SECOND + GAPS_AFTER_MS + SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]
    (row,) = bench.rows("L#")
    assert "did not wait" not in str(row["detail"])


def test_given_a_record_behind_the_mark_then_the_time_out_waits_for_it(bench: ActorHarness) -> None:
    bench.mark(EVENTS, 1)
    bench.event(an_event("d9", "b"), 1)
    bench.run(60 * SECOND)
    assert dispositions(bench) == []
    read_by_the_other(bench, 2)
    bench.run(2 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]


def test_given_brokers_that_do_not_tell_whether_it_is_a_mark_then_the_time_out_waits_until_they_do(
    bench: ActorHarness,
) -> None:
    bench.mark(EVENTS, 1)
    bench.answer_with(lambda effect: isinstance(effect, FindGaps), Unavailable("broker"), times=20)
    bench.run(38 * SECOND)
    assert dispositions(bench) == []
    bench.run(5 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]


def test_given_the_missing_event_in_time_then_there_is_no_time_out(bench: ActorHarness) -> None:
    bench.run(29 * SECOND)
    bench.event(an_event("d1", "b"), 0)
    bench.run(60 * SECOND)
    assert dispositions(bench) == ["launched"]


def test_given_a_clock_ahead_of_the_brokers_then_what_is_in_time_by_the_brokers_still_counts(
    bench: ActorHarness,
) -> None:
    """The simulation, seed 100: the node's clock passes the deadline up to 500 ms before the broker's does."""
    bench.ahead_of_broker = 400
    bench.run(30_200)
    assert dispositions(bench) == []
    bench.event(an_event("d1", "b"), 0)
    bench.run(60 * SECOND)
    assert dispositions(bench) == ["launched"]


@pytest.mark.parametrize("before_the_deadline", [100, 300, 600])
def test_given_an_upstream_run_that_another_node_has_end_in_time_by_its_own_clock_then_it_counts(
    before_the_deadline: int,
) -> None:
    """Read again: the clocks of two nodes are up to 1 s apart, and it was looked for half a second behind the deadline only."""
    names = [f"s-{number}" for number in range(99)]
    down, up = (next(name for name in names if schedule_shard("flights", name, 2) == shard) for shard in range(2))
    ahead = ActorHarness(shards=2, topic_partitions=2)
    behind = ConcurrentOwner(ahead, "node-2", None, topic_partition=1, shards=2, topic_partitions=2)
    for bench, off in ((ahead, CLOCK_OFF_MS_MAX), (behind, -CLOCK_OFF_MS_MAX)):
        bench.now += off
        bench.ahead_of_broker = off

    def run(milliseconds: int) -> None:
        for _ in range(milliseconds // 20):
            ahead.run(20)
            behind.run(20)

    run(SECOND)
    ahead.request(an_apply(a_spec(down, all_of(on_data("a"), on_run_of(up), timeout="30s"))), 0)
    behind.request(an_apply(a_spec(up, on_data("u"))), 1)
    run(SECOND)
    ahead.event(an_event("d1", "a"), 0)
    deadline = ahead.now - ahead.ahead_of_broker + 30 * SECOND
    run(30 * SECOND - before_the_deadline)
    behind.event(an_event("u1", "u"), 1)
    run(3 * SECOND)
    assert behind.marks[-1].at < deadline
    assert [entry[:2] for entry in ahead.ledger()] == [("launched", down), ("launched", up)]


# -- while nobody was here -------------------------------------------------------------------------------------------------------


def test_given_a_backlog_of_pairs_that_were_complete_in_time_then_none_of_them_times_out() -> None:
    """Counted behind its own time-out, the rest of a page would be aborted, and its partners as well."""
    days = [f"d{number:03d}" for number in range(60)]
    bench = ActorHarness(topic_partitions=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(NAME, all_of(on_data("a"), on_data("b"), correlate="data_partition", timeout="1h"))))
    bench.append(EVENTS, 0, *(an_event(day, "a") for day in days))
    bench.run(50 * MINUTE)
    bench.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "I#", times=10_000)
    bench.append(EVENTS, 0, *(an_event(day, "b") for day in days))
    bench.run(MINUTE)
    assert len(bench.rows("I#")) > 1
    bench._rules.clear()
    bench.away(30 * MINUTE)
    bench.run(5 * MINUTE)
    assert dispositions(bench) == ["launched"] * len(days)
    assert bench.rows("E#") == []


def upstream_bench() -> ActorHarness:
    """`down` waits 20 minutes for data and for a run of `up`, which takes ten; the data is there at once."""
    long = Behaviour(runs_for=10 * MINUTE)
    bench = ActorHarness()
    bench.behaves = lambda order: long if order.file == "/jobs/up.py" else Behaviour()
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("10h"))))
    bench.request(an_apply(a_spec("down", all_of(on_data("a"), on_run_of("up"), timeout="20m"))))
    bench.request(a_request("trigger", "up"))
    bench.event(an_event("d1", "a"))
    bench.run(SECOND)
    return bench


@pytest.mark.parametrize("away", [False, True], ids=["owner there", "owner away"])
def test_given_an_upstream_run_that_ended_in_time_then_downtime_does_not_change_the_result(away: bool) -> None:
    bench = upstream_bench()
    if away:
        bench.away(30 * MINUTE)
    bench.run(30 * MINUTE)
    assert [entry[:2] for entry in bench.ledger()] == [("launched", "down"), ("launched", "up")]
    assert bench.rows("E#") == []


def test_given_an_end_that_nobody_hands_on_then_the_time_out_names_it_and_does_not_wait_for_ever() -> None:
    bench = upstream_bench()
    bench.answer_with(
        lambda effect: isinstance(effect, Commit) and effect.transaction.name == "look", Refused(()), times=10_000
    )
    bench.answer_with(
        lambda effect: isinstance(effect, Commit) and effect.transaction.name == "gone", Refused(()), times=10_000
    )
    other = next(shard for shard in bench.actor.shards if shard == schedule_shard("flights", "up", 4))
    assert other != schedule_shard("flights", "down", 4), "one shard's standstill must not be the other's"
    bench.run(20 * MINUTE + PATIENCE_MS - 10 * SECOND)
    assert dispositions(bench) == []
    bench.run(20 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]
    (row,) = bench.rows("L#")
    assert "did not wait for runs of flights/up" in str(row["detail"])


def test_given_a_topic_that_grew_since_the_node_started_then_the_time_out_waits_for_its_new_part_too(
    bench: ActorHarness,
) -> None:
    """This node reads nothing there, another one does: what lies unread there may have come in time."""
    bench.event(an_event("d1", "b"), bench.event_topic_partitions)
    bench.run(60 * SECOND)
    assert dispositions(bench) == []


def test_given_a_slow_store_and_many_time_outs_at_once_then_they_are_decided_as_soon_as_a_few() -> None:
    """Read again: each schedule's state and definition were read by themselves, one after the other, before any of them was decided."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    for number in range(40):
        spec = a_spec(f"s-{number}", all_of(on_data("a"), on_data("b"), timeout="30s"))
        bench.request(an_apply(spec, f"apply-{number}"))
    bench.event(an_event("d1", "a"))
    bench.run(29 * SECOND)
    bench.store_answers_after = SECOND
    bench.run(60 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"] * 40


def test_given_a_slow_store_and_many_upstream_schedules_then_their_runs_are_looked_at_together() -> None:
    """Read again: all runs of a shard were read for each schedule in it by itself, one after the other: sixty took two minutes a look."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    for number in range(40):
        bench.request(an_apply(a_spec(f"up-{number}", every("10h")), f"apply-up-{number}"))
        spec = a_spec(f"s-{number}", all_of(on_data("a"), on_run_of(f"up-{number}"), timeout="30s"))
        bench.request(an_apply(spec, f"apply-{number}"))
    bench.run(SECOND)
    bench.event(an_event("d1", "a"))
    bench.run(29 * SECOND)
    bench.store_answers_after = SECOND
    bench.run(60 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"] * 40


@pytest.mark.parametrize("answer", [None, Unavailable("broker")], ids=["silent", "leaderless"])
def test_given_an_events_topic_that_does_not_answer_then_a_time_out_waits_for_it_and_no_longer(
    bench: ActorHarness, answer: Unavailable | None
) -> None:
    """Read again: it was asked for good, so that no time-out of any schedule came for as long as one topic partition had no leader."""
    bench.run(SECOND)
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), answer, times=10_000)
    bench.run(29 * SECOND + PATIENCE_MS - SECOND)
    assert dispositions(bench) == []
    bench.run(10 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]
    (row,) = bench.rows("L#")
    assert "did not wait for the events topic, which does not answer" in str(row["detail"])


def test_given_brokers_that_nobody_reaches_then_a_time_out_waits_until_they_are_back_and_what_lies_there_is_read(
    bench: ActorHarness,
) -> None:
    bench.event(an_event("d1", "b"), 1)
    bench.run(SECOND)
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), Unavailable("broker"), times=10_000)
    bench.is_member = None
    bench.run(3 * PATIENCE_MS)
    assert dispositions(bench) == []
    bench.is_member = True
    bench.as_usual()
    bench.run(PATIENCE_MS - SECOND)
    assert dispositions(bench) == []
    bench.run(2 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]


def test_given_brokers_that_nobody_reaches_any_more_while_something_is_unread_then_that_time_does_not_count_either(
    bench: ActorHarness,
) -> None:
    """Read again: it did not where the ends were untold; where they were known what came in time was given up amid the outage."""
    bench.event(an_event("d1", "b"), 1)
    bench.run(31 * SECOND)
    bench.is_member = None
    bench.run(3 * PATIENCE_MS)
    assert dispositions(bench) == []
    bench.is_member = True
    bench.run(PATIENCE_MS - 2 * SECOND)
    assert dispositions(bench) == []
    read_by_the_other(bench, 1)
    bench.run(SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]
    (row,) = bench.rows("L#")
    assert "did not wait" not in str(row["detail"])


def test_given_brokers_that_nobody_reaches_then_those_that_wait_for_them_ask_the_store_for_nothing() -> None:
    """Read again: each looked at all that may be unread twice a second; with a reminder a minute twenty minutes cost 200,000 reads."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("10h"))))
    for number in range(5):
        spec = a_spec(f"s-{number}", all_of(on_data("a"), on_run_of("up"), at_least_every="1m"))
        bench.request(an_apply(spec, f"apply-{number}"))
    bench.run(SECOND)
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), Unavailable("broker"), times=100_000)
    bench.is_member = None
    reads: list[int] = []
    for _ in range(10):
        asked = len(bench.asked)
        bench.run(2 * MINUTE)
        reads.append(sum(isinstance(effect, Read | ReadRange) for effect in bench.asked[asked:]))
    assert max(reads) < 200
    assert dispositions(bench) == []
    bench.is_member = True
    bench.as_usual()
    bench.run(10 * SECOND)
    assert dispositions(bench) == ["skipped/nothing_new"] * 5 * 20


def test_given_an_events_topic_that_answers_later_than_it_is_waited_for_then_its_answer_counts(
    bench: ActorHarness,
) -> None:
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, ReadEndOffsets), times=10_000)
    bench.run(37 * SECOND)
    bench.release()
    bench.run(SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]
    (row,) = bench.rows("L#")
    assert "did not wait" not in str(row["detail"])
