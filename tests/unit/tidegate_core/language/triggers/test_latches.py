"""The automaton of evidence against an independent reference that keeps all entries and looks at every millisecond anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.tier import examples
from tidegate_core.language.triggers.latches import Counted, Due, Latches, Terms

LEAVES = 3


@dataclass
class Reference:
    """States the rules as they are read in the docs, over lists, without any counter.

    Attributes:
        needs: How much each leaf needs, and how many leaves have to be satisfied.
    """

    needs: tuple[int, ...]
    k: int
    terms: Terms
    entries: list[list[Counted]] = field(default_factory=lambda: [[] for _ in range(LEAVES)])
    begins: list[int | None] = field(default_factory=lambda: [None] * LEAVES)
    last_at: int = 0
    satisfied_at: int | None = None

    def counts(self) -> tuple[int, ...]:
        return tuple(sum(entry.weight for entry in leaf) for leaf in self.entries)

    def add(self, entry: Counted) -> None:
        kept = self.entries[entry.leaf]
        if entry.gone or entry.anew:
            kept = [each for each in kept if each.about != entry.about]
        if not entry.gone:
            kept = [each for each in kept if each.key != entry.key] + [entry]
        begin = self.begins[entry.leaf]
        self.begins[entry.leaf] = None if not kept else entry.at if begin is None else begin
        self.entries[entry.leaf] = kept
        self.last_at = max(self.last_at, entry.at)
        satisfied = sum(count >= need for count, need in zip(self.counts(), self.needs, strict=True))
        if self.satisfied_at is None and satisfied >= self.k:
            self.satisfied_at = entry.at

    def at(self, now: int) -> str | None:
        """What is due at this very millisecond; latches that end here are dropped by it."""
        terms, begun = self.terms, [begin for begin in self.begins if begin is not None]
        if self.satisfied_at is not None:
            if terms.settle is None:
                return None
            assert terms.max_settle is not None
            ready = now >= self.last_at + terms.settle or now >= self.satisfied_at + terms.max_settle
            return "fire" if ready else None
        if not begun:
            return None
        if terms.ends_at is not None and now >= terms.ends_at:
            return "partial" if terms.on_timeout == "partial" else "abort"
        if terms.timeout is not None and terms.on_timeout != "wait" and now >= min(begun) + terms.timeout:
            return terms.on_timeout
        if terms.max_wait is not None and now >= min(begun) + terms.max_wait:
            return "fire"
        for leaf, begin in enumerate(self.begins):
            ttl = terms.ttls[leaf]
            if begin is not None and ttl is not None and now >= begin + ttl:
                self.entries[leaf], self.begins[leaf] = [], None
        return None


DURATION = st.none() | st.integers(1, 30)
TERMS = st.builds(
    Terms,
    ttls=st.tuples(*([DURATION] * LEAVES)),
    timeout=DURATION,
    on_timeout=st.sampled_from(["abort", "partial", "wait"]),
    ends_at=st.none() | st.integers(20, 60),
    max_wait=DURATION,
)
SETTLING = st.builds(Terms, ttls=st.just((None,) * LEAVES), settle=st.integers(1, 9), max_settle=st.integers(9, 20))


class Machine(RuleBasedStateMachine):
    """Entries and time, in any order; time moves a millisecond at a time in the reference, from deadline to deadline here."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.ended = False
        self.reference: Reference | None = None
        self.log: list[Counted | int] = []

    @precondition(lambda self: self.reference is None or self.ended)
    @rule(terms=TERMS | SETTLING, needs=st.tuples(*([st.integers(1, 3)] * LEAVES)), k=st.integers(1, LEAVES))
    def begin(self, terms: Terms, needs: tuple[int, ...], k: int) -> None:
        def is_enough(counts: Sequence[int]) -> bool:
            return sum(count >= need for count, need in zip(counts, needs, strict=True)) >= k

        self.terms, self.is_enough, self.now, self.ended, self.log = terms, is_enough, 0, False, []
        self.reference = Reference(needs, k, terms)
        self.latches = Latches(is_enough, terms)

    @precondition(lambda self: self.reference is not None and not self.ended)
    @rule(
        leaf=st.integers(0, LEAVES - 1),
        key=st.sampled_from("klm"),
        about=st.sampled_from("xy"),
        weight=st.integers(0, 3),
        how=st.sampled_from(["", "", "gone", "anew"]),
    )
    def arrive(self, leaf: int, key: str, about: str, weight: int, how: str) -> None:
        """Also a key that was used before, about something else."""
        entry = Counted(leaf, key, self.now, weight, about, gone=how == "gone", anew=how == "anew")
        if entry.gone and not self.latches.holds(entry):
            return
        assert self.reference is not None
        self.reference.add(entry)
        self.latches.add(entry)
        self.log.append(entry)

    @precondition(lambda self: self.reference is not None and not self.ended)
    @rule(by=st.integers(1, 12))
    def pass_time(self, by: int) -> None:
        assert self.reference is not None
        expected = None
        until = self.now + by
        while self.now < until and expected is None:
            self.now += 1
            expected = self.reference.at(self.now)
        outcome = None
        while outcome is None and (due := self.latches.due()) is not None and due.at <= self.now:
            if due.outcome != "forget":
                outcome = due.outcome
            for leaf in due.leaves:
                self.latches.forget(leaf)
                self.log.append(leaf)
        assert outcome == expected
        self.ended = expected is not None

    @precondition(lambda self: self.reference is not None)
    @rule()
    def goes_on_as_a_copy(self) -> None:
        """What becomes of the one that was copied is nothing to the copy."""
        copied, self.latches = self.latches, self.latches.copy()
        for leaf in range(LEAVES):
            copied.add(Counted(leaf, "other", 1_000))
            copied.forget(leaf)

    @invariant()
    def says_the_same(self) -> None:
        if self.reference is not None:
            assert self.latches.counts == self.reference.counts()
            assert self.latches.is_satisfied == (self.reference.satisfied_at is not None)

    @invariant()
    def comes_back_from_its_log(self) -> None:
        """A crash anywhere: whoever reads the entries back stands where the one before stood."""
        if self.reference is not None:
            again = Latches(self.is_enough, self.terms)
            for line in self.log:
                again.forget(line) if isinstance(line, int) else again.add(line)
            assert (again.counts, again.due()) == (self.latches.counts, self.latches.due())


Machine.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=30)
TestLatchesAgainstTheReference = Machine.TestCase


@given(ttl=st.integers(1, 20), late=st.integers(0, 40), is_latched=st.booleans())
def test_given_an_entry_read_late_then_it_is_stale_when_it_had_ceased_to_hold(
    ttl: int, late: int, is_latched: bool
) -> None:
    latches = Latches(lambda counts: False, Terms((ttl, None)))
    latches.add(Counted(0 if is_latched else 1, "x", 40))
    assert latches.is_stale(Counted(0, "y", late)) == latches.ends_amid(Counted(0, "y", late)) == (late + ttl <= 40)


@given(late=st.integers(0, 40))
def test_given_an_entry_read_late_then_deadlines_count_from_it(late: int) -> None:
    latches = Latches(lambda counts: False, Terms((None,), max_wait=50))
    latches.add(Counted(0, "x", 40))
    latches.add(Counted(0, "y", late))
    assert (latches.first_at, latches.due()) == (late, Due(late + 50, "fire"))
