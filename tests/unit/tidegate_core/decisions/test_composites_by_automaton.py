"""Event triggers against an independent automaton, with the owner killed between any two of its effects (SEMANTICS 5, 6, CD-066)."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidegate_core.effects import Commit, Effect
from tidegate_testkit.automaton.alone import Alone
from tidegate_testkit.automaton.composites import Leaf, OnTimeout, Some, Tree, leaves_of
from tidegate_testkit.automaton.pairing import Fired, Paired
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import EVENTS, NOW, SECOND, Doc, a_spec, an_apply, an_event

STEP_MS = 10 * SECOND
"""Events come at full steps and deadlines between them, so that there is time to decide on each before the next comes."""
FIRST_MS = 6 * SECOND
"""The first step; midnights are 4 s after one."""
TTLS = (None, None, 25 * SECOND, 45 * SECOND)
TIMEOUTS = (35 * SECOND, 95 * SECOND)
WAITS = (None, 35 * SECOND, 65 * SECOND)
SETTLES = ((15 * SECOND, 15 * SECOND), (15 * SECOND, 35 * SECOND), (25 * SECOND, 35 * SECOND))
MIDNIGHTS = {"-02:14": NOW + 40 * SECOND, "-02:15": NOW + 100 * SECOND}
"""By fixed zones in which one is near."""

INSTANT = st.tuples(st.integers(0, 99), st.lists(st.integers(0, 4), min_size=1, max_size=5))


@st.composite
def trees(draw: st.DrawFn, most: int = 2, depth: int = 3) -> Some:
    """Trees of up to three levels; each leaf counts a dataset of its own, up to `most` data partitions of it."""
    names = iter("abcdefghijklmnopqrstuvwxyz0123456789")

    def node(levels: int) -> Tree:
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
        return {"type": "data_partitions", "dataset": tree.dataset, "count": tree.count, **ttl}
    children = [document_of(child) for child in tree.children]
    if tree.needed == len(children):
        return {"type": "all_of", "triggers": children}
    kind: Doc = {"type": "any_of"} if tree.needed == 1 else {"type": "at_least", "k": tree.needed}
    return {**kind, "triggers": children}


class Machine(RuleBasedStateMachine):
    """Production decides on a bench; the automaton says what that has to come to."""

    at_once = 1
    """Events of one instant at most: what a job takes in until it starts is not the automaton's to say."""

    wanted: Paired | Alone
    datasets: list[str]
    trigger: Doc

    def start(self, late: int | None) -> None:
        self.numbers = 0
        self.sent: list[Doc] = []
        self.bench = Bench()
        self.bench.late_writes_after = late
        self.bench.run(FIRST_MS)
        self._apply()

    def _apply(self) -> None:
        self.numbers += 1
        spec = a_spec(trigger=self.trigger, args=[str(self.numbers)], overlap="allow")
        self.bench.request(an_apply(spec, f"apply-{self.numbers}"))
        self._go_on()

    def _go_on(self) -> None:
        self.bench.run(STEP_MS)
        self.wanted.pass_time(self.bench.now - STEP_MS // 2)

    @rule(instants=st.lists(INSTANT, min_size=1, max_size=4))
    def events(self, instants: list[tuple[int, list[int]]]) -> None:
        """Some of one dataset at one instant, then some of the same or another at the next."""
        for place, numbers in instants:
            dataset = self.datasets[place % len(self.datasets)]
            documents: list[Doc] = []
            for number in numbers[: self.at_once]:
                self.numbers += 1
                documents.append(an_event(f"p{number}", dataset, f"e{self.numbers}"))
                self.wanted.event(dataset, f"p{number}", self.bench.now)
            self.sent += documents
            self.bench.append(EVENTS, 0, *documents)
            self._go_on()

    @precondition(lambda self: hasattr(self, "bench") and self.sent)
    @rule(place=st.integers(0, 99))
    def event_again(self, place: int) -> None:
        """Under an id that was counted already."""
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
        self.bench.lose_answer_of(a_commit, times=number)

    @invariant()
    def comes_to_the_same(self) -> None:
        if not hasattr(self, "bench"):
            return
        assert fired(self.bench) == sorted(self.wanted.fired, key=str)
        assert expired(self.bench) == sorted(self.wanted.expired)


class Composites(Machine):
    @initialize(
        tree=trees(),
        timeout=st.sampled_from(TIMEOUTS),
        on_timeout=st.sampled_from(("abort", "partial", "wait")),
        late=st.sampled_from((None, 700)),
    )
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
        on_timeout=st.sampled_from(("abort", "partial", "wait")),
        late=st.sampled_from((None, 700)),
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


class OneAlone(Machine):
    """A leaf by itself: how much of what comes a job takes, and how long it waits for more."""

    @initialize(
        count=st.integers(1, 4),
        takes=st.sampled_from(("all", "exactly_n", *SETTLES)),
        ttl=st.sampled_from(TTLS),
        max_wait=st.sampled_from(WAITS),
        late=st.sampled_from((None, 700)),
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


def a_commit(effect: Effect) -> bool:
    return isinstance(effect, Commit)


def fired(bench: Bench) -> list[Fired]:
    """What each program was told, once for each run."""
    contexts: dict[str, Any] = {order.run_id: order.context for order in bench.started}
    told = (
        Fired(
            tuple(sorted((row["dataset"], row["partition"]) for row in context["manifest"])),
            bool(context["missing"]),
            context["correlation"],
        )
        for context in contexts.values()
    )
    return sorted(told, key=str)


def expired(bench: Bench) -> list[str]:
    return sorted(str(row["reason"]) for row in bench.rows("L#") if row["disposition"] == "expired")


HISTORIES = settings(max_examples=25, stateful_step_count=20, deadline=None)

TestComposites = Composites.TestCase
TestPairedComposites = PairedComposites.TestCase
TestOneAlone = OneAlone.TestCase
TestComposites.settings = TestPairedComposites.settings = TestOneAlone.settings = HISTORIES
