"""Histories of a schedule on events, on a bench and in an automaton that shares nothing with production, and what they share.

Events come at full steps and deadlines between them, so that there is time to decide on each before the next comes. The owner
falls between any two of its effects, answers are lost, and writes of the dead arrive late.
"""

from __future__ import annotations

from typing import Any, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.oracles.composites.composites import Clock, Leaf, Some, Tree
from tests.oracles.composites.pairing import Fired
from tests.support.builders import EVENTS, SECOND, Doc, a_spec, an_apply, an_event
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.effects import Commit, Effect

STEP_MS = 10 * SECOND
TTLS = (None, None, 25 * SECOND, 45 * SECOND)
TIMEOUTS = (35 * SECOND, 95 * SECOND)
ON_TIMEOUT = st.sampled_from(("abort", "partial", "wait"))
LATE = st.sampled_from((None, 700))
"""How long after a crash what the dead owner had sent arrives, ms; None: never."""
PERIODS = (20 * SECOND, 30 * SECOND, 70 * SECOND)
PHASES = (2 * SECOND, 4 * SECOND)
"""Of leaves of time: after full steps, so that their ticks, and deadlines from them, are apart from all else by a second or more."""
INSTANT = st.tuples(st.integers(0, 99), st.lists(st.integers(0, 4), min_size=1, max_size=5))


class Wanted(Protocol):
    """An automaton."""

    @property
    def fired(self) -> list[Any]: ...

    @property
    def expired(self) -> list[str]: ...

    def event(self, dataset: str, data_partition: str, at: int) -> None: ...

    def pass_time(self, until: int) -> None: ...

    def restart(self) -> None: ...


@st.composite
def trees(draw: st.DrawFn, most: int = 2, depth: int = 3, clocks: int = 0) -> Some:
    """Trees of up to three levels; each leaf counts a dataset of its own, up to `most` data partitions of it, or is a clock."""
    names = iter("abcdefghijklmnopqrstuvwxyz0123456789")
    phases = iter(PHASES[:clocks])

    def node(levels: int) -> Tree:
        phase = next(phases, None) if clocks and draw(st.booleans()) else None
        if phase is not None:
            return Clock(
                next(names), ttl=draw(st.sampled_from(TTLS)), period=draw(st.sampled_from(PERIODS)), phase=phase
            )
        if levels == 0 or draw(st.integers(0, 2)) == 0:
            return Leaf(next(names), draw(st.integers(1, most)), draw(st.sampled_from(TTLS)))
        return some(levels)

    def some(levels: int) -> Some:
        children = [node(levels - 1) for _ in range(draw(st.integers(2, 3)))]
        return Some(draw(st.integers(1, len(children))), children)

    return some(depth - 1)


def document_of(tree: Tree) -> Doc:
    if isinstance(tree, Leaf):
        ttl = {} if tree.ttl is None else {"ttl": f"{tree.ttl}ms"}
        if isinstance(tree, Clock):
            return {"type": "every", "period": f"{tree.period}ms", "phase": f"{tree.phase}ms", **ttl}
        return {"type": "data_partitions", "dataset": tree.dataset, "count": tree.count, **ttl}
    children = [document_of(child) for child in tree.children]
    if tree.needed == len(children):
        return {"type": "all_of", "triggers": children}
    kind: Doc = {"type": "any_of"} if tree.needed == 1 else {"type": "at_least", "k": tree.needed}
    return {**kind, "triggers": children}


class Machine(RuleBasedStateMachine):
    """Production decides on a bench; the automaton says what that has to come to.

    Attributes:
        first_ms: When the first step is, after a bench begins.
        decided_ms: What was due so long before a step is decided at it.
        at_once: Events of one instant at most: what a job takes in until it starts is not the automaton's to say.
        datasets: What events may be of.
        names: Of leaves, by their places: what their ticks are called.
    """

    first_ms = SECOND
    decided_ms = SECOND
    at_once = 1

    wanted: Wanted
    trigger: Doc
    datasets: list[str]
    names: list[str]

    def start(self, late: int | None) -> None:
        self.numbers = 0
        self.sent: list[Doc] = []
        self.bench = ActorHarness()
        self.bench.late_writes_after = late
        self.bench.run(self.first_ms)
        self._apply()

    def _apply(self) -> None:
        self.numbers += 1
        spec = a_spec(trigger=self.trigger, args=[str(self.numbers)], overlap="allow")
        self.bench.request(an_apply(spec, f"apply-{self.numbers}"))
        self._go_on()

    def _go_on(self) -> None:
        self.bench.run(STEP_MS)
        self.wanted.pass_time(self.bench.now - self.decided_ms)

    @rule(instants=st.lists(INSTANT, min_size=1, max_size=4))
    def events(self, instants: list[tuple[int, list[int]]]) -> None:
        """Some of one dataset at one instant, then some of the same or another at the next."""
        for place, numbers in instants if self.datasets else ():
            dataset = self.datasets[place % len(self.datasets)]
            documents: list[Doc] = []
            for number in numbers[: self.at_once]:
                self.numbers += 1
                documents.append(an_event(f"p{number}", dataset, f"e{self.numbers}"))
                self.wanted.event(dataset, f"p{number}", self.bench.now)
            self.sent += documents
            self.bench.append(EVENTS, 0, *documents)
            self._go_on()

    @rule(place=st.integers(0, 99))
    def event_again(self, place: int) -> None:
        """Under an id that was counted already."""
        if self.sent:
            self.bench.event(self.sent[place % len(self.sent)])
        self._go_on()

    @rule(steps=st.integers(1, 5))
    def time(self, steps: int) -> None:
        for _ in range(steps):
            self._go_on()

    @rule()
    def update(self) -> None:
        self.wanted.restart()
        self._apply()

    @rule(effects=st.integers(1, 25))
    def crash_soon(self, effects: int) -> None:
        self.bench.crash_after = self.bench.effects_outside + effects

    @rule()
    def crash(self) -> None:
        self.bench.crash()

    @rule(number=st.integers(1, 3))
    def lose_an_answer(self, number: int) -> None:
        """No more than three in a row: behind six the owner's pauses outlast the step, and what has to come is late, not lost."""
        self.bench.as_usual()
        self.bench.lose_answer_of(a_commit, times=number)

    @invariant()
    def comes_to_the_same(self) -> None:
        if not hasattr(self, "bench"):
            return
        assert self.fired() == sorted((Fired(*job) for job in self.wanted.fired), key=str)
        assert self.expired() == sorted(self.wanted.expired)

    def fired(self) -> list[Fired]:
        """What each program was told, once for each run."""
        contexts: dict[str, Any] = {order.run_id: order.context for order in self.bench.started}
        told = (
            Fired(tuple(sorted(self._held(context))), bool(context["missing"]), context["correlation"])
            for context in contexts.values()
        )
        return sorted(told, key=str)

    def _held(self, context: Any) -> list[tuple[str, str]]:
        data = [(str(row["dataset"]), str(row["partition"])) for row in context["manifest"]]
        ticks = [(self.names[row["leaf"]], str(parse_instant(row["instant"]))) for row in context.get("ticks", ())]
        return data + ticks

    def expired(self) -> list[str]:
        return sorted(str(row["reason"]) for row in self.bench.rows("L#") if row["disposition"] == "expired")


class TickingMachine(Machine):
    """One whose trigger ticks."""

    @rule()
    def update(self) -> None:
        """Among calm: one that a crash and lost answers delay past a tick, some seconds, comes after it, and the automaton cannot say so."""
        self.bench.crash_after = None
        self.bench.as_usual()
        super().update()


def a_commit(effect: Effect) -> bool:
    return isinstance(effect, Commit)
