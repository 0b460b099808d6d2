"""Clauses of the queue before a shared limit, of offers, and of permits that have items of their own.

Those that bound a limit without a queue are in `runs.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from tests.simulation.mutants.clauses.clause_mutant import dropped, withheld
from tests.simulation.stories.stage import takes
from tidegate_core.records.limits import SharedLimit
from tidegate_core.store import keys
from tidegate_core.store.values import Action, Transaction
from tidegate_core.transactions.limits import (
    HOLDERS_INLINE_MAX,
    Permit,
    close_queue,
    lapse_offers,
    mark_queue,
    offer_slots,
    remove_idle,
    return_permits,
    take_permit,
)
from tidegate_memory.store import MemoryStore

LIMIT = keys.shared_limit("flights", "program", "/jobs/same.py")
ONE, TWO, NEWCOMER = "0000-one", "0000-two", "0000-newcomer"
WIDE = HOLDERS_INLINE_MAX + 1
TOKENS = count()


def does(store: MemoryStore, *actions: Action) -> bool:
    """Whether the store takes what one transaction says of limits; each has a token of its own, as a late repeat has."""
    return takes(store, Transaction("permit", actions, f"permit {next(TOKENS)}", None))


def passes(store: MemoryStore, run: str, most: int = 1, *, offered: bool = False) -> bool:
    return does(store, *take_permit(Permit.of(LIMIT, run, most), most, offered=offered))


def limit_in(store: MemoryStore) -> SharedLimit:
    return SharedLimit.of(store.peek(LIMIT))


def a_store_with_a_queue(*offered: str) -> MemoryStore:
    store = MemoryStore()
    assert does(store, mark_queue(LIMIT, "mark-1"))
    assert not offered or does(store, offer_slots(LIMIT, offered))
    return store


# -- the queue ----------------------------------------------------------------------------------------------------------------


def a_newcomer_finds_a_queue() -> Iterable[str]:
    """Its owner has read the limit before anybody waited."""
    if passes(a_store_with_a_queue(), NEWCOMER):
        yield "order: a newcomer took the permit that somebody waits for"


def a_queue_is_closed_while_somebody_joins() -> Iterable[str]:
    store = a_store_with_a_queue()
    assert does(store, mark_queue(LIMIT, "mark-2"))
    does(store, close_queue(LIMIT, "mark-1"))
    if passes(store, NEWCOMER):
        yield "order: a newcomer took the permit that somebody waits for, who joined while the queue was closed"


# -- offers -------------------------------------------------------------------------------------------------------------------


def two_come_with_offers_for_one_slot() -> Iterable[str]:
    """An offer that arrives late is one too many: offers are put without a condition."""
    store = a_store_with_a_queue(ONE, TWO)
    if passes(store, ONE, offered=True) and passes(store, TWO, offered=True):
        yield f"I4: {limit_in(store).in_use} runs under a limit of 1"


def an_offer_is_the_first_word_of_a_limit() -> Iterable[str]:
    """Somebody waited for another limit of the job, and this one has never been used."""
    if not passes(a_store_with_a_queue(ONE), ONE, offered=True):
        yield "I1: nobody gets an offered permit of a limit that was never used"


def an_offer_is_of_a_permit_that_was_given_back() -> Iterable[str]:
    store = a_store_with_a_queue(ONE, TWO)
    assert passes(store, ONE, offered=True)
    assert does(store, return_permits(LIMIT, [Permit.of(LIMIT, ONE, 1)]))
    if not passes(store, TWO, offered=True):
        yield "I1: nobody gets the permit that was given back and offered"


def offer_and_admission_arrive_twice() -> Iterable[str]:
    store = a_store_with_a_queue(ONE)
    assert passes(store, ONE, most=2, offered=True)
    assert does(store, offer_slots(LIMIT, [ONE]))
    passes(store, ONE, most=2, offered=True)
    limit = limit_in(store)
    if limit.in_use != len(limit.holders):
        yield f"I4: {limit.in_use} permits are in use and {len(limit.holders)} runs hold one"


def an_admission_arrives_after_its_offer_has_lapsed() -> Iterable[str]:
    """The slot was offered to the next one, who takes it a moment later."""
    store = a_store_with_a_queue(ONE)
    assert does(store, lapse_offers(LIMIT, [ONE]))
    assert does(store, offer_slots(LIMIT, [TWO]))
    if passes(store, ONE, offered=True):
        yield "order: a job took the slot that is offered to another one"


# -- permits with items of their own ----------------------------------------------------------------------------------------------


def a_return_of_an_own_item_arrives_twice() -> Iterable[str]:
    store = MemoryStore()
    assert passes(store, ONE, WIDE)
    assert passes(store, TWO, WIDE)
    permit = Permit.of(LIMIT, ONE, WIDE)
    for _ in range(2):
        does(store, return_permits(LIMIT, [permit]), permit.removal())
    if limit_in(store).in_use != 1:
        yield f"I4: {limit_in(store).in_use} permits are in use, and one run holds one"


# -- the end of a key's limit -------------------------------------------------------------------------------------------------------


def a_limit_is_removed_in_the_middle_of_its_use() -> Iterable[str]:
    """Its home has read it before the admission."""
    store = MemoryStore()
    assert passes(store, ONE)
    does(store, remove_idle(LIMIT))
    if passes(store, TWO):
        yield "I4: two runs under a limit of 1: it was removed while the first one used it"


def a_limit_is_removed_while_somebody_waits() -> Iterable[str]:
    """The one run has ended, and what it gave back is for who waits."""
    store = a_store_with_a_queue()
    does(store, remove_idle(LIMIT))
    if passes(store, NEWCOMER):
        yield "order: a newcomer took the permit that somebody waits for: the queue was removed with its limit"


def a_limit_has_come_to_its_end() -> Iterable[str]:
    store = MemoryStore()
    assert passes(store, ONE)
    assert does(store, return_permits(LIMIT, [Permit.of(LIMIT, ONE, 1)]))
    return left_behind(store)


def a_limit_was_waited_for_and_never_used() -> Iterable[str]:
    store = a_store_with_a_queue()
    assert does(store, close_queue(LIMIT, "mark-1"))
    return left_behind(store)


def left_behind(store: MemoryStore) -> Iterable[str]:
    does(store, remove_idle(LIMIT))
    if store.peek(LIMIT) is not None:
        yield "liveness: the limit of a value that never comes again stays for ever"


IN_USE = "(attribute_not_exists(#in_use) OR #in_use < :most)"

CLAUSES_OF_LIMITS = (
    dropped(
        "permit_free",
        "attribute_not_exists(#queued)",
        "a newcomer takes the permit that somebody waits for",
        breaks="order",
        scenario=a_newcomer_finds_a_queue,
    ),
    dropped(
        "queue_marked",
        "#queued = :mark_seen",
        "a queue is closed although somebody has joined since it was seen empty",
        breaks="order",
        scenario=a_queue_is_closed_while_somebody_joins,
    ),
    dropped(
        "permit_offered",
        IN_USE,
        "of more offers than slots each one is taken",
        breaks="I4",
        scenario=two_come_with_offers_for_one_slot,
    ),
    withheld(
        "permit_offered",
        "attribute_not_exists(#in_use)",
        "nobody who waited is the first to take a permit",
        breaks="I1",
        scenario=an_offer_is_the_first_word_of_a_limit,
    ),
    withheld(
        "permit_offered",
        "#in_use < :most",
        "who waits for a limit that was ever used waits for ever",
        breaks="I1",
        scenario=an_offer_is_of_a_permit_that_was_given_back,
    ),
    dropped(
        "permit_offered",
        "NOT contains(#holders, :run)",
        "a run takes two permits with an offer that arrives once more, and gives one back",
        breaks="I4",
        scenario=offer_and_admission_arrive_twice,
    ),
    dropped(
        "permit_offered",
        "contains(#offered, :run)",
        "an offer that has lapsed is taken, although the slot is the next one's",
        breaks="order",
        scenario=an_admission_arrives_after_its_offer_has_lapsed,
    ),
    dropped(
        "present",
        "attribute_exists(#pk)",
        "a permit with an item of its own is given back twice, so that one run more passes",
        breaks="I4",
        scenario=a_return_of_an_own_item_arrives_twice,
    ),
    dropped(
        "idle",
        "(attribute_not_exists(#in_use) OR #in_use = :none)",
        "the limit of a key is removed while a run holds its permit, so that one run more passes",
        breaks="I4",
        scenario=a_limit_is_removed_in_the_middle_of_its_use,
    ),
    withheld(
        "idle",
        "attribute_not_exists(#in_use)",
        "the limit of a value that somebody only waited for is never removed",
        breaks="liveness",
        scenario=a_limit_was_waited_for_and_never_used,
    ),
    withheld(
        "idle",
        "#in_use = :none",
        "the limit of a value that was ever used is never removed",
        breaks="liveness",
        scenario=a_limit_has_come_to_its_end,
    ),
    dropped(
        "idle",
        "attribute_not_exists(#queued)",
        "the limit of a key is removed with its queue, and a newcomer passes who waits",
        breaks="order",
        scenario=a_limit_is_removed_while_somebody_waits,
    ),
)
