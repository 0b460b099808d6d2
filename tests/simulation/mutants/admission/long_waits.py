"""Rules of what waits for long, for a store that is silent for hours, a limit, or those before it, and of very many at once: each is
switched off in the interleaving that it is against.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest.mock import patch

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import FOR_EVER, NEVER_STARTS, writing
from tests.support.builders import (
    DAY,
    HOUR,
    MINUTE,
    REQUESTS_ID,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import Behaviour, Bench
from tidegate_core.decisions.inputs import Poked
from tidegate_core.decisions.lane import Lane
from tidegate_core.decisions.run_plane import admit, asking, count, ending, overlap, request, runs, watermark
from tidegate_core.decisions.run_plane.admit import AdmitNext
from tidegate_core.decisions.run_plane.memory import Memory
from tidegate_core.decisions.run_plane.pending_timeout import Late
from tidegate_core.decisions.run_plane.watermark import PATIENCE_MS
from tidegate_core.effects import Commit, LaunchOrder, Read, ReadRange, Write
from tidegate_core.model.position import Position
from tidegate_core.model.shards import schedule_shard
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.limits import Waiter
from tidegate_core.records.receipts import RECEIPT_DAYS, StoredReceipt
from tidegate_core.records.run_plane import InboxRow, Job, Run
from tidegate_core.store.values import Key, Put
from tidegate_core.transactions import view
from tidegate_core.transactions.unit_of_work import UnitOfWork

EVERY_TIME = 10**9
QUICK = Behaviour(starts_after=10, runs_for=50)
TOMORROW: Doc = {"type": "time_window", "opens": "01:00", "closes": "02:00"}
UNTIL_0220: Doc = {**TOMORROW, "closes": "02:20"}
"""A bench begins at 02:13:20."""

# -- bugs -------------------------------------------------------------------------------------------------------------


def sending_for_ever(_: Callable[[UnitOfWork, int], None]) -> Callable[[UnitOfWork, int], None]:
    return lambda unit, instant: None


def counting_permits_alone(_: Any) -> Callable[[Memory, str], tuple[str, ...]]:
    return lambda memory, ref: ()


def by_the_clock(_: int) -> int:
    return EVERY_TIME


def if_it_stands_aside_alone(_: Callable[[Waiter, Waiter], bool]) -> Callable[[Waiter, Waiter], bool]:
    return lambda row, written: row.aside != written.aside


def whatever_lies_between(_: Callable[[Job, Job], bool]) -> Callable[[Job, Job], bool]:
    return lambda job, following: True


def by_the_first_alone(_: Callable[..., bool]) -> Callable[..., bool]:
    return lambda decision, unit, state, behind, waiting, now: False


def each_by_its_name(_: Callable[..., list[Run]]) -> Callable[..., list[Run]]:
    def read(unit: UnitOfWork, wanted: Sequence[Key], ref: str) -> list[Run]:
        return [from_item(Run, item) for item in unit.items(wanted) if item is not None]

    return read


def asking_for_what_it_ignores(after_pending_timeout: Callable[..., Late]) -> Callable[..., Late]:
    return lambda *arguments: after_pending_timeout(*arguments)._replace(is_forced=False)


def staying_in_line(_: Callable[..., bool]) -> Callable[..., bool]:
    return lambda decision, unit, behind, waiting: False


def asking_the_store(_: Any) -> Callable[..., None]:
    return lambda lane, key: None


def whenever_it_was_given(_: Any) -> Callable[..., StoredReceipt | None]:
    def at_hand(lane: Lane, key: Key) -> StoredReceipt | None:
        item = lane.view.item(key) if lane.view.knows(key) else None
        stored = None if item is None else from_item(StoredReceipt, item)
        return stored if stored is not None and stored.settled else None

    return at_hand


# -- the stories ------------------------------------------------------------------------------------------------------


def an_admission_has_no_answer_for_two_hours() -> Iterator[str]:
    bench = _a_bench(QUICK)
    rate = {"type": "rate", "max": 1, "per": "1h", "scope": "group", "group": "yard"}
    bench.request(an_apply(a_spec(trigger=every("100h"), constraints=[rate], overlap="allow")))
    bench.run(SECOND)
    bench.lose(writing("R#"), times=EVERY_TIME)
    _trigger(bench)
    bench.run(SECOND)
    bench.lose(lambda effect: isinstance(effect, Commit), times=EVERY_TIME)
    bench.run(2 * HOUR)
    bench.end_scripts()
    _trigger(bench, times=3)
    bench.run(HOUR - MINUTE)
    if len(bench.started) > 1:
        yield f"I4: {len(bench.started)} programs started within an hour, under a rate of one"


def an_update_bounds_what_went_without_a_bound() -> Iterator[str]:
    bench = _a_bench(FOR_EVER)
    for policy, times in (("allow", 2), ("queue", 1)):
        bench.request(an_apply(a_spec(trigger=every("100h"), overlap=policy, on_update="carry"), policy))
        _trigger(bench, times=times)
        bench.run(SECOND)
    bench.run(MINUTE)
    if len(bench.started) > 2:
        yield f"I4: {bench.started[-1].run_id} runs beside two others of its schedule, which wants one at a time"


def an_outage_begins_as_a_time_out_waits() -> Iterator[str]:
    """The other half came in time, to a topic partition of another holder, who is away as well."""
    name = next(name for name in (f"s-{number}" for number in range(99)) if schedule_shard("flights", name, 4) % 2 == 0)
    bench = Bench(topic_partitions=2)
    bench.run(SECOND)
    pair = all_of(on_data("a"), on_data("b"), correlate="data_partition", timeout="30s")
    bench.request(an_apply(a_spec(name, pair)))
    bench.run(SECOND)
    bench.event(an_event("d1", "a"), 0)
    bench.event(an_event("d1", "b"), 1)
    bench.run(33 * SECOND)
    bench.lose(lambda effect: isinstance(effect, Commit | Write | Read | ReadRange), times=EVERY_TIME)
    bench.run(2 * PATIENCE_MS)
    bench.as_usual()
    bench.run(MINUTE)
    for what, _, nominal, _ in bench.ledger():
        yield f"I3: what came at {nominal} ended as {what}, and its other half had come in time"


def an_update_raises_the_limit_of_what_waits() -> Iterator[str]:
    bench = _a_bench(FOR_EVER)
    for most in (1, 3):
        limits = [at_most(most, "program")]
        spec = a_spec(trigger=every("10h"), constraints=limits, overlap="allow", on_update="carry")
        bench.request(an_apply(spec, f"{most} at most"))
        bench.run(SECOND)
        if most == 1:
            _trigger(bench, times=5)
            bench.run(SECOND)
    bench.run(10 * MINUTE)
    if len(bench.started) < 3:
        yield f"liveness: {len(bench.started)} of five jobs run for ten minutes, under a limit of three"


def a_job_is_cancelled_between_two_that_are_merged() -> Iterator[str]:
    bench = _a_bench(FOR_EVER)
    bench.request(an_apply(a_spec(trigger=every("10m"), overlap="queue")))
    bench.run(41 * MINUTE)
    jobs = sorted((from_item(Job, row) for row in bench.rows("J#")), key=lambda job: job.nominal)
    cancelled = [job for job in jobs if job.state == "pending_constraint"][1]
    bench.request({"id": "cancel", "type": "job.cancel", "namespace": "flights", "job_id": cancelled.id})
    bench.request(an_apply(a_spec(trigger=every("10m"), overlap="coalesce", on_update="carry"), "update"))
    bench.run(SECOND)
    assert cancelled.interval_start is not None
    for job in (from_item(Job, row) for row in bench.rows("J#")):
        assert job.interval_start is not None
        assert job.interval_end is not None
        if job.interval_start <= cancelled.interval_start < job.interval_end:
            yield f"I7: {cancelled.id} was cancelled, and its data are to be those of {job.id}"


def a_job_times_out_behind_one_that_does_not() -> Iterator[str]:
    bench = _a_bench(QUICK)
    for time_out in ("20h", "1h"):
        spec = a_spec(trigger=every("100h"), constraints=[TOMORROW], overlap="queue", on_update="carry")
        bench.request(an_apply({**spec, "pending_timeout": time_out}, time_out))
        _trigger(bench)
        bench.run(SECOND)
    bench.run(2 * HOUR)
    if not bench.ledger():
        yield "I1: a job whose time-out has passed an hour ago has come to no end"


def fifty_leaves_hear_of_one_run() -> Iterator[str]:
    bench = _a_bench()
    each = {"type": "any_of", "or_mode": "each", "triggers": [on_run_of("up")] * 50}
    bench.request(an_apply(a_spec("down", each, overlap="allow")))
    bench.request(an_apply(a_spec("up", every("100h"))))
    bench.run(SECOND)
    _trigger(bench, "up")
    bench.run(MINUTE)
    heard = sum(order.file == "/jobs/down.py" for order in bench.started)
    if heard < 50:
        yield f"I3: the end of a run counted for {heard} of the 50 leaves that wait for it"


def a_stop_finds_more_runs_than_the_view_holds() -> Iterator[str]:
    with patch.object(view, "ITEMS_MAX", 60), patch.object(runs, "READ_BY_NAME_MAX", 15):
        bench = _a_bench()

        def behaves(order: LaunchOrder) -> Behaviour:
            return FOR_EVER if len(bench.submitted_at) % 8 else NEVER_STARTS

        bench.behaves = behaves
        bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
        bench.run(14 * MINUTE)
        bench.request(a_request("delete"))
        bench.run(MINUTE)
        if bench.status_of("delete-nightly") != "accepted":
            yield "liveness: nobody answers the delete of a schedule that has more open runs than are kept of a shard"


def a_stream_passes_who_is_forced() -> Iterator[str]:
    bench = _a_bench(Behaviour(starts_after=10, runs_for=30 * SECOND))
    limit = at_most(1, "group", group="yard")
    rate = {"type": "rate", "max": 1, "per": "1d", "scope": "group", "group": "crowd"}
    times_out = {"pending_timeout": "1m", "pending_timeout_action": "force"}
    bench.request(an_apply(a_spec("forced", every("100h"), constraints=[limit, rate], **times_out)))
    bench.request(an_apply(a_spec("others", every("100h"), constraints=[limit], overlap="allow")))
    _trigger(bench, "forced")
    bench.run(MINUTE)
    _trigger(bench, "others", times=6)
    _trigger(bench, "forced")
    for _ in range(20):
        _trigger(bench, "others", times=2)
        bench.run(30 * SECOND)
    if sum(order.file == "/jobs/forced.py" for order in bench.started) < 2:
        yield f"order: a job that its time-out forces waits still, and {len(bench.started) - 1} others of its limit have started"


def a_window_closes_before_those_who_wait_for_a_limit() -> Iterator[str]:
    bench = _a_bench(Behaviour(starts_after=10, runs_for=10 * MINUTE))
    shared = [at_most(1, "group", group="yard")]
    for name, constraints in {"a": [*shared, UNTIL_0220], "b": shared}.items():
        bench.request(an_apply(a_spec(name, every("100h"), constraints=constraints, overlap="allow")))
    bench.run(SECOND)
    _trigger(bench, "b")
    _trigger(bench, "a", times=6)
    _trigger(bench, "b", times=2)
    bench.run(12 * MINUTE)
    _, ended, *begun = bench.marks
    free = (begun[0].at if begun else bench.now) - ended.at
    if free > 5 * SECOND:
        yield f"liveness: the slot of a limit stood free for {free} ms, and somebody waited for it"


def _a_bench(behaviour: Behaviour | None = None) -> Bench:
    bench = Bench(behaviour=behaviour)
    bench.run(SECOND)
    return bench


def _trigger(bench: Bench, name: str = "nightly", times: int = 1) -> None:
    for number in range(times):
        bench.request(a_request("trigger", name, request_id=f"now-{name}-{bench.now}-{number}"))


def an_inbox_is_full_of_repeats() -> Iterator[str]:
    """Somebody who has no answer asks again and again; the store takes 200 ms for each."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    apply, behind = an_apply(a_spec(trigger=every("1h")), "it"), a_request("delete", request_id="behind")
    bench.request(apply)
    bench.run(SECOND)
    bench.store_answers_after = 200
    for number, asked in enumerate([*[apply] * 60, behind]):
        origin = Position(bench.now, REQUESTS_ID, 1, number).text()
        row = InboxRow(namespace="flights", name="nightly", kind="Q", origin=origin, body=json.dumps(asked))
        bench.store.write([Put(row.key(0), {**to_item(row, row.key(0)), "rev": 1})])
    bench.give(Poked(0))
    bench.run(5 * SECOND)
    if bench.status_of("behind") is None:
        yield f"liveness: behind {60 - len(bench.rows('I#')) + 1} repeats a request has no answer after 5 s"


def an_id_is_used_again_when_its_answer_has_expired() -> Iterator[str]:
    bench = Bench(shards=1)
    bench.run(SECOND)
    apply = an_apply(a_spec(trigger=every("1h")), "it")
    bench.request(apply)
    bench.run(SECOND)
    bench.now += (RECEIPT_DAYS + 1) * DAY
    bench.store.expire(bench.now)
    bench.run(SECOND)
    bench.request(apply)
    bench.run(SECOND)
    if bench.status_of("it") != "unchanged":
        yield f"answers: what changes nothing was answered {bench.status_of('it')}, as it was months ago"


RULES_OF_LONG_WAITS = (
    Mutant(
        "admitted hours later",
        "an admission that the store leaves without an answer is sent until it gets through, and its rate counts it as of hours ago",
        breaks="I4",
        patches=(Patch(UnitOfWork, "send_until", sending_for_ever),),
        scenario=an_admission_has_no_answer_for_two_hours,
    ),
    Mutant(
        "runs without a permit",
        "what an older version let go without a bound counts for nothing when an update bounds the runs",
        breaks="I4",
        patches=(Patch(Memory, "without_permit", counting_permits_alone),),
        scenario=an_update_bounds_what_went_without_a_bound,
    ),
    Mutant(
        "patience in an outage",
        "the time-out of a pair waits by the clock for what nobody can read, and an outage ends it",
        breaks="I3",
        patches=(Patch(watermark, "LOOKS_APART_MS_MAX", by_the_clock),),
        scenario=an_outage_begins_as_a_time_out_waits,
    ),
    Mutant(
        "limit of before",
        "jobs that an update carries on wait in their queue for the limit of before",
        breaks="liveness",
        patches=(Patch(asking, "_has_moved", if_it_stands_aside_alone),),
        scenario=an_update_raises_the_limit_of_what_waits,
    ),
    Mutant(
        "merged over a gap",
        "jobs on either side of one that has ended by itself are merged, and its data are those of another one",
        breaks="I7",
        patches=(Patch(overlap, "_adjoin", whatever_lies_between),),
        scenario=a_job_is_cancelled_between_two_that_are_merged,
    ),
    Mutant(
        "time-outs of the first alone",
        "a job behind one that may wait for longer is not looked at, however long its own time-out has passed",
        breaks="I1",
        patches=(Patch(AdmitNext, "_decide_overdue", by_the_first_alone),),
        scenario=a_job_times_out_behind_one_that_does_not,
    ),
    Mutant(
        "leaves in one decision",
        "what dozens of leaves hear is counted in one decision, which no transaction holds",
        breaks="I3",
        patches=(Patch(count, "GROUPS_PER_DECISION", lambda _: EVERY_TIME),),
        scenario=fifty_leaves_hear_of_one_run,
    ),
    Mutant(
        "forced behind its rate",
        "what is forced asks for the rate that it ignores first, and stands in no limit's line before that has room",
        breaks="order",
        patches=(Patch(admit, "after_pending_timeout", asking_for_what_it_ignores),),
        scenario=a_stream_passes_who_is_forced,
    ),
    Mutant(
        "in line behind a window",
        "jobs behind one that a closed window holds up keep their places, and each is offered the slot in turn",
        breaks="liveness",
        patches=(Patch(AdmitNext, "_leave_queues", staying_in_line),),
        scenario=a_window_closes_before_those_who_wait_for_a_limit,
    ),
    Mutant(
        "a read for each repeat",
        "repeats of what is answered come as fast as a slow store is read, and who has no answer yet stands behind them",
        breaks="liveness",
        patches=(Patch(request, "_answer_at_hand", asking_the_store),),
        scenario=an_inbox_is_full_of_repeats,
    ),
    Mutant(
        "answers for ever",
        "an owner that has little to do answers an id that is used again from what has expired",
        breaks="answers",
        patches=(Patch(request, "_answer_at_hand", whenever_it_was_given),),
        scenario=an_id_is_used_again_when_its_answer_has_expired,
    ),
    Mutant(
        "runs by name",
        "of a schedule with more open runs than the view holds each is read by name, and no page of its stop is ever decided",
        breaks="liveness",
        patches=(Patch(ending, "runs_of", each_by_its_name),),
        scenario=a_stop_finds_more_runs_than_the_view_holds,
    ),
)
