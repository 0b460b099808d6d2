"""Bugs in how a job that needs several limits lets others pass while it waits, and comes to its turn all the same (decision 24)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from unittest import mock

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import Stage
from tests.support.builders import HOUR, MINUTE, NOW, SECOND, Doc, a_job, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import Behaviour, Bench
from tests.support.harness.decision_harness import Desk
from tidegate_core.decisions.run_plane import admit, asking, home_limits, left_queues
from tidegate_core.effects import LaunchOrder, Poke
from tidegate_core.records.limits import Waiter
from tidegate_core.records.run_plane import Job
from tidegate_core.store import keys
from tidegate_core.store.values import Delete, Key, RangeRead
from tidegate_core.transactions import limits
from tidegate_core.transactions.unit_of_work import UnitOfWork

FIRST, LAST = sorted(("yard", "gate"), key=lambda group: keys.shared_limit("flights", "group", group))
"""Groups, in the order in which they are asked for."""
RATE: Final[Doc] = {"type": "rate", "max": 40, "per": "1h", "scope": "group", "group": "rated"}


RUN_FOR: Final = {"one": 17 * SECOND, "other": 11 * SECOND}
"""By the name of the schedule; that of others is two seconds, or, of those that are called `busy`, an hour."""


def name_of(order: LaunchOrder) -> str:
    schedule = order.context["schedule"]
    assert isinstance(schedule, dict)
    return str(schedule["name"])


def a_stage() -> Bench:
    def behaves(order: LaunchOrder) -> Behaviour:
        name = name_of(order)
        runs_for = HOUR if name.startswith("busy") else RUN_FOR.get(name, 2 * SECOND)
        return Behaviour(starts_after=10, runs_for=runs_for)

    bench = Stage().first
    bench.behaves = behaves
    return bench


def applies(bench: Bench, name: str, *constraints: Doc) -> None:
    bench.request(an_apply(a_spec(name, every("10h"), constraints=list(constraints), overlap="allow"), f"apply {name}"))
    bench.run(100)


def triggers(bench: Bench, *names: str) -> None:
    for name in names:
        bench.request(a_request("trigger", name, request_id=f"{name} at {bench.now}"))
        bench.run(50)


def ran(bench: Bench, name: str) -> bool:
    return any(name_of(order) == name for order in bench.started)


def door(group: str) -> Doc:
    return at_most(1, "group", group=group)


def many_wait_for_a_busy_limit_beside_a_rate() -> Iterable[str]:
    bench = a_stage()
    applies(bench, "busy", door("door"))
    applies(bench, "both", RATE, door("door"))
    applies(bench, "both-too", RATE, door("door"))
    applies(bench, "both-as-well", RATE, door("door"))
    applies(bench, "one", RATE)
    triggers(bench, "busy", *["both", "both-too", "both-as-well"] * 6)
    bench.run(10 * SECOND)
    triggers(bench, "one")
    bench.run(10 * SECOND)
    if not ran(bench, "one"):
        yield "liveness: a rate of 40 that nobody has used lets nobody pass"


def a_job_needs_two_limits_with_streams_before_them() -> Iterable[str]:
    bench = a_stage()
    for name, groups in (("one", [FIRST]), ("other", [LAST]), ("both", [FIRST, LAST])):
        applies(bench, name, *map(door, groups))
    triggers(bench, "one", "other", "other", "both")
    for _ in range(60):
        triggers(bench, "one", "other")
        bench.run(5 * SECOND)
    if not ran(bench, "both"):
        yield "liveness: a job that needs two limits is passed for ever by those that need one"


def the_last_word_comes_to_one_that_has_handed_back() -> Iterable[str]:
    bench = a_stage()
    applies(bench, "busy", door("door"))
    applies(bench, "busy-for-now", door("window"))
    applies(bench, "first", RATE, door("door"))
    applies(bench, "second", RATE, door("window"))
    triggers(bench, "busy", "busy-for-now", "first", "second")
    bench.run(5 * SECOND)
    (run_id,) = {each.run_id for each in bench.started if name_of(each) == "busy-for-now"}
    bench.request({"id": "stop", "type": "run.cancel", "namespace": "flights", "run_id": run_id})
    bench.run(MINUTE)
    if not ran(bench, "second"):
        yield "liveness: both limits have room, and the job that needs them waits on"


@dataclass(frozen=True)
class StandsAside:
    """The part of an admission that has a job wait, with the word for the first of two limits."""

    job: Job
    name: str = "admit"
    about: str = "flights/both"
    stale: tuple[Key, ...] = ()

    def decide(self, unit: UnitOfWork, now: int) -> None:
        first, last = (keys.shared_limit("flights", "group", group) for group in (FIRST, LAST))
        needs = [asking.Need(0, first, 1, offered=True, has_room=True), asking.Need(1, last, 1, False, False)]
        place = asking.wait_for(unit, self.job, needs, "medium", 4, now)
        unit.put(place.job, place.job.key(unit.shard))
        asking.mark(unit, [place], 4, now)


def a_home_takes_away_what_its_job_writes_again() -> Iterable[str]:
    desk, job = Desk(), a_job(1)
    desk.lay(job)
    desk.decide(StandsAside(job))
    asked = desk.record(Job, job.key(0))
    assert asked is not None
    rows = {limits.key_of(text) for text in asked.asked}
    again, _ = desk.prepare(StandsAside(asked), NOW + asking.KEEP_OFFER_MS)
    assert again is not None
    (row,) = rows & {action.key for action in again.actions}
    desk.store.write([Delete(row)])
    desk.store.transact(again)
    if desk.store.peek(row) is not None:
        yield "order: a row has come back into a queue that was seen empty"


def all_who_wait_for_a_limit_stand_aside() -> Iterable[str]:
    """Whoever waits for it waits for a busy one as well, and a job that aborts comes by: one of two slots is nobody's."""
    bench = a_stage()
    applies(bench, "busy", door(LAST))
    applies(bench, "both", at_most(2, "group", group=FIRST), door(LAST))
    applies(bench, "aborts", at_most(2, "group", group=FIRST, on_unmet="abort"))
    triggers(bench, "busy", "both", "both")
    bench.run(10 * SECOND)
    triggers(bench, "aborts")
    bench.run(10 * SECOND)
    if not ran(bench, "aborts"):
        yield "order: a job ended because of others whom its slot is not for"


def a_job_that_aborts_is_looked_at_while_it_waits_for_another_limit() -> Iterable[str]:
    """It stands in the queue of the limit at which it aborts, because it asks for both; its home is slow."""
    bench = a_stage()
    applies(bench, "busy", door(LAST))
    applies(bench, "both", at_most(5, "group", group=FIRST, on_unmet="abort"), door(LAST))
    triggers(bench, "busy")
    bench.hold_back(lambda effect: isinstance(effect, Poke) and effect.run_id is not None)
    triggers(bench, "both", "both")
    if any(kind == "skipped/concurrency" for kind, *_ in bench.ledger()):
        yield "order: a job ended because it waits itself"


def one_is_in_line_behind_many_who_stand_aside() -> Iterable[str]:
    """His own bound is reached for an hour, and a job that aborts comes behind him."""
    bench = a_stage()
    with mock.patch.object(left_queues, "ROWS_MAX", 2):
        applies(bench, "busy", door(LAST))
        applies(bench, "busy-too", at_most(5, "group", group=FIRST))
        applies(bench, "both", at_most(5, "group", group=FIRST), door(LAST))
        applies(bench, "narrow", at_most(1, "group", group=FIRST))
        applies(bench, "aborts", at_most(5, "group", group=FIRST, on_unmet="abort"))
        triggers(bench, "busy", "busy-too", "both", "both", "both", "narrow")
        bench.run(10 * SECOND)
        triggers(bench, "aborts")
        bench.run(MINUTE)
    if not any(kind == "skipped/concurrency" for kind, *_ in bench.ledger()):
        yield "liveness: a job that aborts waits, although it is not its turn"


def ending_behind_its_own_row(has_its_turn: Callable[..., bool]) -> Any:
    def has(unit: UnitOfWork, limit: Key, mine: Waiter, shards: int, now: int) -> bool:
        rows = unit.elsewhere(RangeRead(keys.shard_pk(limits.home_of(limit, shards)), *keys.waiters_of(limit)))
        return all(row["job_id"] != mine.job_id for row in rows) and has_its_turn(unit, limit, mine, shards, now)

    return has


def writing_rows_blindly(put: Callable[..., None]) -> Callable[..., None]:
    def written(unit: UnitOfWork, record: Any, key: Key) -> None:
        (unit.set_row if isinstance(record, Waiter) else partial(put, unit))(record, key)

    return written


def without_those_aside(_: Any) -> Callable[[Sequence[Waiter]], list[Waiter]]:
    return lambda waiters: [waiter for waiter in waiters if not waiter.aside]


def staying_aside(in_turn: Callable[..., Any]) -> Any:
    def turn(known: Sequence[Any]) -> Any:
        aside, last = in_turn(known)
        return (last[:-1], last[-1:]) if len(last) == len(known) else (aside, last)

    return turn


ASIDE: Final = (
    Mutant(
        "aborted behind those aside",
        "a job that aborts ends because of others who wait for another limit, and whom the free slots are not for",
        breaks="order",
        patches=(Patch(left_queues, "in_line", lambda _: list),),
        scenario=all_who_wait_for_a_limit_stand_aside,
    ),
    Mutant(
        "aborted behind itself",
        "a job that waits for one limit, and aborts at another one, ends because of its own row in the queue of that",
        breaks="order",
        patches=(Patch(admit, "has_its_turn", ending_behind_its_own_row),),
        scenario=a_job_that_aborts_is_looked_at_while_it_waits_for_another_limit,
    ),
    Mutant(
        "waiting behind a long queue",
        "a job that aborts waits until its time-out, because the rows that it reads of a long queue do not say that others come before it",
        breaks="liveness",
        patches=(Patch(left_queues, "_is_all_that_counts", lambda _: lambda *_: True),),
        scenario=one_is_in_line_behind_many_who_stand_aside,
    ),
    Mutant(
        "word kept",
        "jobs that wait for a busy limit keep every word of another one, and stop it for all",
        breaks="liveness",
        patches=(Patch(home_limits, "handed_back", lambda _: lambda *_: []),),
        scenario=many_wait_for_a_busy_limit_beside_a_rate,
    ),
    Mutant(
        "nobody's turn",
        "whoever stands aside is passed for as long as others come",
        breaks="liveness",
        patches=(Patch(home_limits, "in_line", without_those_aside),),
        scenario=a_job_needs_two_limits_with_streams_before_them,
    ),
    Mutant(
        "aside for ever",
        "a job with the word for its last limit does not come back for what it has handed back",
        breaks="liveness",
        patches=(Patch(asking, "_in_turn", staying_aside),),
        scenario=the_last_word_comes_to_one_that_has_handed_back,
    ),
    Mutant(
        "row brought back",
        "a job writes a row that it has seen, and that its home has taken away since: the queue is closed with it in there",
        breaks="order",
        patches=(Patch(UnitOfWork, "put", writing_rows_blindly),),
        scenario=a_home_takes_away_what_its_job_writes_again,
    ),
)
