"""A rate in the store: its condition alone keeps the bound, whoever comes, with whatever clock and whatever it has read."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW
from tidegate_core.language.constraints.facts import EXACT_MAX, SLICES, Span
from tidegate_core.rows import keys
from tidegate_core.rows.shared_limit import EXPIRED_MAX, GONE_MAX, SharedLimit
from tidegate_core.rows.store_operations import Action, Applied, Transaction, Update
from tidegate_core.writes.limit_permits import lapse_offers, mark_queue, offer_slots, take_out
from tidegate_core.writes.rate_counters import Counted, count_admission, take_back
from tidegate_memory.store import MemoryStore

PER = 1_000
RATE = keys.shared_rate("flights", "group", "calls", PER, None)
TOKENS = count()
EXPRESSION_BYTES_MAX = 4_096
OPERATORS_MAX = 300
"""DynamoDB's."""


def change(store: MemoryStore, *actions: Action) -> bool:
    return isinstance(store.transact(Transaction("rate", actions, f"rate {next(TOKENS)}", None)), Applied)


def rate_in(store: MemoryStore) -> SharedLimit:
    return SharedLimit.of(store.peek(RATE))


def admission(state: SharedLimit, now: int, most: int, job: str = "job", *, per: int = PER, **more: bool) -> Update:
    until = Span(per).counts_until(now, len(state.counts))
    return count_admission(Counted(RATE, until), job, most, state, now, **more)


def admit(store: MemoryStore, now: int, most: int, job: str = "job", **more: bool) -> bool:
    return change(store, admission(rate_in(store), now, most, job, **more))


def test_given_a_full_span_then_nobody_passes_until_the_first_of_it_has_left_it() -> None:
    store = MemoryStore()
    assert [admit(store, NOW + at, 2) for at in (0, 400, 999, 1_000, 1_399, 1_400)] == [
        True,
        True,
        False,
        True,
        False,
        True,
    ]
    assert rate_in(store) == SharedLimit(in_use=2, counts={NOW + 2_000: 1, NOW + 2_400: 1})


def test_given_two_that_have_read_the_same_then_only_one_takes_the_last_place() -> None:
    store = MemoryStore()
    seen = rate_in(store)
    assert change(store, admission(seen, NOW, 1))
    assert not change(store, admission(seen, NOW, 1))


def test_given_room_then_as_many_as_it_has_pass_at_one_moment_without_refusing_one_another() -> None:
    store = MemoryStore()
    seen = rate_in(store)
    assert [change(store, admission(seen, NOW, 3)) for _ in range(5)] == [True, True, True, False, False]


def test_given_a_queue_then_only_an_offer_passes_and_is_used_up() -> None:
    store = MemoryStore()
    assert change(store, mark_queue(RATE, "mark"))
    assert not admit(store, NOW, 1, "late")
    assert change(store, offer_slots(RATE, ["first"]))
    assert admit(store, NOW, 1, "first")
    assert rate_in(store).offered == frozenset()


def test_given_an_offer_that_has_lapsed_then_it_passes_no_more() -> None:
    store = MemoryStore()
    assert change(store, mark_queue(RATE, "mark"), offer_slots(keys.shared_limit("n", "group", "x"), ["first"]))
    assert change(store, offer_slots(RATE, ["first"]))
    seen = rate_in(store)
    assert change(store, lapse_offers(RATE, ["first"]))
    assert not change(store, admission(seen, NOW, 1, "first"))


def test_given_that_the_home_offers_then_what_counts_no_more_goes_with_it_once() -> None:
    store = MemoryStore()
    for at in (0, 1):
        assert admit(store, NOW + at, 2)
    expired = rate_in(store).expired(NOW + PER + 1)
    assert len(expired) == 2
    assert change(store, offer_slots(RATE, ["a", "b"], expired))
    assert not change(store, offer_slots(RATE, ["c"], expired))
    assert rate_in(store) == SharedLimit(offered=frozenset({"a", "b"}))


def test_given_what_is_forced_then_it_passes_and_counts() -> None:
    store = MemoryStore()
    assert admit(store, NOW, 1)
    assert admit(store, NOW, 1, forced=True)
    assert rate_in(store) == SharedLimit(in_use=2, counts={NOW + PER: 2})
    assert not admit(store, NOW + PER - 1, 2)


def test_given_admissions_that_are_taken_back_then_they_go_once_and_leave_nothing() -> None:
    store = MemoryStore()
    for at in (0, 0, 1):
        assert admit(store, NOW + at, 3)
    two = [Counted(RATE, NOW + PER, seen=2), Counted(RATE, NOW + PER + 1, seen=1)]
    assert change(store, take_back(RATE, two))
    assert rate_in(store) == SharedLimit(in_use=1, counts={NOW + PER: 1})
    assert not change(store, take_back(RATE, two))
    assert change(store, take_back(RATE, [Counted(RATE, NOW + PER, seen=1)]))
    assert rate_in(store) == SharedLimit()


def test_given_runs_that_are_stopped_again_and_again_then_the_item_does_not_grow() -> None:
    store = MemoryStore()
    for number in range(500):
        assert admit(store, NOW + number, 1)
        assert change(store, take_back(RATE, [Counted(RATE, NOW + number + PER, seen=1)]))
    assert rate_in(store) == SharedLimit()


def test_given_a_run_and_its_name_for_an_admission_then_it_is_the_same() -> None:
    counted = Counted(RATE, NOW)
    assert Counted.named(counted.text()) == counted


Comes = tuple[int, int, bool]
"""Milliseconds after the one before; how far its clock is off; whether it comes to nothing."""


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(-250, 250), st.booleans()), min_size=1, max_size=80),
    st.integers(1, 4),
)
def test_given_clocks_that_differ_then_a_span_is_shorter_by_at_most_as_much(comes: list[Comes], most: int) -> None:
    store, now, begun = MemoryStore(), NOW, list[int]()
    for after, off, comes_to_nothing in comes:
        now += after
        state = rate_in(store)
        until = Span(PER).counts_until(now + off, len(state.counts))
        if not change(store, admission(state, now + off, most)):
            continue
        if comes_to_nothing:
            assert change(store, take_back(RATE, [Counted(RATE, until, seen=rate_in(store).counts[until])]))
        else:
            begun.append(now)
        assert rate_in(store).in_use == sum(rate_in(store).counts.values())
    assert all(later - first >= PER - 500 for first, later in zip(begun, begun[most:], strict=False))


@given(st.lists(st.integers(0, 60), max_size=300), st.integers(40, 200), st.integers(51, 5_000))
def test_given_a_large_rate_then_no_span_has_more_and_its_item_is_small_and_frees_in_time(
    comes: list[int], most: int, per: int
) -> None:
    store, now, begun = MemoryStore(), NOW, list[int]()
    for after in comes:
        now += after
        state = rate_in(store)
        if change(store, admission(state, now, most, per=per)):
            begun.append(now)
        else:
            # Nobody waits for longer than a slice of the span beyond what is right.
            assert sum(each > now - per - per / SLICES - 1 for each in begun) >= most
        state = rate_in(store)
        assert len(state.counts) <= EXACT_MAX + SLICES + 1 + EXPIRED_MAX
    assert all(later - first >= per for first, later in zip(begun, begun[most:], strict=False))


def test_given_the_largest_item_then_taking_it_all_out_is_an_expression_that_the_store_takes() -> None:
    """And so of one that is larger yet: what is left goes with the next write."""
    assert GONE_MAX == EXACT_MAX + SLICES + 1 + EXPIRED_MAX
    counts = dict.fromkeys(range(NOW, NOW + 2 * GONE_MAX), 1)
    state = SharedLimit(in_use=len(counts), counts=counts, offered=frozenset({"job"}))
    taken = admission(state, NOW + 10 * PER, 1)
    assert taken.condition is not None
    for expression in (taken.expression, taken.condition.expression):
        assert len(expression) <= EXPRESSION_BYTES_MAX
        assert sum(expression.count(each) for each in (" = ", "AND", "OR", "NOT", "<", "(", ",")) <= OPERATORS_MAX


def test_given_nothing_but_forced_admissions_then_the_item_does_not_grow() -> None:
    """What they count was taken out by nobody, until no condition could name it any more."""
    store = MemoryStore()
    for number in range(500):
        assert admit(store, NOW + number * PER // 20, 1, forced=True)
        state = rate_in(store)
        assert state.in_use == sum(state.counts.values())
        assert len(state.counts) <= 20 + EXPIRED_MAX
    assert rate_in(store).at(NOW + 499 * PER // 20).in_use == 20
    assert not admit(store, NOW + 499 * PER // 20, 20)
    assert admit(store, NOW + 501 * PER // 20, 20)


def test_given_two_forced_ones_that_take_out_the_same_then_the_second_is_refused() -> None:
    store = MemoryStore()
    for number in range(EXPIRED_MAX):
        assert admit(store, NOW + number, EXPIRED_MAX)
    seen = rate_in(store)
    assert change(store, admission(seen, NOW + 2 * PER, 1, forced=True))
    assert not change(store, admission(seen, NOW + 2 * PER + 1, 1, forced=True))
    assert rate_in(store) == SharedLimit(in_use=1, counts={NOW + 3 * PER: 1})


def test_given_more_than_one_write_takes_out_then_nobody_passes_before_the_rest_is_out() -> None:
    store = MemoryStore()
    for number in range(2 * GONE_MAX):
        assert change(store, count_admission(Counted(RATE, NOW + number), "job", 1, SharedLimit(), NOW, forced=True))
    later = NOW + 2 * GONE_MAX
    assert not admit(store, later, 1)
    assert change(store, take_out(RATE, rate_in(store).expired(later)))
    assert admit(store, later, 1)
    assert (rate_in(store).in_use, len(rate_in(store).counts)) == (1, 1)
