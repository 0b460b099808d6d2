"""Random worlds of a schedule on events, once with an owner all along, once with hours in which nobody is there: the same runs (SEMANTICS 6.2).

All comes at full steps; ticks, deadlines, outages and requests have places of their own between them. Requests are made while
somebody is there: those of an outage are applied behind it. A run that takes the only slot is open during an outage and shortly behind
it, in both worlds: a job takes in what comes until it starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import (
    NOW,
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
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import LaunchOrder

UNIT = 6 * SECOND
STEP = 10 * UNIT
START = NOW - NOW % STEP + STEP
TICKS, DEADLINES, OUTAGES, REQUESTS = 2 * UNIT, 5 * UNIT, 15 * UNIT // 2, 9 * UNIT
"""Behind a step."""
STEPS = 50
WORLDS = tier.at_night(16, else_=4)
MODES = ("hold", "hold", "freeze", "drain", "drop")


@dataclass(slots=True)
class World:
    """What happens, by steps.

    Attributes:
        outages: Their ends by their begins.
    """

    trigger: Doc
    events: dict[int, Doc] = field(default_factory=dict)
    requests: dict[int, Doc] = field(default_factory=dict)
    outages: dict[int, int] = field(default_factory=dict)


def a_length(random: Random, most: int) -> str:
    return f"{random.randint(0, most) * STEP + DEADLINES}ms"


def a_trigger(random: Random) -> Doc:
    leaves = [on_data(dataset, random.choice((1, 1, 2))) for dataset in "abc"[: random.randint(1, 2)]]
    for leaf in leaves:
        leaf.update({"ttl": a_length(random, 20)} if random.random() < 0.3 else {})
        leaf.update({"kinds": ["created", "deleted"]} if random.random() < 0.3 else {})
    terms = {"timeout": a_length(random, 30), "on_timeout": random.choice(("abort", "partial", "wait"))}
    period = random.choice((3, 7, 12)) * STEP
    clock = every(f"{period}ms", phase=f"{(START + TICKS) % period}ms")
    match random.choice(("alone", "exactly_n", "ticks", "instances", "instances", "data")):
        case "alone":
            settle = random.randint(0, 6)
            lengths = {"settle": settle, "max_settle": settle + random.randint(0, 9), "max_wait": random.randint(0, 20)}
            return {**leaves[0], **{name: f"{many * STEP + DEADLINES}ms" for name, many in lengths.items()}}
        case "exactly_n":
            return {**leaves[0], "take": "exactly_n"}
        case "ticks":
            return all_of({**clock, "ttl": a_length(random, 15)}, *leaves, **terms)
        case "instances":
            return all_of({**clock, "driver": "time"}, *leaves, **terms)
        case _:
            return all_of(*leaves, on_data("d"), **terms)


def a_world(random: Random) -> World:
    world = World(a_trigger(random))
    datasets = [leaf["dataset"] for leaf in world.trigger.get("triggers", [world.trigger]) if "dataset" in leaf]
    mode: str | None = None
    until: int | None = None
    step, version = 2, 0
    while step < STEPS:
        if until is not None and until < step:
            mode = until = None
        length = random.randint(1, 15)
        ends_away = until is not None and step - 1 <= until <= step + length + 1
        if random.random() < 0.2 and (mode in {None, "hold"} or not ends_away):
            world.outages[step] = step + length
            step += length + 1
        elif until == step:
            pass
        elif random.random() < 0.25:
            version += 1
            spec = a_document(world.trigger, version)
            how = random.choice(("carry", "carry", "finish_old", "restart"))
            world.requests[step] = an_apply(spec, f"q-{step}", on_update=how)
        elif mode is None and random.random() < 0.6:
            mode = random.choice(MODES)
            until = step + random.randint(1, 15) if random.random() < 0.5 else None
            ends = {} if until is None else {"until": format_instant(START + until * STEP + REQUESTS)}
            world.requests[step] = a_request("suspend", request_id=f"q-{step}", mode=mode, **ends)
        elif mode is not None and random.random() < 0.5:
            mode = until = None
            world.requests[step] = a_request("resume", request_id=f"q-{step}")
        step += random.randint(1, 3)
    for step in range(1, STEPS):
        if random.random() < 0.7:
            kind = "deleted" if random.random() < 0.15 else "created"
            event = an_event(
                f"p{random.randrange(5)}", random.choice(datasets), f"e-{step}", kind=kind, version=f"{step}"
            )
            world.events[step] = event
    return world


def a_document(trigger: Doc, version: int) -> Doc:
    return a_spec(trigger=trigger, args=[f"{version}"], constraints=[at_most(1, "group", group="slot")])


class Player:
    """Plays a world on a bench.

    Args:
        world: What happens.
        faults: Draws where the owner falls beside its outages; None: it is there all along.
    """

    def __init__(self, world: World, faults: Random | None) -> None:
        self._world = world
        self._faults = faults
        self._blocks = 0
        self.bench = ActorHarness(shards=1)
        self.bench.behaves = self._behaves
        self.bench.now = START - DEADLINES
        self.bench.run(SECOND)
        self.bench.request(an_apply(a_document(world.trigger, 0)))
        blocker = a_spec("blocker", every("365d"), constraints=[at_most(1, "group", group="slot")])
        self.bench.request(an_apply(blocker))

    def _behaves(self, order: LaunchOrder) -> Behaviour:
        return Behaviour(runs_for=self._blocks if "blocker" in order.file else 300)

    def play(self) -> list[Any]:
        step = 1
        while step < STEPS + 20:
            self._to(step, 0)
            self._event(step)
            self._to(step, OUTAGES)
            if step in self._world.outages:
                step = self._outage(step, self._world.outages[step])
            if self._faults is not None and self._faults.random() < 0.1:
                self.bench.crash_after = self.bench.effects_outside + self._faults.randint(1, 40)
            self._to(step, REQUESTS)
            if step in self._world.requests:
                self.bench.crash_after = None
                self.bench.request(self._world.requests[step])
            step += 1
        self.bench.request(a_request("resume", request_id="last"))
        self.bench.run(20 * STEP)
        return self._runs()

    def _to(self, step: int, behind: int) -> None:
        self.bench.run(START + step * STEP + behind - self.bench.now)

    def _event(self, step: int) -> None:
        if step in self._world.events:
            self.bench.event(self._world.events[step])

    def _outage(self, begin: int, end: int) -> int:
        """Returns the step at which somebody is there again."""
        self._blocks = (end - begin) * STEP + 6 * UNIT
        self.bench.request(a_request("trigger", "blocker", f"blocker-{begin}"))
        self.bench.run(SECOND)
        is_away = self._faults is not None
        if is_away:
            self.bench.crash_after = None
            self.bench.drain()
        for step in range(begin + 1, end + 1):
            if is_away:
                self.bench.now = START + step * STEP
            else:
                self._to(step, 0)
            self._event(step)
        if is_away:
            self.bench.now = START + end * STEP + OUTAGES
            self.bench.new_actor()
            self.bench.settle()
        else:
            self._to(end, OUTAGES)
        return end

    def _runs(self) -> list[Any]:
        runs = {order.run_id: order for order in self.bench.started if "blocker" not in order.file}
        return sorted((self._told(order) for order in runs.values()), key=str)

    def _told(self, order: LaunchOrder) -> Any:
        context: Any = order.context
        manifest = sorted((row["dataset"], row["partition"], row["version"]) for row in context["manifest"])
        ticks = [row["instant"] for row in context.get("ticks", ())]
        return manifest, ticks, context["missing"], order.args


@pytest.mark.parametrize("seed", range(WORLDS))
def test_given_hours_in_which_nobody_is_there_then_the_same_runs_come_of_the_same_events(seed: int) -> None:
    world = a_world(Random(seed))
    assert Player(world, Random(seed)).play() == Player(world, None).play()
