"""Recurring messages of an owner that is there all along, in any silences, freezes and broker's troubles: each instant is delivered, stood for
by one delivery, or told as missed, and by one of them; and the position goes on.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.support import tier
from tests.support.builders import SECOND, a_recurring, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.recurring_bench import AWAY, REFUSED, covered, payload, to_out
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.effects import Commit, Effect, Read, ReadRange, Write

EVERY_TIME = 10_000_000
FOUND_BY = {"lost": (82, 515, 708, 879, 882, 1166), "stuck": (304, 390, 472, 486, 752, 1063, 1067, 1078)}
"""Seeds that found the defects of `test_recurring_slow_store.py`, by what they saw."""
SEEDS = sorted({*range(20), *FOUND_BY["lost"], *FOUND_BY["stuck"]}) if tier.ALL else range(8)
PERIODS = ((5, 7, 20), (30, 45, 90, 150))


def to_the_store(effect: Effect) -> bool:
    return isinstance(effect, Commit | Write | Read | ReadRange)


@pytest.mark.parametrize("seed", SEEDS)
def test_given_any_silences_then_each_instant_is_accounted_for_once(seed: int) -> None:
    draw = random.Random(seed)
    bench = ActorHarness(shards=1, recurring_near_ms=draw.choice([61_000, 3_600_000]))
    bench.run(SECOND)
    periods = {name: draw.choice(choice) * SECOND for name, choice in zip("ab", PERIODS, strict=True)}
    for name, period in periods.items():
        catch_up = {"mode": draw.choice(["last", "last", "none", "all"])}
        spec = {**a_recurring(name, every(f"{period // SECOND}s"), payload=name), "catchup": catch_up}
        bench.request(an_apply(spec, f"apply-{name}"))
    bench.run(draw.randint(20, 200) * SECOND)
    for _ in range(draw.randint(1, 4)):
        _befall(bench, draw)
        bench.run(draw.randint(0, 40_000))
    bench.run(400 * SECOND)
    assert bench.now - bench.actor.planes[0].checkpoints.stored[0] <= 200 * SECOND
    assert [each for name, period in periods.items() for each in _unaccounted(bench, name, period)] == []


def _befall(bench: ActorHarness, draw: random.Random) -> None:
    what = draw.random()
    if what < 0.5:
        bench.lose(to_the_store, times=EVERY_TIME)
        if draw.random() < 0.4:
            bench.answer_with(to_out, AWAY, times=EVERY_TIME)
        bench.run(draw.randint(40_000, 300_000))
        bench.end_scripts()
        if draw.random() < 0.6:
            held = a_commit("outage", "recurring", "checkpoint")
            bench.hold_back(held, times=draw.randint(1, 3), answer_only=draw.random() < 0.5)
        if draw.random() < 0.3:
            bench.lose_answer_of(a_commit("outage"), times=draw.randint(1, 3))
        bench.run(draw.randint(0, 90_000))
        bench.as_usual()
    elif what < 0.7:
        bench.now += draw.randint(30_000, 400_000)
    else:
        bench.answer_with(to_out, draw.choice([AWAY, REFUSED]), times=draw.randint(1, 30))
        bench.run(draw.randint(1000, 60_000))
        bench.as_usual()


def _unaccounted(bench: ActorHarness, name: str, period: int) -> Iterator[str]:
    """Yields the instants that nothing, or more than one thing, became of; a delivery that was repeated under its id is one."""
    spans: dict[str, tuple[int, int]] = {}
    for sent in bench.on("out"):
        if payload(sent) == name:
            nominal = parse_instant(sent.headers["tidegate-nominal"])
            first, _, _ = covered(sent) or (nominal, nominal, 1)
            spans.setdefault(sent.headers["tidegate-id"], (first, nominal))
    for notice in bench.notices("recurring_not_sent"):
        if notice.fields["schedule"] == f"flights/{name}":
            first, last = int(str(notice.fields["first"])), int(str(notice.fields["last"]))
            spans[f"not sent {first}"] = (first, last)
    became: dict[int, list[str]] = {}
    for what, (first, last) in spans.items():
        for instant in range(first, last + 1, period):
            became.setdefault(instant, []).append(what)
    for instant in range(min(became), bench.now - 10 * SECOND, period):
        found = became.get(instant, [])
        if len(found) != 1:
            yield f"{name} {instant}: {found}"
