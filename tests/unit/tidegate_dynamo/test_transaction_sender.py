"""Settling on a store that loses, delays and repeats: the verdict must agree with what is in the store at rest."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.store_operations import (
    Applied,
    Cancelled,
    Check,
    Condition,
    Delete,
    Item,
    Key,
    Lost,
    Page,
    Put,
    RangeRead,
    RawOutcome,
    RefusalCode,
    Throttled,
    Transaction,
)
from tidegate_core.writes.settlement import ATTEMPTS_MAX
from tidegate_dynamo.transaction_sender import carry_out
from tidegate_memory.store import MemoryStore
from tidegate_ports.store import StoreUnavailable

JOB = Key("SH#0001", "J#1")
LEASE = Key("SH#0001", "LEASE")
HOLDS = Condition("epoch = :mine", {}, {":mine": 7})
FAULTS = ("fenced", "none", "lost after", "lost before", "late", "twice", "throttled", "conflict", "rival")


def moved(revision: int, token: str) -> Put:
    seen = Condition("rev = :seen", {}, {":seen": revision - 1})
    return Put(JOB, {"pk": JOB.pk, "sk": JOB.sk, "rev": revision, "w": token}, seen)


def single(token: str = "mine") -> Transaction:
    return Transaction("move", (moved(1, token),), token, JOB)


def fenced(token: str = "mine") -> Transaction:
    return Transaction("move", (Check(LEASE, HOLDS), moved(1, token)), token, JOB)


@dataclass
class FaultyStore:
    """Does to each send what the script says; once the script ends, only what was put off is left to happen."""

    script: Iterator[str]
    unreadable: bool = False
    inside: MemoryStore = field(default_factory=MemoryStore)
    late: list[Transaction] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)
    sends: int = 0

    def __post_init__(self) -> None:
        self.inside.write(
            [Put(JOB, {"pk": JOB.pk, "sk": JOB.sk, "rev": 0}), Put(LEASE, {"pk": LEASE.pk, "sk": LEASE.sk, "epoch": 7})]
        )
        self.inside.on_applied = lambda written, _: self.applied.extend(
            [written.token] if isinstance(written, Transaction) else []
        )

    def transact(self, transaction: Transaction) -> RawOutcome:
        self.sends += 1
        match next(self.script, "none"):
            case "lost after":
                self.inside.transact(transaction)
                return Lost()
            case "lost before":
                return Lost()
            case "late":
                self.late.append(transaction)
                return Lost()
            case "twice":
                self.late.append(transaction)
            case "throttled":
                return Throttled()
            case "conflict":
                return Cancelled(tuple(RefusalCode("TransactionConflict") for _ in transaction.actions))
            case "fenced":
                self.inside.write([Put(LEASE, {"pk": LEASE.pk, "sk": LEASE.sk, "epoch": 8})])
            case "rival" if transaction.token not in self.applied:
                # Only while ours is not in: whoever comes after us has read what we wrote.
                self.inside.transact(single(f"rival {self.sends}"))
        return self.inside.transact(transaction)

    def come_to_rest(self) -> None:
        for transaction in self.late:
            self.inside.transact(transaction)

    def write(self, actions: Sequence[Put | Delete]) -> Sequence[Put | Delete]:
        return self.inside.write(actions)

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        if self.unreadable:
            raise StoreUnavailable("nobody answers")
        return self.inside.get(keys)

    def query(self, wanted: RangeRead) -> Page:
        return self.inside.query(wanted)


class Pauses(list[float]):
    """Takes note instead of sleeping."""

    def __call__(self, pause_ms: float) -> None:
        self.append(pause_ms)


def carried_out(store: FaultyStore, transaction: Transaction) -> Committed | Refused | Unavailable:
    return carry_out(store, transaction, Pauses(), lambda: 1.0)


@pytest.mark.parametrize("make", [single, fenced])
@given(
    script=st.lists(st.sampled_from(FAULTS), max_size=ATTEMPTS_MAX + 1),
    unreadable=st.booleans(),
    remembers_tokens=st.booleans(),
)
def test_given_any_faults_then_the_verdict_agrees_with_the_store_at_rest(
    make: Callable[[], Transaction], script: list[str], unreadable: bool, remembers_tokens: bool
) -> None:
    store = FaultyStore(iter(script), unreadable, MemoryStore(remembers_tokens=remembers_tokens))
    transaction = make()
    verdict = carried_out(store, transaction)
    settled = list(store.applied)
    store.come_to_rest()
    assert store.applied.count("mine") <= 1
    match verdict:
        case Committed():
            assert "mine" in settled
        case Refused():
            assert "mine" not in store.applied
        case Unavailable():
            pass  # it may be there, or may not: the author asks again
    assert store.sends <= ATTEMPTS_MAX


@pytest.mark.parametrize("make", [single, fenced])
@given(script=st.lists(st.sampled_from(FAULTS), max_size=3 * ATTEMPTS_MAX), remembers_tokens=st.booleans())
def test_given_an_author_that_sends_again_after_unavailable_then_it_learns_of_its_own_success(
    make: Callable[[], Transaction], script: list[str], remembers_tokens: bool
) -> None:
    store = FaultyStore(iter(script), inside=MemoryStore(remembers_tokens=remembers_tokens))
    verdict = carried_out(store, make())
    while isinstance(verdict, Unavailable):
        verdict = carry_out(store, make(), Pauses(), lambda: 1.0, doubtful=True)
    store.come_to_rest()
    assert (verdict == Committed()) == ("mine" in store.applied)


def test_given_a_lost_answer_and_then_a_refusal_then_the_witness_tells_of_our_success() -> None:
    store = FaultyStore(iter(["lost after"]), inside=MemoryStore(remembers_tokens=False))
    assert carried_out(store, fenced()) == Committed()
    assert store.applied == ["mine"]


def test_given_a_lost_answer_and_a_rival_then_the_refusal_stands() -> None:
    store = FaultyStore(iter(["lost before", "rival"]))
    verdict = carried_out(store, fenced())
    rival: Item = {"pk": JOB.pk, "sk": JOB.sk, "rev": 1, "w": "rival 2"}
    assert verdict == Refused(((JOB, rival),), doubtful=True)


@pytest.mark.parametrize(
    ("unreadable", "verdict"), [(True, Unavailable("store, transaction mark")), (False, Committed())]
)
def test_given_a_refusal_that_does_not_show_the_witness_then_it_is_read(
    unreadable: bool, verdict: Committed | Unavailable
) -> None:
    store = FaultyStore(iter(["lost after", "fenced"]), unreadable, MemoryStore(remembers_tokens=False))
    unguarded = Put(JOB, {"pk": JOB.pk, "sk": JOB.sk, "w": "mine"})
    mark = Transaction("mark", (Check(LEASE, HOLDS), unguarded), "mine", JOB)
    assert carried_out(store, mark) == verdict


def test_given_endless_conflicts_then_the_refusal_names_nobody() -> None:
    store = FaultyStore(iter(["conflict"] * 100))
    assert carried_out(store, fenced()) == Refused(())
    assert store.sends == ATTEMPTS_MAX


def test_given_conflicts_after_a_lost_answer_then_nothing_is_known() -> None:
    store = FaultyStore(iter(["lost after", *["conflict"] * 100]))
    assert isinstance(carried_out(store, fenced()), Unavailable)


def test_given_throttling_then_the_pauses_grow_to_their_limit() -> None:
    """CD-101."""
    store = FaultyStore(iter(["throttled"] * 5))
    pauses = Pauses()
    assert carry_out(store, single(), pauses, lambda: 0.5) == Committed()
    assert pauses == [25, 50, 100, 200, 400]


def test_given_an_undoubted_refusal_that_shows_our_own_token_then_it_is_our_success() -> None:
    """An author that forgot that it had asked before, for instance after a restart of its driver."""
    store = FaultyStore(iter([]))
    assert store.inside.transact(single()) == Applied()
    assert carried_out(store, single()) == Committed()
