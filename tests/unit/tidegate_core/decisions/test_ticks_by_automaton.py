"""Composites with leaves of time against an independent automaton, with the owner killed between any two effects (SEMANTICS 6.5, CD-067)."""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tidegate_core.effects import Commit, Effect
from tidegate_core.model.instants import parse_instant
from tidegate_testkit.automaton.composites import Automaton, Clock, Leaf, Some, Tree, leaves_of
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import SECOND, Doc, a_spec, an_apply, an_event

STEP_MS = 10 * SECOND
"""Events come at full steps and deadlines between them, so that there is time to decide on each before the next comes."""
TTLS = (None, None, 25 * SECOND, 45 * SECOND)
PHASES = (2 * SECOND, 4 * SECOND)
"""Of leaves of time: after full steps, so that their ticks, and deadlines from them, are apart from all else by a second or more."""
TIMEOUTS = (35 * SECOND, 95 * SECOND)


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> Tree:
    """Trees of up to three levels; each leaf counts a dataset of its own."""
    names = iter("abcdefghijklmnopqrstuvwxyz0123456789")
    phases = iter(PHASES)

    def node(levels: int) -> Tree:
        phase = next(phases, None) if draw(st.booleans()) else None
        if phase is not None:
            period = draw(st.sampled_from((20, 30, 70))) * SECOND
            return Clock(next(names), ttl=draw(st.sampled_from(TTLS)), period=period, phase=phase)
        if levels == 0 or draw(st.integers(0, 2)) == 0:
            return Leaf(next(names), draw(st.integers(1, 2)), draw(st.sampled_from(TTLS)))
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


class Ticking(RuleBasedStateMachine):
    """Production decides on a bench; the automaton says what they have to come to."""

    @initialize(
        tree=trees(),
        timeout=st.sampled_from(TIMEOUTS),
        on_timeout=st.sampled_from(("abort", "partial", "wait")),
        late=st.sampled_from((None, 700)),
    )
    def begin(
        self, tree: Tree, timeout: int, on_timeout: Literal["abort", "partial", "wait"], late: int | None
    ) -> None:
        self.leaves = leaves_of(tree)
        self.trigger = {**document_of(tree), "timeout": f"{timeout // SECOND}s", "on_timeout": on_timeout}
        self.numbers = 0
        self.sent: list[Doc] = []
        self.bench = Bench()
        self.bench.late_writes_after = late
        self.bench.run(SECOND)
        self.wanted = Automaton(tree, timeout, on_timeout, now=self.bench.now)
        self._apply()

    def _apply(self) -> None:
        self.numbers += 1
        spec = a_spec(trigger=self.trigger, args=[str(self.numbers)], overlap="allow")
        self.bench.request(an_apply(spec, f"apply-{self.numbers}"))
        self._go_on()

    def _go_on(self) -> None:
        self.bench.run(STEP_MS)
        self.wanted.pass_time(self.bench.now - SECOND)  # All that was due by then is decided.

    @rule(place=st.integers(0, 99), number=st.integers(0, 2))
    def event(self, place: int, number: int) -> None:
        self.numbers += 1
        leaf = self.leaves[place % len(self.leaves)]
        if isinstance(leaf, Clock):
            return  # Nobody announces its ticks.
        document = an_event(f"p{number}", leaf.dataset, f"e{self.numbers}")
        self.sent.append(document)
        self.wanted.event(leaf.dataset, f"p{number}", self.bench.now)
        self.bench.event(document)
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
        """Among calm: one that a crash and lost answers delay past a tick, some seconds, comes after it, and the automaton cannot say so."""
        self.bench.crash_after = None
        self.bench.as_usual()
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
        self.bench.lose_answer_of(a_commit, times=number)

    @invariant()
    def comes_to_the_same(self) -> None:
        if not hasattr(self, "bench"):
            return
        assert fired(self.bench, self.leaves) == sorted(self.wanted.fired)
        assert expired(self.bench) == sorted(self.wanted.expired)


def a_commit(effect: Effect) -> bool:
    return isinstance(effect, Commit)


def fired(bench: Bench, leaves: list[Leaf]) -> list[tuple[tuple[tuple[str, str], ...], bool]]:
    """What each program was told, once for each run."""
    contexts: dict[str, Any] = {order.run_id: order.context for order in bench.started}
    return sorted(
        (
            tuple(
                sorted(
                    [
                        *((row["dataset"], row["partition"]) for row in context["manifest"]),
                        *(
                            (leaves[row["leaf"]].dataset, str(parse_instant(row["instant"])))
                            for row in context["ticks"]
                        ),
                    ]
                )
            ),
            bool(context["missing"]),
        )
        for context in contexts.values()
    )


def expired(bench: Bench) -> list[str]:
    return sorted(str(row["reason"]) for row in bench.rows("L#") if row["disposition"] == "expired")


TestTicking = Ticking.TestCase
TestTicking.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
