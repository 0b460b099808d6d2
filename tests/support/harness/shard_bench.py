"""A bench with one schedule that is run by hand, and the effects that these tests look for."""

from __future__ import annotations

from tests.support.builders import MINUTE, NOW, RUNS, SECOND, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.rows.effects import Effect, Lookup, Submit
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import Run

CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00"}
OPENS = NOW + 46 * MINUTE + 40 * SECOND
FOR_EVER = Behaviour(runs_for=None)


def a_bench(behaviour: Behaviour | None = None) -> ActorHarness:
    bench = ActorHarness(behaviour=behaviour)
    bench.run(SECOND)
    return bench


def triggered(bench: ActorHarness) -> str:
    """A schedule that is run by hand; returns the run's id."""
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    return str(bench.receipts()["trigger-nightly"]["id"])


def the_run(bench: ActorHarness) -> Run | None:
    found = [from_item(Run, row) for row in bench.rows("R#") if "ended_at" not in row]
    return found[0] if found else None


def a_submit(effect: Effect) -> bool:
    return isinstance(effect, Submit)


def a_lookup(effect: Effect) -> bool:
    return isinstance(effect, Lookup)


def states(bench: ActorHarness) -> list[str]:
    return [str(each.document["state"]) for each in bench.on(RUNS)]
