"""Rules of what one delivery stands for behind an outage, each switched off in the interleaving that it is against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import a_commit
from tests.support.builders import MINUTE, SECOND, a_recurring, an_apply, every
from tests.support.harness.actor_harness import Bench
from tidegate_core.decisions.delivery_plane.firing import GROUPS_UNDER_WAY_MAX
from tidegate_core.decisions.delivery_plane.recurring_loading import Templates
from tidegate_core.decisions.delivery_plane.recurring_source import RecurringSource
from tidegate_core.decisions.delivery_plane.slots import Slotted, Stage
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import Commit, Effect, NotProduced, Produce, Read, ReadRange, Write
from tidegate_core.model.instants import parse_instant
from tidegate_core.records.outages import Outage
from tidegate_core.store import keys

EVERY_TIME = 10**9


def nothing_waits(_: Callable[[RecurringSource, int], None]) -> Callable[[RecurringSource, int], None]:
    return lambda source, instant: None


def giving_way_as_it_is_read_ahead(load: Callable[[Templates, Sequence[Slotted]], Operation[None]]) -> Any:
    """What follows on it takes its place before it was taken."""

    def loaded(templates: Templates, rows: Sequence[Slotted]) -> Operation[None]:
        yield from load(templates, rows)
        source = templates._plane.recurring
        for row in rows:
            if row.stage is Stage.READY and row.message is None and row.occurrence is not None:
                templates._plane.close(row, Stage.GONE)
                source._await_next(source._near[row.occurrence.ref], row.place)

    return loaded


def making_anew_all_that_waits(outage_ends: Callable[[RecurringSource, tuple[Outage, ...]], None]) -> Any:
    def ended(source: RecurringSource, gaps: tuple[Outage, ...]) -> None:
        held, source.plane.slots.held = source.plane.slots.held, set()
        outage_ends(source, gaps)
        source.plane.slots.held = held

    return ended


# -- the stories ------------------------------------------------------------------------------------------------------


def a_group_is_answered_while_the_gap_is_written() -> Iterator[str]:
    """As many groups as may be are under way, and a few fires wait that are no more than late."""
    bench = _a_bench()
    bench.run(25 * SECOND)
    bench.lose(_to_the_store, times=EVERY_TIME)
    bench.run(MINUTE)
    bench.hold_back(_to_out, times=EVERY_TIME)
    bench.run((GROUPS_UNDER_WAY_MAX + 4) * SECOND)
    bench.end_scripts()
    bench.hold_back(_to_out, times=EVERY_TIME)
    bench.lose(a_commit("outage"), times=EVERY_TIME)
    bench.run(SECOND)
    bench.release_last()
    bench.end_scripts()
    bench.hold_back(_to_out, times=EVERY_TIME)
    bench.run(SECOND)
    bench.as_usual()
    yield from _missing(bench)


def a_refused_fire_is_read_ahead_before_the_gap_is_known() -> Iterator[str]:
    """The successor acquires within the grace, and reads for longer; as many groups as may be are before the refused one."""
    bench = _a_bench()
    bench.lose(a_commit("checkpoint"), times=EVERY_TIME)
    while len(bench.on("out")) < GROUPS_UNDER_WAY_MAX:
        bench.run(SECOND)
    bench.answer_with(_to_out, NotProduced("refused", "not allowed"))
    bench.run(2 * SECOND)
    bench.end_scripts()
    bench.hold_back(_of_timers, times=EVERY_TIME)
    bench.crash()
    bench.run(50 * SECOND)
    bench.end_scripts()
    bench.hold_back(_to_out, times=EVERY_TIME)
    bench.release()
    bench.run(SECOND)
    bench.as_usual()
    yield from _missing(bench)


def a_request_holds_a_schedule_through_a_gap() -> Iterator[str]:
    """It leaves out what was missed, and both of its versions have that."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    spec = {**a_recurring("ping", every("10s"), payload={"of": "ping"}), "catchup": {"mode": "none"}}
    bench.request(an_apply(spec))
    bench.run(26 * SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Read) and keys.recurring(0, "flights", "ping") in effect.keys)
    bench.request(an_apply({**spec, "target": a_recurring(payload={"of": "another"})["target"]}, "another"))
    bench.lose(_to_the_store, times=EVERY_TIME)
    bench.run(95 * SECOND)
    bench.as_usual()
    bench.run(20 * SECOND)
    rows = [*bench.rows("PROGRESS"), *bench.rows("Y#")]
    counted = sum(int(str(row.get(name, 0))) for row in rows for name in ("delivered", "expired", "cancelled"))
    first = min(parse_instant(sent.headers["tidegate-nominal"]) for sent in bench.on("out"))
    were_due = len(range(first, bench.now + 1, 10 * SECOND))
    if counted > were_due:
        yield f"I8: {were_due} fires were due, and {counted} are counted"


def _a_bench() -> Bench:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    return bench


def _to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def _to_the_store(effect: Effect) -> bool:
    return isinstance(effect, Commit | Write | Read | ReadRange)


def _of_timers(effect: Effect) -> bool:
    return isinstance(effect, ReadRange) and effect.range.low.startswith("D#")


def _missing(bench: Bench) -> Iterator[str]:
    bench.run(30 * SECOND)
    found: set[int] = set()
    for sent in bench.on("out"):
        last = sent.headers["tidegate-nominal"]
        first = sent.headers.get("tidegate-covered-from", last)
        found |= set(range(parse_instant(first), parse_instant(last) + 1, SECOND))
    missing = sorted(set(range(min(found), bench.now, SECOND)) - found)
    if missing:
        yield f"I1: {len(missing)} instants were never delivered and no delivery stands for them, the first at {missing[0]}"


RULES_OF_GAPS = (
    Mutant(
        "gap overtaken",
        "a fire is taken while the gap is written that it lies in, and what follows on it there is never sent",
        breaks="I1",
        patches=(Patch(RecurringSource, "gap_ends", nothing_waits),),
        scenario=a_group_is_answered_while_the_gap_is_written,
    ),
    Mutant(
        "gap before what is read ahead",
        "a refused fire gives way to what follows on it before it is taken: a gap begins before both, and what follows is never sent",
        breaks="I1",
        patches=(Patch(Templates, "load", giving_way_as_it_is_read_ahead),),
        scenario=a_refused_fire_is_read_ahead_before_the_gap_is_known,
    ),
    Mutant(
        "left out of both versions",
        "what a request holds is made anew for a gap that ends meanwhile: what that leaves out is counted for both versions",
        breaks="I8",
        patches=(Patch(RecurringSource, "outage_ends", making_anew_all_that_waits),),
        scenario=a_request_holds_a_schedule_through_a_gap,
    ),
)
