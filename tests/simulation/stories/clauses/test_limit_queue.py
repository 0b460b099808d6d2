"""Conditions of offers to those that wait for a shared limit, and of the end of a limit that nobody needs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.simulation.stories.stage import takes
from tidegate_core.rows import keys
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Action, Transaction
from tidegate_core.writes.limit_permits import (
    Permit,
    close_queue,
    mark_queue,
    offer_slots,
    remove_idle,
    return_permits,
    take_permit,
)
from tidegate_memory.store import MemoryStore

LIMIT = keys.shared_limit("flights", "program", "/jobs/same.py")
ONE, TWO, NEWCOMER = "0000-one", "0000-two", "0000-newcomer"
TOKENS = count()


def does(store: MemoryStore, *actions: Action) -> bool:
    """Whether the store takes them as one transaction. Each has a token of its own, as a late repeat has."""
    return takes(store, Transaction("permit", actions, f"permit {next(TOKENS)}", None))


def passes(store: MemoryStore, run: str, most: int = 1, *, offered: bool = False) -> bool:
    return does(store, *take_permit(Permit.of(LIMIT, run, most), most, offered=offered))


def returns(store: MemoryStore, run: str) -> bool:
    return does(store, return_permits(LIMIT, [Permit.of(LIMIT, run, 1)]))


def a_store_with_a_queue(*offered: str) -> MemoryStore:
    store = MemoryStore()
    assert does(store, mark_queue(LIMIT, "mark-1"))
    assert not offered or does(store, offer_slots(LIMIT, offered))
    return store


def test_given_an_offer_of_a_permit_that_was_given_back_then_it_admits() -> None:
    store = a_store_with_a_queue(ONE, TWO)
    assert passes(store, ONE, offered=True)
    assert returns(store, ONE)
    assert passes(store, TWO, offered=True), "I1: nobody gets the permit that was given back and offered"


def test_given_an_offer_and_its_admission_that_arrive_twice_then_the_run_takes_one_permit() -> None:
    store = a_store_with_a_queue(ONE)
    assert passes(store, ONE, most=2, offered=True)
    assert does(store, offer_slots(LIMIT, [ONE]))
    passes(store, ONE, most=2, offered=True)
    limit = SharedLimit.of(store.peek(LIMIT))
    assert limit.in_use == len(limit.holders), "I4: more permits are in use than runs hold"


def test_given_a_limit_that_its_home_has_read_as_idle_when_a_run_takes_it_then_it_stays() -> None:
    store = MemoryStore()
    assert passes(store, ONE)
    does(store, remove_idle(LIMIT))
    assert not passes(store, TWO), "I4: two runs under a limit of 1: it was removed while the first one used it"


def test_given_a_limit_that_somebody_waits_for_then_it_stays() -> None:
    """The one run has ended, and what it gave back is for the job that waits."""
    store = a_store_with_a_queue()
    does(store, remove_idle(LIMIT))
    assert not passes(store, NEWCOMER), "order: a newcomer took the permit: the queue was removed with its limit"


def a_used_limit() -> MemoryStore:
    store = MemoryStore()
    assert passes(store, ONE)
    assert returns(store, ONE)
    return store


def a_limit_that_was_only_waited_for() -> MemoryStore:
    store = a_store_with_a_queue()
    assert does(store, close_queue(LIMIT, "mark-1"))
    return store


@pytest.mark.parametrize(
    "a_store",
    [
        pytest.param(a_used_limit, id="used"),
        pytest.param(a_limit_that_was_only_waited_for, id="only waited for"),
    ],
)
def test_given_a_limit_that_nobody_needs_then_it_is_removed(a_store: Callable[[], MemoryStore]) -> None:
    store = a_store()
    does(store, remove_idle(LIMIT))
    assert store.peek(LIMIT) is None, "liveness: the limit of a value that never comes again stays for ever"
