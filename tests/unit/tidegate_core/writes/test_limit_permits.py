"""Permits of shared limits and the queue before them, as the store takes their writes (I4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.rows import keys
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Action, Applied, Transaction
from tidegate_core.writes.limit_permits import (
    HOLDERS_INLINE_MAX,
    Permit,
    close_queue,
    homes_of,
    lapse_offers,
    mark_queue,
    offer_slots,
    owner_shard_of,
    return_permits,
    take_permit,
)
from tidegate_memory.store import MemoryStore

LIMIT = keys.shared_limit("flights", "program", "p")
WIDE = HOLDERS_INLINE_MAX + 1
TOKENS = count()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(checks_witness=False)


def change(store: MemoryStore, *actions: Action) -> bool:
    return isinstance(store.transact(Transaction("permit", actions, f"token-{next(TOKENS)}", None)), Applied)


def take(store: MemoryStore, run: str, most: int, *, offered: bool = False) -> bool:
    return change(store, *take_permit(Permit.of(LIMIT, run, most), most, offered=offered))


def give_back(store: MemoryStore, *permits: Permit) -> bool:
    removals = [permit.removal() for permit in permits if not permit.inline]
    return change(store, return_permits(LIMIT, permits), *removals)


def limit_in(store: MemoryStore) -> SharedLimit:
    return SharedLimit.of(store.peek(LIMIT))


def runs_with_items(store: MemoryStore) -> list[str]:
    return sorted(str(item["run_id"]) for item in store.items() if str(item["sk"]).startswith("PERMIT#"))


def test_given_a_limit_then_permits_are_taken_up_to_it_once_each_and_go_back_once(store: MemoryStore) -> None:
    assert take(store, "r-1", 2)
    assert not take(store, "r-1", 2)
    assert take(store, "r-2", 2)
    assert not take(store, "r-3", 2)
    assert limit_in(store) == SharedLimit(in_use=2, holders=frozenset({"r-1", "r-2"}))
    assert give_back(store, Permit(LIMIT, "r-1"))
    assert not give_back(store, Permit(LIMIT, "r-1"))
    assert take(store, "r-3", 2)
    assert limit_in(store) == SharedLimit(in_use=2, holders=frozenset({"r-2", "r-3"}))


def test_given_a_wide_limit_then_each_run_has_an_item_of_its_own_taken_and_removed_once(store: MemoryStore) -> None:
    wide = 1_000
    assert all(take(store, f"r-{number}", wide) for number in range(wide))
    assert not take(store, "one more", wide)
    assert limit_in(store) == SharedLimit(in_use=wide)
    assert len(runs_with_items(store)) == wide
    gone = Permit.of(LIMIT, "r-7", wide)
    assert give_back(store, gone)
    assert not give_back(store, gone)
    assert not take(store, "r-8", wide), "it holds one already"
    assert take(store, "r-7", wide)


def test_given_schedules_that_allow_different_numbers_then_each_permit_goes_back_as_it_was_taken(
    store: MemoryStore,
) -> None:
    assert take(store, "narrow", 2)
    assert take(store, "wide", WIDE)
    assert not take(store, "narrow too", 2)
    assert (limit_in(store).in_use, limit_in(store).holders, runs_with_items(store)) == (
        2,
        frozenset({"narrow"}),
        ["wide"],
    )
    texts = [Permit.of(LIMIT, run, most).text() for run, most in (("narrow", 2), ("wide", WIDE))]
    assert give_back(store, Permit.named(texts[0], "narrow"), Permit.named(texts[1], "wide"))
    assert limit_in(store) == SharedLimit()
    assert runs_with_items(store) == []


def test_given_a_queue_then_a_permit_is_only_there_for_who_has_the_word(store: MemoryStore) -> None:
    assert change(store, mark_queue(LIMIT, "r-1@1"))
    assert not take(store, "r-2", 3)
    assert not take(store, "r-1", 3, offered=True), "nobody has offered it anything"
    assert change(store, offer_slots(LIMIT, ["r-1"]))
    assert take(store, "r-1", 3, offered=True)
    assert limit_in(store) == SharedLimit(in_use=1, holders=frozenset({"r-1"}), queued="r-1@1")
    assert not take(store, "r-1", 3, offered=True), "the word is used up"


def test_given_an_offer_that_lapsed_then_it_admits_nobody(store: MemoryStore) -> None:
    assert change(store, offer_slots(LIMIT, ["r-1", "r-2"]))
    assert change(store, lapse_offers(LIMIT, ["r-1"]))
    assert not take(store, "r-1", 3, offered=True)
    assert take(store, "r-2", 3, offered=True)
    assert change(store, lapse_offers(LIMIT, ["r-2"])), "repeated and late ones change nothing"


def test_given_more_offers_than_room_then_the_limit_holds_all_the_same(store: MemoryStore) -> None:
    assert change(store, offer_slots(LIMIT, ["r-1", "r-2"]))
    assert take(store, "r-1", 1, offered=True)
    assert not take(store, "r-2", 1, offered=True)
    assert limit_in(store).in_use == 1


def test_given_somebody_who_joined_since_then_the_queue_stays_open(store: MemoryStore) -> None:
    assert change(store, mark_queue(LIMIT, "r-1@1"))
    assert change(store, mark_queue(LIMIT, "r-2@2"))
    assert not change(store, close_queue(LIMIT, "r-1@1"))
    assert not take(store, "newcomer", 3)
    assert change(store, close_queue(LIMIT, "r-2@2"))
    assert take(store, "newcomer", 3)


def test_given_any_limit_then_its_home_is_one_shard_and_a_run_names_it_whatever_form_its_permit_has() -> None:
    home = owner_shard_of(LIMIT, 256)
    assert 0 <= home < 256
    named = [Permit.of(LIMIT, "r", 2).text(), Permit.of(LIMIT, "r", 900).text(), "SH#0001|LIM#flights/nightly"]
    assert homes_of(named, 256) == [(home, LIMIT)]


MOST = {"a": 1, "b": 2, "c": 2, "d": WIDE, "e": WIDE}
"""What each run's version of its schedule allows."""


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["take", "take offered", "offer", "lapse", "return"]), st.sampled_from(sorted(MOST))),
        max_size=40,
    )
)
def test_given_any_writes_then_in_use_is_the_number_of_permits_and_within_the_limit(
    steps: Sequence[tuple[str, str]],
) -> None:
    store = MemoryStore(checks_witness=False)
    held: set[str] = set()
    for kind, run in steps:
        if kind == "return":
            assert give_back(store, Permit.of(LIMIT, run, MOST[run])) == (run in held)
            held.discard(run)
        elif kind.startswith("take"):
            if take(store, run, MOST[run], offered=kind == "take offered"):
                assert run not in held
                assert len(held) < MOST[run]
                held.add(run)
        else:
            assert change(store, offer_slots(LIMIT, [run]) if kind == "offer" else lapse_offers(LIMIT, [run]))
        state = limit_in(store)
        assert state.in_use == len(held)
        assert {*state.holders, *runs_with_items(store)} == held
