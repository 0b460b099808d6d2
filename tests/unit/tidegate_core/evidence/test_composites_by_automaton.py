"""Event triggers against an independent automaton, with the owner killed between any two of its effects (SEMANTICS 5, 6, CD-066)."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.oracles.composites.composites import OnTimeout, Some, leaves_of
from tests.oracles.composites.pairing import Paired
from tests.oracles.composites.single_leaf import Alone
from tests.support.builders import NOW, SECOND, Doc
from tests.support.harness.automaton_machine import (
    LATE,
    ON_TIMEOUT,
    STEP_MS,
    TIMEOUTS,
    TTLS,
    Machine,
    document_of,
    trees,
)
from tests.support.tier import at_night

WAITS = (None, 35 * SECOND, 65 * SECOND)
SETTLES = ((15 * SECOND, 15 * SECOND), (15 * SECOND, 35 * SECOND), (25 * SECOND, 35 * SECOND))
MIDNIGHTS = {"-02:14": NOW + 40 * SECOND, "-02:15": NOW + 100 * SECOND}
"""By fixed zones in which one is near."""


class AmidSteps(Machine):
    """All that is due is so amid two steps; midnights are 4 s after one."""

    first_ms = 6 * SECOND
    decided_ms = STEP_MS // 2


class Composites(AmidSteps):
    @initialize(tree=trees(), timeout=st.sampled_from(TIMEOUTS), on_timeout=ON_TIMEOUT, late=LATE)
    def begin(self, tree: Some, timeout: int, on_timeout: OnTimeout, late: int | None) -> None:
        self._waits_for(Paired(tree, timeout, on_timeout), late)

    def _waits_for(self, wanted: Paired, late: int | None, **pairing: Any) -> None:
        self.wanted = wanted
        self.datasets = [leaf.dataset for leaf in leaves_of(wanted.tree)]
        terms = {"timeout": f"{(wanted.timeout or 0) // SECOND}s", "on_timeout": wanted.on_timeout}
        self.trigger = {**document_of(wanted.tree), **terms, **pairing}
        self.start(late)


class PairedComposites(Composites):
    """Whose evidence never meets another's: of another value, another day, another alternative."""

    @initialize(
        trees=st.tuples(trees(), trees(most=1)),
        timeout=st.sampled_from(TIMEOUTS),
        on_timeout=ON_TIMEOUT,
        late=LATE,
        by_value=st.booleans(),
        zone=st.sampled_from((None, *MIDNIGHTS)),
        each=st.booleans(),
    )
    def begin(
        self,
        trees: tuple[Some, Some],
        timeout: int,
        on_timeout: OnTimeout,
        late: int | None,
        by_value: bool,
        zone: str | None,
        each: bool,
    ) -> None:
        tree = trees[by_value]
        pairing: Doc = {"correlate": "data_partition"} if by_value else {}
        if zone is not None:
            pairing["window"] = {"every": "day", "zone": zone}
        if each:
            tree.needed = 1
            pairing["or_mode"] = "each"
        midnights = () if zone is None else (MIDNIGHTS[zone], NOW + 86_400 * SECOND)
        self._waits_for(Paired(tree, timeout, on_timeout, by_value, midnights, each), late, **pairing)


class OneAlone(AmidSteps):
    """A leaf by itself: how much of what comes a job takes, and how long it waits for more."""

    @initialize(
        count=st.integers(1, 4),
        takes=st.sampled_from(("all", "exactly_n", *SETTLES)),
        ttl=st.sampled_from(TTLS),
        max_wait=st.sampled_from(WAITS),
        late=LATE,
    )
    def begin(
        self,
        count: int,
        takes: str | tuple[int, int],
        ttl: int | None,
        max_wait: int | None,
        late: int | None,
    ) -> None:
        exactly = takes == "exactly_n"
        settles, most = (None, None) if isinstance(takes, str) else takes
        self.wanted = Alone("a", count, exactly, ttl, max_wait, settles, most)
        self.datasets = ["a"]
        lengths = {"ttl": ttl, "max_wait": max_wait, "settle": settles, "max_settle": most}
        self.trigger = {
            "type": "data_partitions",
            "dataset": "a",
            "count": count,
            "take": "exactly_n" if exactly else "all",
            **{name: f"{length}ms" for name, length in lengths.items() if length is not None},
        }
        # What comes at one instant a job takes in until it starts, unless it takes so many exactly, or waits for more.
        self.at_once = 5 if exactly or settles is not None else 1
        self.start(late)


HISTORIES = settings(max_examples=at_night(25, else_=10), stateful_step_count=20, deadline=None)

TestComposites = Composites.TestCase
TestPairedComposites = PairedComposites.TestCase
TestOneAlone = OneAlone.TestCase
TestComposites.settings = TestPairedComposites.settings = TestOneAlone.settings = HISTORIES
