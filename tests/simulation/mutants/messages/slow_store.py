"""Rules of recurring messages, and of suspensions that end by themselves, while the store is slow or silent: each switched off in the
interleaving that it is against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import a_commit
from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_recurring, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import Bench
from tidegate_core.decisions.delivery_plane import recurring_loading
from tidegate_core.decisions.delivery_plane.loading import place_of
from tidegate_core.decisions.delivery_plane.recurring import Fire
from tidegate_core.decisions.delivery_plane.recurring_source import RecurringSource
from tidegate_core.decisions.delivery_plane.recurring_summons import LEFT_AFTER_MS, Summoned
from tidegate_core.decisions.outage_watch import sign_of_life
from tidegate_core.decisions.run_plane import until
from tidegate_core.effects import Commit, Effect, NotProduced, Produce, Read, ReadRange, Write
from tidegate_core.model.instants import format_instant, parse_instant
from tidegate_core.store.values import Item, Key
from tidegate_core.triggers import search

EVERY_TIME = 10**9

# -- bugs -------------------------------------------------------------------------------------------------------------


def by_its_age_alone(_: Callable[[Summoned, Key], bool]) -> Callable[[Summoned, Key], bool]:
    def is_left(summoned: Summoned, key: Key) -> bool:
        return place_of(key.sk)[0] < summoned._plane.host.now - LEFT_AFTER_MS and key not in summoned._waiting

    return is_left


def for_nobody(_: Callable[[RecurringSource, str], None]) -> Callable[[RecurringSource, str], None]:
    return lambda source, ref: None


def by_its_origin_alone(_: Any) -> Callable[[Item | None, Fire], bool]:
    return lambda item, fire: item is not None and item["origin"] == fire.interval.origin


def whenever_somebody_comes(_: Any) -> Any:
    return lambda before, definition, now: now


def behind_the_position_alone(_: Any) -> Any:
    return lambda source, record, interval, behind: behind


# -- the stories ------------------------------------------------------------------------------------------------------


def a_silence_ends_and_the_sweep_is_before_the_look_ahead() -> Iterator[str]:
    bench = _a_bench()
    _apply(bench, "ping", every("2h"), catchup={"mode": "all"})
    _apply(bench, "often", every("1m"))
    first = _first(bench)
    bench.run(30 * MINUTE)
    bench.store_answers_after = 3
    bench.lose(_to_the_store, times=EVERY_TIME)
    bench.run(8 * HOUR - 30 * MINUTE + 20 * SECOND)
    bench.end_scripts()
    bench.lose(lambda effect: isinstance(effect, ReadRange) and effect.range.low.startswith("D#"), times=2)
    bench.run(2 * MINUTE)
    bench.as_usual()
    bench.run(5 * HOUR)
    yield from _missing(bench, first, 2 * HOUR)


def a_search_is_near_when_the_lane_comes_to_it() -> Iterator[str]:
    with patch.object(search, "STEPS_PER_DECISION", 3):
        bench = _a_bench()
        _apply(bench, "ping", every("1m", exclude=[{"type": "cron", "expression": "* 4 * * *"}]))
        _apply(bench, "often", every("30s"))
        bench.run(6_335 * SECOND)
        bench.hold_back(a_commit("control"))
        _apply(bench, "third", every("7d"))
        bench.run(140 * SECOND)
        bench.as_usual()
        bench.run(5 * HOUR)
        last = max(_delivered(bench))
        if last < bench.now - 2 * MINUTE:
            yield f"I1: nothing was sent for {(bench.now - last) // MINUTE} minutes"


def the_last_instant_of_an_outage_was_refused_by_itself() -> Iterator[str]:
    """The owner falls within the grace; the next one sends before it has recovered, and falls; the third knows of the outage."""
    bench = _a_bench()
    _apply(bench, "ping", every("25s"))
    first = _first(bench)
    bench.run(70 * SECOND)
    served = {0: bench.actor.served_until(bench.now) or 0}
    bench.store.write([sign_of_life(bench.holding.owner, "node", bench.now, served, 10**10)])
    bench.run(SECOND)
    bench.hold_back(
        lambda effect: isinstance(effect, ReadRange) and effect.range.low.startswith("T#"), times=EVERY_TIME
    )
    bench.hold_back(_to_out, times=2)
    bench.away(20 * SECOND)
    bench.run(11 * SECOND + 100)
    bench.answer_with(_to_out, NotProduced("refused", "not allowed"))
    bench.run(24 * SECOND)
    bench.end_scripts()
    bench.away(14 * SECOND)
    bench.run(3 * MINUTE)
    yield from _missing(bench, first, 25 * SECOND)


def a_request_comes_behind_a_record_that_moves_out() -> Iterator[str]:
    """A fire of it goes out from memory before the move is answered."""
    bench = _a_bench(recurring_near_ms=61 * SECOND)
    _apply(bench, "ping", every("2m"))
    bench.run(125 * SECOND)
    bench.hold_back(a_commit("recurring"))
    while not bench.holds_something:
        bench.run(SECOND)
    before = len(bench.on("out"))
    bench.request(a_request("suspend", "ping"))
    bench.end_scripts()
    while len(bench.on("out")) == before:
        bench.run(SECOND)
    bench.release()
    bench.run(15 * SECOND)
    cancelled = sum(int(str(row.get("cancelled", 0))) for row in [*bench.rows("PROGRESS"), *bench.rows("Y#")])
    if cancelled:
        yield f"I8: {cancelled} fires are counted as cancelled that were delivered"


def a_suspension_ends_at_an_instant() -> Iterator[str]:
    bench = _a_bench()
    bench.request(an_apply(a_spec(trigger=every("10m"))))
    end = (bench.now // (10 * MINUTE) + 2) * 10 * MINUTE
    bench.request(a_request("suspend", mode="drop", until=format_instant(end)))
    bench.run(SECOND)
    bench.store_answers_after = 2
    bench.run(end - bench.now + MINUTE)
    if not any(row["nominal"] == end for row in (*bench.rows("J#"), *bench.rows("R#"), *bench.rows("L#"))):
        yield "I1: what was due as the suspension ended was made by nobody"


def _a_bench(**holding: Any) -> Bench:
    bench = Bench(shards=1, **holding)
    bench.run(SECOND)
    return bench


def _apply(bench: Bench, name: str, trigger: Doc, **more: object) -> None:
    bench.request(an_apply({**a_recurring(name, trigger, payload={"of": name}), **more}, f"apply-{name}"))


def _first(bench: Bench) -> int:
    while not _delivered(bench):
        bench.run(SECOND)
    return bench.now


def _to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def _to_the_store(effect: Effect) -> bool:
    return isinstance(effect, Commit | Write | Read | ReadRange)


def _delivered(bench: Bench) -> list[int]:
    return [
        parse_instant(sent.headers["tidegate-nominal"]) for sent in bench.on("out") if sent.document["of"] == "ping"
    ]


def _missing(bench: Bench, first: int, period: int) -> Iterator[str]:
    found: set[int] = set()
    for sent in bench.on("out"):
        if sent.document["of"] == "ping":
            last = sent.headers["tidegate-nominal"]
            begin = sent.headers.get("tidegate-covered-from", last)
            found |= set(range(parse_instant(begin), parse_instant(last) + 1, period))
    missing = sorted(set(range(first, bench.now, period)) - found)
    if missing:
        yield f"I1: {len(missing)} instants were never delivered and no delivery stands for them, the first at {missing[0]}"


RULES_OF_SLOW_STORES = (
    Mutant(
        "summons left by age",
        "behind a silence the sweep takes a summons for one that nobody could deal with: what `all` wants is told as missed",
        breaks="I1",
        patches=(Patch(Summoned, "is_left", by_its_age_alone),),
        scenario=a_silence_ends_and_the_sweep_is_before_the_look_ahead,
    ),
    Mutant(
        "search left alone",
        "how far a trigger was searched stands for its next fire for good",
        breaks="I1",
        patches=(Patch(RecurringSource, "placed", for_nobody),),
        scenario=a_search_is_near_when_the_lane_comes_to_it,
    ),
    Mutant(
        "left to one for all",
        "what stands for a whole outage is left to the rows of its last instant, which bring that one alone",
        breaks="I1",
        patches=(Patch(recurring_loading, "_is_of", by_its_origin_alone),),
        scenario=the_last_instant_of_an_outage_was_refused_by_itself,
    ),
    Mutant(
        "cancelled behind the position",
        "what was sent of a record that was moving out is counted as cancelled by a request, and as delivered",
        breaks="I8",
        patches=(Patch(RecurringSource, "taken_through", behind_the_position_alone),),
        scenario=a_request_comes_behind_a_record_that_moves_out,
    ),
    Mutant(
        "suspended until noticed",
        "a suspension lasts until somebody ends it, and what is due at its promised end is made by nobody",
        breaks="I1",
        patches=(Patch(until, "_ended_at", whenever_somebody_comes),),
        scenario=a_suspension_ends_at_an_instant,
    ),
)
