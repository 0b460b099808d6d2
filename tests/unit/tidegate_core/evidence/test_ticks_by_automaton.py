"""Composites with leaves of time against an independent automaton, with the owner killed between any two effects (SEMANTICS 6.5, CD-067)."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.oracles.composites.composites import Automaton, Clock, OnTimeout, Some, leaves_of
from tests.oracles.composites.tick_instances import Instances
from tests.support.builders import NOW, SECOND
from tests.support.harness.automaton_machine import (
    LATE,
    ON_TIMEOUT,
    PERIODS,
    PHASES,
    TIMEOUTS,
    TickingMachine,
    document_of,
    trees,
)
from tests.support.tier import at_night
from tidegate_core.evidence.tick_instances import OPEN_MAX


class Ticking(TickingMachine):
    """Leaves of time latch as events do."""

    @initialize(tree=trees(clocks=len(PHASES)), timeout=st.sampled_from(TIMEOUTS), on_timeout=ON_TIMEOUT, late=LATE)
    def begin(self, tree: Some, timeout: int, on_timeout: OnTimeout, late: int | None) -> None:
        leaves = leaves_of(tree)
        self.names = [leaf.dataset for leaf in leaves]
        self.datasets = [leaf.dataset for leaf in leaves if not isinstance(leaf, Clock)]
        self.trigger = {**document_of(tree), "timeout": f"{timeout // SECOND}s", "on_timeout": on_timeout}
        self.wanted = Automaton(tree, timeout, on_timeout, now=NOW + self.first_ms)
        self.start(late)


class Opening(TickingMachine):
    """`driver: time`: each tick of one of them opens an instance of its own."""

    wanted: Instances

    @initialize(
        others=trees(depth=2),
        place=st.integers(0, 3),
        period=st.sampled_from(PERIODS),
        timeout=st.sampled_from(TIMEOUTS),
        on_timeout=ON_TIMEOUT,
        late=LATE,
    )
    def begin(
        self, others: Some, place: int, period: int, timeout: int, on_timeout: OnTimeout, late: int | None
    ) -> None:
        clock = Clock("tick", period=period, phase=PHASES[0])
        children = [*others.children[:place], clock, *others.children[place:]]
        tree = Some(len(children), children)
        self.names = [leaf.dataset for leaf in leaves_of(tree)]
        self.datasets = [leaf.dataset for leaf in leaves_of(others)]
        documents = [
            {**document_of(child), "driver": "time"} if child is clock else document_of(child) for child in children
        ]
        self.trigger = {
            "type": "all_of",
            "triggers": documents,
            "timeout": f"{timeout // SECOND}s",
            "on_timeout": on_timeout,
        }
        self.wanted = Instances(tree, timeout, on_timeout, OPEN_MAX, NOW + self.first_ms)
        self.start(late)

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            skipped = [row["nominal"] for row in self.bench.rows("L#") if row["reason"] == "open_instances"]
            assert sorted(map(int, map(str, skipped))) == self.wanted.skipped


TestTicking = Ticking.TestCase
TestOpening = Opening.TestCase
TestTicking.settings = TestOpening.settings = settings(
    max_examples=at_night(15, else_=8), stateful_step_count=20, deadline=None
)
