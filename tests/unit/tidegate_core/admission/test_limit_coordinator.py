"""Who is offered the free slots of a shared limit, and when an offer lapses."""

from __future__ import annotations

import pytest

from tests.support.builders import NOW, a_job
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.admission.limit_coordinator import (
    OFFER_MS,
    OFFERS_MAX,
    Queue,
    SeenOffer,
    ServeLimit,
    in_line,
    lapsed_offers,
    next_offers,
    returned_grants,
)
from tidegate_core.rows import keys
from tidegate_core.rows.effects import WakeUp
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.shared_limit import QueueEntry, SharedLimit
from tidegate_core.rows.store_operations import Put, Transaction
from tidegate_core.writes.limit_permits import mark_queue, offer_slots

LIMIT = keys.shared_limit("flights", "program", "p")
A, B, C, D = (a_job(number, shard=number).id for number in (1, 2, 3, 4))


def a_waiter(
    job_id: str, satisfied_at: int = NOW, most: int = 1, asked_at: int = NOW, aside: bool | None = None
) -> QueueEntry:
    return QueueEntry(
        limit=LIMIT.pk, job_id=job_id, satisfied_at=satisfied_at, most=most, asked_at=asked_at, aside=aside
    )


# -- who is next ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "mosts", "expected"),
    [
        pytest.param(SharedLimit(), (1, 1, 1), [A], id="one slot is for the first"),
        pytest.param(SharedLimit(), (2, 2, 2), [A, B], id="two slots are for the first two"),
        pytest.param(SharedLimit(in_use=2), (2, 2, 2), [], id="all are in use"),
        pytest.param(SharedLimit(in_use=1, offered=frozenset({A})), (3, 3, 3), [B], id="what is offered is taken"),
        pytest.param(SharedLimit(offered=frozenset({A})), (1, 1, 1), [], id="the only slot is offered already"),
        pytest.param(SharedLimit(in_use=1, holders=frozenset({A})), (2, 2, 2), [B], id="it was admitted meanwhile"),
        pytest.param(SharedLimit(in_use=1), (1, 9, 9), [], id="those behind wait for the first, which needs more room"),
        pytest.param(SharedLimit(in_use=1), (9, 1, 9), [A], id="the second needs more room"),
    ],
)
def test_given_a_queue_then_free_slots_are_offered_in_its_order(
    state: SharedLimit, mosts: tuple[int, ...], expected: list[str]
) -> None:
    waiters = [a_waiter(job, most=most) for job, most in zip((A, B, C), mosts, strict=True)]
    assert next_offers(state, waiters) == expected


def test_given_a_wide_limit_then_so_many_offers_stand_that_its_item_stays_small() -> None:
    waiters = [a_waiter(f"job-{number:03d}", most=1_000) for number in range(100)]
    offers = next_offers(SharedLimit(), waiters)
    assert offers == [waiter.job_id for waiter in waiters[:OFFERS_MAX]]
    assert next_offers(SharedLimit(offered=frozenset(offers)), waiters) == []


@pytest.mark.parametrize(
    ("waiter", "standing", "lapses"),
    [
        pytest.param(None, None, True, id="the job is gone"),
        pytest.param(None, SeenOffer(NOW, NOW), True, id="the job is gone, soon after it was offered"),
        pytest.param(a_waiter(A), None, False, id="seen for the first time, maybe a predecessor's"),
        pytest.param(a_waiter(A), SeenOffer(NOW, NOW + 1), False, id="it has time"),
        pytest.param(a_waiter(A), SeenOffer(NOW, NOW), True, id="its time is over"),
        pytest.param(a_waiter(A, asked_at=NOW + 5), SeenOffer(NOW, NOW), False, id="it said that it is still there"),
    ],
)
def test_given_an_offer_then_it_lapses_when_nobody_takes_it_up(
    waiter: QueueEntry | None, standing: SeenOffer | None, lapses: bool
) -> None:
    waiters = {} if waiter is None else {A: waiter}
    known = {} if standing is None else {A: standing}
    found = lapsed_offers(SharedLimit(offered=frozenset({A})), waiters, known, NOW + OFFER_MS)
    assert found == ([A] if lapses else [])


@pytest.mark.parametrize(
    ("aside", "line"),
    [
        pytest.param("", "ABCD", id="nobody stands aside"),
        pytest.param("B", "ABCD", id="the only one keeps its turn"),
        pytest.param("BD", "ABC", id="the first keeps its turn"),
        pytest.param("ABCD", "A", id="all wait for another limit"),
    ],
)
def test_given_jobs_that_stand_aside_then_slots_are_for_the_first_of_them_and_for_the_others(
    aside: str, line: str
) -> None:
    names = dict(zip("ABCD", (A, B, C, D), strict=True))
    waiters = [a_waiter(job, most=9, aside=True if name in aside else None) for name, job in names.items()]
    everybody = SharedLimit(offered=frozenset(names.values()))
    assert [waiter.job_id for waiter in in_line(everybody, waiters)] == [names[name] for name in line]
    assert set(returned_grants(everybody, waiters)) == {*names.values()} - {names[name] for name in line}
    assert returned_grants(SharedLimit(), waiters) == []


@pytest.mark.parametrize(
    ("state", "keeps"),
    [
        pytest.param(SharedLimit(offered=frozenset({B})), False, id="its word is the only slot"),
        pytest.param(SharedLimit(in_use=1, offered=frozenset({B})), False, id="the slots are in use"),
        pytest.param(SharedLimit(offered=frozenset({A, B})), True, id="who stands before it has the word too"),
    ],
)
def test_given_a_job_that_keeps_a_slot_for_later_then_it_does_so_from_nobody_of_a_higher_class(
    state: SharedLimit, keeps: bool
) -> None:
    """A low job with the word for one limit waited for another one for hours, and an urgent job for the first one as long."""
    urgent, low = a_waiter(A), a_waiter(B, aside=True)
    assert returned_grants(state, [urgent, low]) == ([] if keeps else [B])
    assert returned_grants(SharedLimit(offered=frozenset({B})), [low, urgent]) == []


# -- one look -----------------------------------------------------------------------------------------------------------------


def a_desk(*waiters: QueueEntry, offered: tuple[str, ...] = (), queued: bool = True) -> DecisionHarness:
    desk = DecisionHarness(*waiters)
    if queued:
        desk.store.transact(Transaction("test", (mark_queue(LIMIT, "mark"),), "t-q", None))
    if offered:
        desk.store.transact(Transaction("test", (offer_slots(LIMIT, offered),), "t-o", None))
    return desk


def look(desk: DecisionHarness, queue: Queue, now: int = NOW, *, reminds: bool = False) -> tuple[bool, bool]:
    """Returns whether there is more to do at once, and whether anybody waits."""
    said: list[tuple[bool, bool]] = []
    desk.decide(ServeLimit(LIMIT, 0, queue, reminds, lambda goes_on, waits: said.append((goes_on, waits))), now)
    (answer,) = said
    return answer


def limit_of(desk: DecisionHarness) -> SharedLimit:
    return SharedLimit.of(desk.store.peek(LIMIT))


def waiting(desk: DecisionHarness) -> list[str]:
    return [waiter.job_id for waiter in desk.records(QueueEntry, "IW#")]


def test_given_jobs_of_several_shards_then_the_longest_waiting_is_offered_the_slot_and_its_shard_is_poked() -> None:
    desk, queue = a_desk(a_waiter(C, NOW + 1), a_waiter(B, NOW + 2), a_waiter(A, NOW + 3)), Queue()
    assert look(desk, queue) == (False, True)
    assert limit_of(desk).offered == {C}
    assert desk.told == [WakeUp(3, C)]


def test_given_jobs_of_one_instant_then_their_ids_decide() -> None:
    desk = a_desk(*(a_waiter(job) for job in (D, B, C)))
    look(desk, Queue())
    assert limit_of(desk).offered == {min(B, C, D)}


def test_given_an_offer_that_stands_then_it_is_reminded_of_at_each_tick_and_nothing_is_written() -> None:
    desk, queue = a_desk(a_waiter(A), offered=(A,)), Queue()
    assert look(desk, queue) == (False, True)
    assert desk.told == []
    assert desk.decide(ServeLimit(LIMIT, 0, queue, True, lambda goes_on, waits: None), NOW + 1_000) is None
    assert desk.told == [WakeUp(1, A)]


def test_given_an_offer_that_nobody_takes_up_then_the_next_one_has_it_and_the_place_is_gone() -> None:
    desk, queue = a_desk(a_waiter(A), a_waiter(B, NOW + 1)), Queue()
    look(desk, queue)
    look(desk, queue, NOW + OFFER_MS - 1)
    assert limit_of(desk).offered == {A}
    assert look(desk, queue, NOW + OFFER_MS) == (True, True)
    assert (limit_of(desk).offered, waiting(desk)) == (frozenset(), [B])
    look(desk, queue, NOW + OFFER_MS)
    assert limit_of(desk).offered == {B}


def test_given_a_job_that_ended_while_its_offer_stood_then_the_offer_lapses_at_once() -> None:
    desk, queue = a_desk(a_waiter(B), offered=(A,)), Queue()
    assert look(desk, queue) == (True, True)
    look(desk, queue)
    assert limit_of(desk).offered == {B}


def test_given_a_second_one_that_stands_aside_then_its_word_goes_on_at_once_and_it_keeps_its_place() -> None:
    desk, queue = a_desk(a_waiter(A, most=2), a_waiter(B, NOW + 1, most=2), a_waiter(C, NOW + 2, most=2)), Queue()
    look(desk, queue)
    assert limit_of(desk).offered == {A, B}
    for job_id, since in ((A, NOW), (B, NOW + 1)):
        row = a_waiter(job_id, since, most=2, aside=True)
        desk.store.write([Put(row.key(0), to_item(row, row.key(0)))])
    assert look(desk, queue) == (True, True)
    assert (limit_of(desk).offered, waiting(desk)) == (frozenset({A}), [A, B, C])
    look(desk, queue)
    assert limit_of(desk).offered == {A, C}


def test_given_a_successor_then_it_knows_the_offers_and_gives_them_their_whole_time() -> None:
    desk = a_desk(a_waiter(A), a_waiter(B, NOW + 1))
    look(desk, Queue())
    successor = Queue()
    look(desk, successor, NOW + OFFER_MS + 5)
    assert limit_of(desk).offered == {A}
    look(desk, successor, NOW + 2 * OFFER_MS + 5)
    assert limit_of(desk).offered == frozenset()


def test_given_nobody_who_waits_then_the_queue_is_closed_and_forgotten() -> None:
    desk = a_desk()
    assert look(desk, Queue()) == (False, False)
    assert limit_of(desk).queued is None
    assert desk.decide(ServeLimit(LIMIT, 0, Queue(), False, lambda goes_on, waits: None)) is None


def test_given_somebody_who_joins_after_the_queue_was_seen_empty_then_it_stays_open() -> None:
    desk = a_desk()
    transaction, _ = desk.prepare(ServeLimit(LIMIT, 0, Queue(), False, lambda goes_on, waits: None))
    assert transaction is not None
    desk.store.transact(Transaction("joins", (mark_queue(LIMIT, "another"),), "j", None))
    desk.store.transact(transaction)
    assert limit_of(desk).queued == "another"


def test_given_rows_before_a_limit_without_a_mark_then_it_is_marked_before_anything_is_offered() -> None:
    desk = a_desk(a_waiter(A), queued=False)
    assert look(desk, Queue()) == (False, True)
    assert limit_of(desk).queued is not None


def test_given_the_lease_of_another_owner_then_nothing_is_offered() -> None:
    """I5."""
    desk = a_desk(a_waiter(A))
    transaction, _ = desk.prepare(ServeLimit(LIMIT, 0, Queue(), False, lambda goes_on, waits: None))
    assert transaction is not None
    lease = keys.lease(0)
    desk.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, "epoch": 2, "controls": 0})])
    desk.store.transact(transaction)
    assert limit_of(desk).offered == frozenset()
