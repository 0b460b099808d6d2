"""Bugs in who writes an outage down, and in how long what it brings may wait: each in the interleaving that its rule is against."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import Behaviour, Bench
from tidegate_core.decisions import acquisition
from tidegate_core.decisions.acquisition import ACQUIRED_TOGETHER
from tidegate_core.decisions.host import Host
from tidegate_core.decisions.outage_watch import SERVED, OutageWatch, sign_of_life
from tidegate_core.decisions.partition_actor import PartitionActor
from tidegate_core.decisions.run_plane import pending_timeout, runs
from tidegate_core.decisions.run_plane.pacing import Pacing
from tidegate_core.effects import Commit, Items, Read, ReadRange, Write
from tidegate_core.records.codec import from_item
from tidegate_core.records.outages import outages_of
from tidegate_core.records.run_plane import Job, LedgerRow
from tidegate_core.store import keys
from tidegate_core.store.values import Item

Signs = Generator[Any, Any, dict[int, int]]


def taking_any_sign(read: Callable[[Host, Mapping[int, Item | None]], Signs]) -> Any:
    """Whatever its owner served last stands for what it did not."""

    def read_all(host: Host, leases: Mapping[int, Item | None]) -> Signs:
        signs = yield from read(host, leases)
        owners = {shard: str(lease["owner"]) for shard, lease in leases.items() if lease is not None}
        for shard in owners.keys() - signs.keys():
            answer = yield from host.read_for_good(Read((keys.node(owners[shard]),)))
            assert isinstance(answer, Items)
            served = answer.found.get(keys.node(owners[shard]), {}).get(SERVED)
            if isinstance(served, dict) and served:
                signs[shard] = max(int(str(each)) for each in served.values())
        return signs

    return read_all


def handing_on_the_turn(in_turn: Callable[[Pacing, Job, int, int], Job]) -> Any:
    """Also to a job that came long after the turn had begun."""

    def handed_on(pacing: Pacing, job: Job, pending_timeout: int, now: int) -> Job:
        mine = in_turn(pacing, job, pending_timeout, now)
        return mine if job.times_out or pacing.turn is None else replace(mine, deadline=pacing.turn)

    return handed_on


def speaking_amid_its_acquires(_: Callable[[PartitionActor, int], int | None]) -> Any:
    """For the shards that are acquired so far, although those to come name the same owner."""

    def served_until(actor: PartitionActor, now: int) -> int | None:
        if not actor.shards:
            return None
        return min(actor._host.store_seen, *(shard.outages.complete_until(now) for shard in actor.shards.values()))

    return served_until


def beginning_as_it_is_noticed(away_since: Callable[[OutageWatch, int], None]) -> Any:
    """Whatever is known of before."""

    def away(watch: OutageWatch, instant: int) -> None:
        complete, watch._complete = watch._complete, None
        away_since(watch, instant)
        watch._complete = complete

    return away


def running_all_the_time(_: Any) -> Any:
    return lambda began, deadline, outages: deadline


# -- the stories -------------------------------------------------------------------------------------------------------


def an_owner_lost_it_within_a_beat_and_lives_on() -> Iterator[str]:
    bench = _a_bench({"mode": "last"})
    back = bench.now + 2 * HOUR
    bench.store.write([_sign(bench, {7: back}, back)])
    bench.away(2 * HOUR)
    if not outages_of(bench.store.peek(keys.progress(0))):
        yield "I1: nobody served the shard for two hours, and no fact says so"


def an_owner_takes_over_again_what_it_had_and_beats_amid_its_acquires() -> Iterator[str]:
    shards = ACQUIRED_TOGETHER + 1
    before = Bench(owner="node", shards=shards)
    before.run(SECOND)
    before.store.write([_sign(before, {0: before.now}, before.now)])
    bench = Bench(beside=before, owner="node", shards=shards, tenure=1)
    bench.now += 2 * HOUR
    bench.hold_back(lambda effect: isinstance(effect, Read) and keys.lease(ACQUIRED_TOGETHER) in effect.keys)
    bench.run()
    until = bench.actor.served_until(bench.now)
    if until is not None:
        bench.store.write([_sign(bench, {0: until}, until)])
    bench.release()
    bench.run(5 * SECOND)
    for shard in range(shards):
        if not outages_of(bench.store.peek(keys.progress(shard))):
            yield f"I1: nobody served shard {shard} for two hours, and no fact says so"


def a_store_falls_silent_amid_a_take_over() -> Iterator[str]:
    """Nobody served the shard for less than the grace by then."""
    bench = _a_bench({"mode": "last"})
    bench.run(30 * SECOND)
    died = bench.now
    bench.store.write([_sign(bench, {0: died}, died)])
    bench.hold_back(lambda effect: isinstance(effect, ReadRange) and effect.range.low == "J#")
    bench.away(40 * SECOND)
    bench.end_scripts()
    bench.lose(lambda effect: isinstance(effect, Read | ReadRange | Commit | Write), times=10**6)
    bench.run(65 * SECOND)
    bench.as_usual()
    bench.run(5 * SECOND)
    begun = [outage.begin for outage in outages_of(bench.store.peek(keys.progress(0)))]
    if begun != [died]:
        yield f"I1: nobody served the shard from {died} on, and facts say so from {begun} on"


def another_outage_falls_into_the_turn_of_the_first_one() -> Iterator[str]:
    closed = {"type": "time_window", "opens": "01:00", "closes": "02:00"}
    bench = _a_bench({"mode": "coalesce"}, pending_timeout="25m", constraints=[closed])
    back: list[int] = []
    for away in (3 * HOUR, 10 * MINUTE):
        bench.store.write([_sign(bench, {0: bench.now}, bench.now)])
        bench.away(away)
        back.append(bench.now)
        bench.run(5 * MINUTE)
    bench.run(HOUR)
    for row in (from_item(LedgerRow, item) for item in bench.rows("L#")):
        made = next((instant for instant in back if row.nominal < instant), row.nominal)
        if row.reason == "constraint_timeout" and row.at < made + 25 * MINUTE:
            yield f"I1: {row.job_id} waited {row.at - made} ms, not 25m"


def everybody_falls_with_a_program_that_has_not_begun() -> Iterator[str]:
    """Its 15 minutes to begin run while somebody is there to let it through the gate."""
    bench = Bench(shards=1, behaviour=Behaviour(starts_after=30 * HOUR))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("100h"))))
    bench.request(a_request("trigger"))
    bench.run(MINUTE)
    bench.store.write([_sign(bench, {0: bench.now}, bench.now)])
    bench.away(5 * HOUR)
    bench.run(10 * MINUTE)
    for row in (from_item(LedgerRow, item) for item in bench.rows("L#")):
        yield f"I1: {row.job_id} is given up ({row.reason}) after 11 minutes in which it could begin"


def everybody_falls_with_a_job_that_waits() -> Iterator[str]:
    bench = Bench(shards=1)
    bench.run(SECOND)
    opens = {"type": "time_window", "opens": "07:00", "closes": "08:00"}
    bench.request(an_apply(a_spec(trigger=every("100h"), pending_timeout="1h", constraints=[opens])))
    bench.request(a_request("trigger"))
    bench.run(10 * MINUTE)
    bench.store.write([_sign(bench, {0: bench.now}, bench.now)])
    bench.away(2 * HOUR)
    bench.run(40 * MINUTE)
    for row in (from_item(LedgerRow, item) for item in bench.rows("L#")):
        yield f"I1: {row.job_id} has expired ({row.reason}) after 50 minutes in which somebody was there, not after an hour"


def _a_bench(catch_up: Doc, **more: Any) -> Bench:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10m"), overlap="allow", catchup=catch_up, **more)))
    bench.run(30 * SECOND)
    return bench


def _sign(bench: Bench, served: Mapping[int, int], now: int) -> Any:
    return sign_of_life(bench.holding.owner, "node", now, served, now // 1_000 + 1)


RULES_OF_OUTAGES = (
    Mutant(
        "time-outs in an outage",
        "a run that nobody could submit for hours is given up as soon as somebody is back",
        breaks="I1",
        patches=(Patch(runs, "served_deadline", running_all_the_time),),
        scenario=everybody_falls_with_a_program_that_has_not_begun,
    ),
    Mutant(
        "pending time-outs in an outage",
        "a job that waited as everybody fell has expired as soon as somebody is back",
        breaks="I1",
        patches=(Patch(pending_timeout, "served_deadline", lambda _: lambda since, deadline, outages: deadline),),
        scenario=everybody_falls_with_a_job_that_waits,
    ),
    Mutant(
        "signs amid acquires",
        "a beat between two acquires hides that nobody has served the shards to come since their owner lost them",
        breaks="I1",
        patches=(Patch(PartitionActor, "served_until", speaking_amid_its_acquires),),
        scenario=an_owner_takes_over_again_what_it_had_and_beats_amid_its_acquires,
    ),
    Mutant(
        "begun with the silence",
        "what was missed before a store fell silent amid a take-over is made one by one, whatever `catchup` says",
        breaks="I1",
        patches=(Patch(OutageWatch, "away_since", beginning_as_it_is_noticed),),
        scenario=a_store_falls_silent_amid_a_take_over,
    ),
    Mutant(
        "signs of others",
        "an owner's signs of life elsewhere hide that nobody has served the shard since it lost it",
        breaks="I1",
        patches=(Patch(acquisition, "read_signs", taking_any_sign),),
        scenario=an_owner_lost_it_within_a_beat_and_lives_on,
    ),
    Mutant(
        "turn handed on",
        "what a second outage brings expires with what the first one brought, long before its time-out",
        breaks="I1",
        patches=(Patch(Pacing, "in_turn", handing_on_the_turn),),
        scenario=another_outage_falls_into_the_turn_of_the_first_one,
    ),
)
