"""Outages from beginning to end: the fact, catch-up by it, and what a second crash in between may not change (DESIGN 8)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, NOW, SECOND, a_recurring, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.firing.catch_up import WALKED_PER_TRANSACTION
from tidegate_core.ownership.acquisition import ACQUIRED_TOGETHER
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Commit, Effect, Read, ReadRange, Write
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.outage import Outage, outages_of
from tidegate_core.runs.run_lifecycle import START_WITHIN_MS
from tidegate_core.shard.outages.outage_recorder import heartbeat_row
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS, OUTAGES_KEPT_MS, CatchUp
from tidegate_core.writes.fencing import record_outages

BEGUN = NOW + SECOND
"""When the schedules here are there, on the bench's clock."""


def a_bench(mode: CatchUp = "last", period: str = "1m", **more: Any) -> ActorHarness:
    bench = ActorHarness(shards=1, **more)
    bench.run(SECOND)
    catch_up = {"mode": mode, "max_runs": 100}
    bench.request(an_apply(a_spec(trigger=every(period), overlap="allow", catchup=catch_up)))
    return bench


def facts(bench: ActorHarness, shard: int = 0) -> tuple[Outage, ...]:
    return outages_of(bench.store.peek(keys.progress(shard)))


def seen(bench: ActorHarness, at: int, owner: str | None = None) -> None:
    """What a node's heartbeat writes."""
    bench.store.write([heartbeat_row(owner or bench.holding.owner, "node", at, {0: at}, at // 1_000 + 1)])


def served_until(bench: ActorHarness) -> int:
    until = bench.actor.served_until(bench.now)
    assert until is not None
    return until


def entries(bench: ActorHarness) -> list[LedgerRow]:
    rows = [from_item(LedgerRow, item) for item in bench.rows("L#")]
    return sorted(rows, key=lambda row: row.nominal)


def minutes(begin: int, end: int) -> list[int]:
    return list(range(-(-begin // MINUTE) * MINUTE, end, MINUTE))


def stood_for(bench: ActorHarness) -> list[int]:
    """All instants that the ledger accounts for."""
    return [
        instant
        for row in entries(bench)
        for instant in minutes(row.nominal if row.covered_from is None else row.covered_from, row.nominal + 1)
    ]


def store_calls(effect: Effect) -> bool:
    return isinstance(effect, Read | ReadRange | Commit | Write)


# -- the fact ----------------------------------------------------------------------------------------------------------


def test_given_a_successor_after_hours_then_the_outage_lasts_from_the_last_sign_of_life_to_it() -> None:
    bench = a_bench()
    bench.run(30 * SECOND)
    died = bench.now
    seen(bench, died - 4 * SECOND)
    bench.away(2 * HOUR)
    assert facts(bench) == (Outage(died - 4 * SECOND, died + 2 * HOUR),)
    assert [notice.fields["shard"] for notice in bench.notices("outage")] == [0]


def test_given_a_silence_amid_a_take_over_that_was_none_so_far_then_the_outage_lasts_from_the_last_sign_of_life() -> (
    None
):
    """It began with the silence: what had been missed before that was made one by one, or although its `catchup` said `none`."""
    bench = a_bench(period="10s")
    bench.run(30 * SECOND)
    died = bench.now
    seen(bench, died)
    bench.hold_back(lambda effect: isinstance(effect, ReadRange) and effect.range.low == "J#")
    bench.away(40 * SECOND)
    bench.end_scripts()
    bench.lose(store_calls, times=1_000_000)
    bench.run(65 * SECOND)
    bench.as_usual()
    bench.run(5 * SECOND)
    assert facts(bench) == (Outage(died, died + 105 * SECOND),)
    assert [row.covered for row in entries(bench) if row.nominal > died][:1] == [10]


def test_given_an_owner_that_lost_it_within_a_beat_and_lives_on_then_its_other_signs_of_life_hide_no_outage() -> None:
    """Seed 831315: a process had it for 8 s between two signs of life, was frozen, and came back to serve another one."""
    bench = a_bench()
    bench.run(30 * SECOND)
    back = bench.now + 2 * HOUR
    bench.store.write([heartbeat_row(bench.holding.owner, "node", back, {7: back}, back // 1_000 + 1)])
    bench.away(2 * HOUR)
    bench.run(5 * SECOND)
    assert facts(bench) == (Outage(NOW, back),), "from what the lease says, which is early and harmless"
    assert stood_for(bench) == minutes(BEGUN, bench.now + 1)


@pytest.mark.parametrize("falls", [False, True], ids=["goes on", "falls"])
def test_given_a_process_that_takes_over_again_what_it_had_then_no_sign_of_life_amid_its_acquires_hides_the_outage(
    falls: bool,
) -> None:
    """Seed 20300904: shards that were not acquired yet still named it as their owner, and its beat spoke for those that were."""
    before = ActorHarness(owner="node", shards=ACQUIRED_TOGETHER + 1)
    before.run(SECOND)
    lost = before.now
    seen(before, lost)
    bench = ActorHarness(beside=before, owner="node", shards=ACQUIRED_TOGETHER + 1, tenure=1)
    bench.now += 2 * HOUR
    bench.hold_back(lambda effect: isinstance(effect, Read) and keys.lease(ACQUIRED_TOGETHER) in effect.keys)
    bench.run()
    assert [len(facts(bench, shard)) for shard in (0, ACQUIRED_TOGETHER)] == [1, 0]
    until = bench.actor.served_until(bench.now)
    if until is not None:
        seen(bench, until)
    if falls:
        bench.crash()
    else:
        bench.release()
    bench.run(5 * SECOND)
    assert {fact.begin for shard in bench.actor.shards for fact in facts(bench, shard)} == {lost}
    assert all(len(facts(bench, shard)) == 1 for shard in range(ACQUIRED_TOGETHER + 1))


def test_given_an_outage_within_the_grace_then_there_is_no_fact_and_every_instant_has_its_job() -> None:
    bench = a_bench(period="10s")
    seen(bench, bench.now)
    bench.away(OUTAGE_GRACE_MS - 1)
    bench.run(10 * SECOND)
    assert facts(bench) == ()
    assert all(row.covered is None for row in entries(bench))
    assert len(entries(bench)) >= 6


@pytest.mark.parametrize(("ahead", "outages"), [(20 * MINUTE, 1), (3 * HOUR, 0)], ids=["some minutes", "hours"])
def test_given_a_dead_node_whose_clock_was_ahead_then_nothing_is_lost_or_made_twice(ahead: int, outages: int) -> None:
    bench = a_bench()
    died = bench.now
    seen(bench, died + ahead)
    bench.away(2 * HOUR)
    back = bench.now
    bench.run(5 * SECOND)
    assert facts(bench) == (Outage(died + ahead, back),)[:outages]
    assert stood_for(bench) == minutes(BEGUN, bench.now + 1)
    assert all(row.covered_from is None or row.covered_from >= died + ahead for row in entries(bench))


def test_given_another_crash_in_the_take_over_then_the_fact_is_written_once_and_never_shortened() -> None:
    """The first successor's own signs of life must not hide when the shard was served last."""
    for crash_after in range(1, 12):
        bench = a_bench()
        died = bench.now
        seen(bench, died)
        bench.effects_outside, bench.crash_after = 0, crash_after
        bench.away(2 * HOUR)
        back = bench.now
        bench.run(20 * SECOND)
        seen(bench, served_until(bench))
        bench.crash()
        bench.run(5 * SECOND)
        (fact,) = facts(bench)
        assert fact.begin == died, crash_after
        assert back <= fact.end <= back + SECOND, crash_after  # It goes on until somebody serves.
        assert stood_for(bench) == minutes(BEGUN, bench.now + 1)
        assert [row.covered for row in entries(bench) if row.covered] == [len(minutes(died, back))]


def test_given_owners_that_fall_again_and_again_before_they_serve_then_none_of_them_is_a_sign_of_life() -> None:
    bench = a_bench()
    died = bench.now
    seen(bench, died)
    for _ in range(4):
        bench.hold_back(lambda effect: isinstance(effect, ReadRange), times=100)
        bench.away(40 * SECOND)
        bench.run(SECOND)
        assert not bench.actor.is_serving
        seen(bench, served_until(bench))
        bench._rules.clear()
    bench.away(10 * SECOND)
    back = bench.now
    assert facts(bench) == (Outage(died, back),)


@pytest.mark.parametrize("sends_messages", [True, False], ids=["message", "program"])
def test_given_a_fact_whose_author_had_a_clock_ahead_then_what_it_stands_for_is_not_early(sends_messages: bool) -> None:
    """Seed 834440: the author fell before it had sent; its successor's clock was 115 ms behind, and the last instant was 22 ms away."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    spec = (
        a_recurring("ping", every("10s"))
        if sends_messages
        else a_spec(trigger=every("10s"), overlap="allow", catchup={"mode": "last"})
    )
    bench.request(an_apply(spec))
    bench.run(37 * SECOND)  # Past the checkpoint: nothing is repeated.
    died = bench.now
    instant = -(-(died + 2 * HOUR) // (10 * SECOND)) * 10 * SECOND
    epoch = (bench.store.peek(keys.progress(0)) or {})["epoch"]
    assert isinstance(epoch, int)
    fact = Outage(died, instant + 300)
    bench.store.transact(record_outages(0, epoch, (), (fact,), "w/0.0/1", gaps=(fact,)))
    before = len(bench.on("out")) + len(bench.started)
    bench.away(instant - 100 - died)
    bench.run(99)
    assert len(bench.on("out")) + len(bench.started) == before, "the instant that stands for all is still to come"
    bench.run(5 * SECOND)
    assert len(bench.on("out")) + len(bench.started) == before + 1


def test_given_facts_of_long_ago_then_the_next_take_over_drops_them() -> None:
    bench = a_bench("none", "1h")
    bench.away(2 * HOUR)
    assert len(facts(bench)) == 1
    seen(bench, bench.now + OUTAGES_KEPT_MS + SECOND)
    bench.away(OUTAGES_KEPT_MS + 2 * SECOND)
    assert facts(bench) == ()


# -- an owner that is there all along ----------------------------------------------------------------------------------


def test_given_a_store_that_answers_nobody_for_hours_then_its_owner_writes_the_fact_before_it_fires() -> None:
    bench = a_bench("coalesce")
    bench.run(30 * SECOND)
    silent_from = bench.now
    bench.lose(store_calls, times=1_000_000)
    bench.run(30 * MINUTE)
    assert silent_from - 20 * SECOND <= served_until(bench) <= silent_from
    assert facts(bench) == ()
    bench.as_usual()
    bench.run(5 * SECOND)
    (fact,) = facts(bench)
    assert silent_from - 20 * SECOND <= fact.begin <= silent_from
    assert fact.end <= silent_from + 30 * MINUTE + SECOND
    assert served_until(bench) >= bench.now - 12 * SECOND
    # What was under way when the store fell silent is made by itself; then one stands for all the others.
    assert stood_for(bench) == minutes(BEGUN, bench.now + 1)
    assert [row.covered for row in entries(bench)] == [None, 29]


def test_given_a_process_that_stood_still_then_that_is_an_outage_and_nothing_is_decided_before_it_is_written() -> None:
    bench = a_bench("coalesce")
    bench.run(30 * SECOND)
    frozen = bench.now
    bench.asked.clear()
    bench.now += 3 * HOUR
    assert served_until(bench) <= frozen
    bench.run(SECOND)
    (fact,) = facts(bench)
    assert frozen - 20 * SECOND <= fact.begin <= frozen
    assert fact.end == frozen + 3 * HOUR
    names = [effect.transaction.name for effect in bench.asked if isinstance(effect, Commit)]
    assert names.index("outage") < names.index("fire")
    bench.run(5 * SECOND)
    assert [row.covered for row in entries(bench)] == [180]


def test_given_an_idle_shard_then_its_outage_is_written_all_the_same() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.lose(store_calls, times=1_000_000)
    bench.run(2 * MINUTE)
    bench.as_usual()
    bench.run(15 * SECOND)
    assert len(facts(bench)) == 1
    assert served_until(bench) >= bench.now - 12 * SECOND


def test_given_a_store_that_falls_silent_again_while_the_fact_is_written_then_it_is_one_outage() -> None:
    bench = a_bench()
    bench.run(30 * SECOND)
    bench.lose(store_calls, times=1_000_000)
    bench.run(2 * MINUTE)
    bench.as_usual()
    bench.lose(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "outage", times=1_000_000)
    bench.run(SECOND)
    bench.as_usual()
    bench.lose(store_calls, times=1_000_000)
    bench.run(2 * MINUTE)
    assert facts(bench) == ()
    bench.as_usual()
    bench.run(15 * SECOND)
    (fact,) = facts(bench)
    assert fact.end - fact.begin > 4 * MINUTE


def test_given_a_fact_whose_answer_is_lost_then_it_is_not_doubled() -> None:
    bench = a_bench()
    bench.lose_answer_of(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "outage", times=3)
    bench.now += HOUR
    bench.run(5 * SECOND)
    assert len(facts(bench)) == 1
    assert bench.notices("fenced") == []


def test_given_an_outage_that_is_not_written_yet_then_a_drain_waits_for_it() -> None:
    """Once this holding is gone its node would say that it was seen."""
    bench = a_bench()
    bench.now += HOUR
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "outage")
    bench.drain()
    bench.run(SECOND)
    ended = [bench.actor.has_ended]
    bench.release()
    bench.run(SECOND)
    ended.append(bench.actor.has_ended)
    assert ended == [False, True]
    assert len(facts(bench)) == 1


def test_given_an_outage_that_opens_while_a_shard_is_recovered_then_a_drain_that_comes_before_the_end_waits_for_it() -> (
    None
):
    """The shard begins nothing any more, but for this: it waits for no read of the recovery."""
    bench = a_bench()
    bench.crash()
    bench.hold_back(lambda effect: isinstance(effect, ReadRange) and effect.range.low == "J#", times=1_000)
    bench.run(SECOND)
    bench.now += HOUR
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "outage")
    bench.drain()
    bench.run(SECOND)
    ended = [bench.actor.has_ended]
    bench.release_last()
    bench.run(SECOND)
    ended.append(bench.actor.has_ended)
    assert ended == [False, True]
    assert len(facts(bench)) == 1


# -- catch-up ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "kinds"),
    [
        pytest.param("all", {("launched", "")}, id="all"),
        pytest.param("last", {("launched", "")}, id="last"),
        pytest.param("coalesce", {("launched", "")}, id="coalesce"),
        pytest.param("none", {("launched", ""), ("skipped", "outage")}, id="none"),
    ],
)
def test_given_a_mode_then_the_instants_of_an_outage_end_as_it_says(mode: CatchUp, kinds: set[tuple[str, str]]) -> None:
    bench = a_bench(mode)
    bench.run(90 * SECOND)
    died = bench.now
    seen(bench, died)
    bench.away(HOUR)
    back = bench.now
    bench.run(2 * MINUTE)
    rows = entries(bench)
    assert stood_for(bench) == minutes(BEGUN, bench.now + 1)
    assert {(row.disposition, row.reason) for row in rows} == kinds
    missed = minutes(died, back)
    covering = [row for row in rows if row.covered is not None]
    if mode == "all":
        assert covering == []
        return
    (row,) = covering
    assert (row.covered_from, row.nominal, row.covered) == (missed[0], missed[-1], len(missed))
    begin = missed[0] - MINUTE if mode == "coalesce" else missed[-1] - MINUTE
    assert (row.interval_start, row.interval_end) == (begin, missed[-1])
    assert bool([order for order in bench.started if order.run_id == row.job_id]) == (mode != "none")


@pytest.mark.parametrize("mode", ["last", "coalesce", "none"])
def test_given_a_second_crash_after_any_step_of_a_catch_up_then_it_goes_on_where_it_stopped(mode: CatchUp) -> None:
    """Two and a half transactions' worth of instants, and a crash after every effect."""
    hours = (5 * WALKED_PER_TRANSACTION // 2) // 60
    whole: list[tuple[int, int | None]] | None = None
    for crash_after in (None, *range(1, 20, tier.at_night(1, else_=4))):
        bench = a_bench(mode, behaviour=Behaviour(runs_for=10))
        seen(bench, bench.now)
        bench.away(1)
        bench.new_actor()
        bench.now += hours * HOUR
        bench.effects_outside, bench.crash_after = 0, crash_after
        bench.run(10 * SECOND)
        found = [(row.nominal, row.covered) for row in entries(bench)]
        whole = found if whole is None else whole
        assert found == whole, crash_after
        assert stood_for(bench) == minutes(BEGUN, bench.now + 1)
        assert "gathered" not in bench.rows("S#")[0]


def test_given_a_suspended_schedule_then_an_outage_has_none_of_its_instants() -> None:
    bench = a_bench("last")
    bench.request(a_request("suspend"))
    bench.run(SECOND)
    bench.away(HOUR)
    bench.request(a_request("resume"))
    resumed = bench.now
    bench.run(2 * MINUTE)
    assert stood_for(bench) == minutes(resumed, bench.now + 1)
    assert all(row.covered is None for row in entries(bench))


def test_given_a_suspend_that_came_in_the_outage_then_what_it_ends_is_accounted_for() -> None:
    """It is applied by who comes after: until then the schedule was due."""
    bench = a_bench("coalesce")
    died = bench.now
    seen(bench, died)
    bench.new_actor()
    bench.now += HOUR
    bench.request(a_request("suspend"))
    back = bench.now
    bench.run(2 * MINUTE)
    (row,) = entries(bench)
    assert (row.covered, row.disposition, row.reason) == (len(minutes(died, back)), "cancelled", "suspended")


def test_given_instants_that_were_due_before_an_outage_then_they_are_made_one_by_one() -> None:
    bench = a_bench("last", period="10s")
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "fire", times=100)
    bench.run(40 * SECOND)
    died = bench.now
    seen(bench, died)
    bench._held.clear()
    bench.away(HOUR)
    bench._rules.clear()
    bench.crash()
    bench.run(5 * SECOND)
    assert [row.covered for row in entries(bench) if row.nominal < died] == [None] * 4
    assert [row.covered for row in entries(bench) if row.nominal >= died][:1] == [360]


# -- time-outs of runs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("served", "open_runs"), [(10 * MINUTE, 1), (START_WITHIN_MS + MINUTE, 0)])
def test_given_a_program_that_does_not_start_then_its_time_out_runs_only_while_the_shard_is_served(
    served: int, open_runs: int
) -> None:
    bench = ActorHarness(shards=1, behaviour=Behaviour(starts_after=30 * HOUR))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("100h"))))
    bench.request(a_request("trigger"))
    bench.run(MINUTE)
    seen(bench, bench.now)
    bench.away(5 * HOUR)
    bench.run(served - MINUTE)
    assert len(bench.rows("R#")) - len(bench.ledger()) == open_runs
