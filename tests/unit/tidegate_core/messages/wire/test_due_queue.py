"""Messages near their time: which is next, and how far the checkpoint may go (I1, I8)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.messages.wire.due_queue import EVERYWHERE, NOTHING, DueQueue, QueuedMessage, Stage, end_of
from tidegate_core.rows.message import Message
from tidegate_core.writes.message_delivery import Tally

OPEN = (Stage.WRITING, Stage.WRITTEN, Stage.READY, Stage.SENDING)
CLOSED = (Stage.DONE, Stage.GONE)


def a_row(slot: int, name: str = "a", stage: Stage = Stage.READY, version: str = "v") -> QueuedMessage:
    return QueuedMessage(slot, name, version, "origin", 1, stage)


def some(*rows: QueuedMessage) -> DueQueue:
    slots = DueQueue()
    for row in rows:
        slots.add(row)
    return slots


def test_given_due_rows_then_they_are_taken_earliest_first_and_once() -> None:
    slots = some(a_row(30, "c"), a_row(10, "b"), a_row(10, "a"), a_row(40, "d"))
    assert [row.id for row in slots.take_due(30, 10)] == ["a", "b", "c"]
    assert slots.take_due(30, 10) == []
    assert slots.next_slot() == 40


def test_given_more_than_wanted_then_the_rest_stays() -> None:
    slots = some(*(a_row(number, f"{number}") for number in range(5)))
    assert len(slots.take_due(9, 3)) == 3
    assert len(slots.take_due(9, 3)) == 2


def test_given_due_rows_that_are_not_ready_then_they_stay_until_they_are() -> None:
    waiting = a_row(10, stage=Stage.WRITTEN)
    slots = some(waiting, a_row(11, "b"))
    assert [row.id for row in slots.take_due(20, 10)] == ["b"]
    waiting.stage = Stage.READY
    assert slots.take_due(20, 10) == [waiting]


def test_given_a_row_that_is_due_and_not_ready_then_the_slot_behind_it_is_the_next_one() -> None:
    slots = some(a_row(10, stage=Stage.WRITTEN), a_row(30, "b"))
    assert slots.take_due(20, 10) == []
    assert slots.next_slot() == 30


def test_given_a_row_put_back_then_it_is_due_again() -> None:
    row = a_row(10)
    slots = some(row)
    assert slots.take_due(10, 1) == [row]
    assert [each.stage for each in slots] == [Stage.SENDING]
    assert slots.take_due(10, 1) == []
    slots.put_back(row)
    assert [each.stage for each in slots] == [Stage.READY]
    assert slots.take_due(10, 1) == [row]


def test_given_the_same_place_again_then_it_is_refused_and_another_version_is_not() -> None:
    slots = some(a_row(10))
    assert not slots.add(a_row(10))
    assert slots.add(a_row(10, version="w"))
    assert slots.add(a_row(11))
    assert len(slots.of("a")) == 3
    assert len(slots) == 3


def test_given_an_open_first_row_then_nothing_is_passed() -> None:
    slots = some(a_row(10, stage=Stage.SENDING), a_row(11, "b", Stage.DONE))
    assert slots.passed(EVERYWHERE) == (None, NOTHING)


def test_given_closed_rows_then_the_last_before_an_open_one_is_passed_and_they_are_forgotten() -> None:
    rows = [a_row(10, "a", Stage.DONE), a_row(10, "b", Stage.GONE), a_row(10, "c"), a_row(11, "d", Stage.DONE)]
    rows[0].ended = rows[3].ended = Tally(delivered=1)
    slots = some(*rows)
    assert slots.passed(EVERYWHERE) == ((10, "b", "v"), Tally(delivered=1))
    assert slots.of("a") == []
    assert len(slots) == 2
    assert slots.passed(EVERYWHERE) == (None, NOTHING)
    rows[2].stage = Stage.GONE
    assert slots.passed(EVERYWHERE) == ((11, "d", "v"), Tally(delivered=1))


def test_given_an_end_then_nothing_behind_it_is_passed() -> None:
    slots = some(*(a_row(slot, stage=Stage.DONE) for slot in (10, 11, 12)))
    assert slots.passed(end_of(11))[0] == (11, "a", "v")
    assert slots.passed((12, "", ""))[0] is None
    assert slots.passed((12, "a", "v"))[0] == (12, "a", "v")


def test_given_a_row_that_is_being_written_then_its_place_holds_also_when_it_is_not_in_memory() -> None:
    slots = some(a_row(10, stage=Stage.DONE), a_row(20, stage=Stage.DONE))
    far = a_row(15, "far", Stage.WRITING)
    slots.hold(far)
    assert slots.passed(EVERYWHERE)[0] == (10, "a", "v")
    assert not slots.is_clear(end_of(15))
    assert slots.is_clear(end_of(14))
    slots.end_hold(far)
    assert slots.passed(EVERYWHERE)[0] == (20, "a", "v")
    assert slots.is_clear(end_of(99))


def test_given_a_limit_then_rows_behind_it_are_not_taken() -> None:
    slots = some(a_row(10, "a"), a_row(20, "a"), a_row(20, "b"), a_row(30, "a"))
    assert [row.place for row in slots.take_due(99, 9, through=(20, "a", "v"))] == [(10, "a", "v"), (20, "a", "v")]
    assert [row.place for row in slots.take_due(99, 9)] == [(20, "b", "v"), (30, "a", "v")]


def test_given_room_for_some_payloads_then_the_first_that_does_not_fit_ends_the_group() -> None:
    rows = [a_row(number, f"{number}") for number in range(4)]
    for row in rows:
        row.size = 100
    rows[1].held = 100  # It is in memory, or on its way.
    slots = some(*rows)
    assert [row.id for row in slots.take_due(9, 9, room=250)] == ["0", "1", "2"]
    assert slots.take_due(9, 9, room=99) == []
    assert [row.id for row in slots.take_due(9, 9, room=100)] == ["3"]


def test_given_payloads_that_are_missing_then_ready_rows_within_the_horizon_are_named_earliest_first() -> None:
    rows = [a_row(number, f"{number}") for number in range(6)]
    rows[0].message = Message(
        id="0", version="v", origin="o", namespace="n", nominal=0, slot=0, topic="t", payload=b"", keyed=False,
        headers="[]", expires_at=0,
    )  # fmt: skip
    rows[1].stage = Stage.SENDING
    slots = some(*rows)
    for row in rows:
        row.size = 100
    assert [row.id for row in slots.unloaded(2, 9, 1_000)] == ["2"]
    assert [row.id for row in slots.unloaded(9, 9, 250)] == ["3", "4"]
    assert slots.unloaded(9, 9, 99) == []
    assert [row.id for row in slots.unloaded(9, 9, 100)] == ["5"]


def test_given_a_row_that_is_being_written_then_its_payload_is_looked_for_once_it_is_there() -> None:
    row = a_row(1, stage=Stage.WRITING)
    slots = some(row)
    assert slots.unloaded(9, 9, 1_000_000) == []
    row.stage = Stage.READY
    assert slots.unloaded(9, 9, 1_000_000) == [row]


ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.sampled_from("vw"), st.sampled_from(list(Stage))),
    max_size=20,
)


@given(ROWS)
def test_given_any_rows_then_the_checkpoint_never_passes_an_open_one(
    rows: list[tuple[int, str, str, Stage]],
) -> None:
    slots = DueQueue()
    kept = {(slot, name, version): stage for slot, name, version, stage in reversed(rows)}
    for slot, name, version, stage in rows:
        slots.add(a_row(slot, name, stage, version))
    places = sorted(kept)
    first_open = next((place for place in places if kept[place] in OPEN), None)
    expected = [place for place in places if first_open is None or place < first_open]
    assert slots.passed(EVERYWHERE)[0] == (expected[-1] if expected else None)
    assert len(slots) == len(places) - len(expected)


@given(ROWS, st.lists(st.integers(0, 6), max_size=5))
def test_given_any_looks_then_ready_rows_come_in_order_each_once(
    rows: list[tuple[int, str, str, Stage]], looks: list[int]
) -> None:
    slots = DueQueue()
    ready = set()
    for slot, name, version, stage in rows:
        if slots.add(a_row(slot, name, stage, version)) and stage is Stage.READY:
            ready.add((slot, name, version))
    taken = []
    for now in [*sorted(looks), 6]:
        found = slots.take_due(now, 3)
        assert [row.place for row in found] == sorted(row.place for row in found)
        assert all(row.slot <= now for row in found)
        taken += found
    taken += [row for _ in range(20) for row in slots.take_due(6, 3)]
    assert len(taken) == len({row.place for row in taken})
    assert {row.place for row in taken} == ready
