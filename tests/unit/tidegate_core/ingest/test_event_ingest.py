"""Events on their way to the schedules that listen: each is handed to each of them once, whatever is replayed (I3)."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import tier
from tests.support.builders import (
    EVENTS,
    EVENTS_ID,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    Doc,
    a_spec,
    all_of,
    an_apply,
    an_event,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.tier import examples
from tidegate_core.engine.actor_inputs import LogRecord, RecordsArrived
from tidegate_core.ingest import event_ingest
from tidegate_core.ingest.event_ingest import CHECKS_BEHIND_A_REPEAT, DEDUPE_HORIZON_MS, ROWS_PER_MOVE
from tidegate_core.rows.effects import Commit, Effect, Read, ReturnCredits
from tidegate_core.rows.store_operations import ACTIONS_PER_TRANSACTION_MAX, TRANSACTION_BYTES_MAX, Key, Put


def a_bench(*schedules: Doc, **holding: Any) -> ActorHarness:
    bench = ActorHarness(behaviour=Behaviour(starts_after=None), **holding)
    bench.run(SECOND)
    for schedule in schedules:
        bench.request(an_apply(schedule))
    bench.run(SECOND)
    return bench


def counts(bench: ActorHarness, name: str = "nightly") -> list[object]:
    return [row["counts"] for row in bench.rows(f"E#flights/{name}#")]


def a_cursor_move(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "cursor"


WAITS = a_spec(trigger=on_data(count=1_000))


def test_given_events_then_each_is_counted_once_and_the_position_is_behind_them() -> None:
    bench = a_bench(WAITS)
    bench.append(EVENTS, 0, *(an_event(f"d{number}") for number in range(10)))
    assert counts(bench) == [[10]]
    (position,) = [row for row in bench.rows("TP") if "b" * 32 in str(row["pk"])]
    assert position["next"] == 10
    assert bench.rows("I#") == []


@pytest.mark.parametrize("later_ms", [0, MINUTE, DEDUPE_HORIZON_MS - HOUR])
def test_given_the_same_event_id_again_then_it_counts_once(later_ms: int) -> None:
    """Another data partition under the same id: only the id can tell that it is a repeat."""
    bench = a_bench(WAITS)
    bench.event(an_event("d1", event_id="e-1"))
    bench.now += later_ms
    bench.event(an_event("d2", event_id="e-1"))
    bench.run(SECOND)
    assert counts(bench) == [[1]]


def test_given_the_same_event_id_within_one_batch_then_it_counts_once() -> None:
    bench = a_bench(WAITS)
    bench.append(EVENTS, 0, an_event("d1", event_id="e-1"), an_event("d2", event_id="e-1"))
    assert counts(bench) == [[1]]


def test_given_the_same_event_id_beyond_the_horizon_then_it_counts_again() -> None:
    bench = a_bench(WAITS)
    bench.event(an_event("d1", event_id="e-1"))
    bench.now += DEDUPE_HORIZON_MS + 1
    bench.event(an_event("d2", event_id="e-1"))
    bench.run(SECOND)
    assert counts(bench) == [[2]]


# -- the horizon: by append times -----------------------------------------------------------------------------------------------


def read(bench: ActorHarness, topic_partition: int, *came: tuple[Doc, int]) -> None:
    """Records are read now that were appended so many ms after `NOW`."""
    log = bench.log(EVENTS, topic_partition)
    first = len(log)
    for document, after in came:
        log.append(LogRecord(len(log), NOW + after, None, json.dumps(document).encode()))
    bench.give(RecordsArrived(EVENTS, topic_partition, tuple(log[first:]), EVENTS_ID))
    bench.run(SECOND)


def marked(bench: ActorHarness) -> dict[str, bool]:
    chunks = [json.loads(str(row["entries"])) for row in bench.rows("EC#")]
    return {entry["partition"]: entry.get("dedupe_unknown", False) for chunk in chunks for entry in chunk}


def test_given_a_repeat_of_an_hour_later_that_is_read_behind_a_backlog_then_it_counts_once() -> None:
    bench = a_bench(WAITS, event_topic_partitions=2)
    read(bench, 0, (an_event("d1", event_id="e-1"), 2 * HOUR))
    bench.now += 6 * DEDUPE_HORIZON_MS
    read(bench, 1, (an_event("d2", event_id="e-1"), 3 * HOUR))
    assert counts(bench) == [[1]]
    (row,) = bench.rows("DD")
    assert int(str(row["expires_at"])) * 1000 > bench.now + DEDUPE_HORIZON_MS


def test_given_an_id_that_is_used_again_a_day_later_and_the_first_was_read_late_then_both_count() -> None:
    bench = a_bench(WAITS, event_topic_partitions=2)
    bench.now += 10 * HOUR
    read(bench, 0, (an_event("d1", event_id="e-1"), HOUR))
    bench.now += 16 * HOUR
    read(bench, 0, (an_event("d2", event_id="e-1"), 26 * HOUR))
    assert marked(bench) == {"d1": False, "d2": True}


def test_given_an_id_that_is_used_again_then_the_program_is_told_so() -> None:
    bench = a_bench()
    bench.behaves = lambda order: Behaviour()
    bench.request(an_apply(a_spec(trigger=on_data(), overlap="allow")))
    bench.run(SECOND)
    for day in ("d1", "d2"):
        bench.event(an_event(day, event_id="e-1"))
        bench.run(SECOND)
        bench.now += DEDUPE_HORIZON_MS
    rows: list[Any] = [order.context["manifest"] for order in bench.started]
    assert [(row["partition"], row.get("dedupe_unknown")) for (row,) in rows] == [("d1", None), ("d2", True)]


def test_given_two_uses_of_an_id_in_one_batch_of_a_backlog_then_both_count() -> None:
    bench = a_bench(WAITS)
    bench.now += 50 * HOUR
    uses = [(an_event(f"d{n}", event_id="e-1"), at) for n, at in enumerate((1, 2, 26, 27))]
    read(bench, 0, *((document, hours * HOUR) for document, hours in uses))
    assert marked(bench) == {"d0": False, "d2": True}
    read(bench, 0, (an_event("d4", event_id="e-1"), 49 * HOUR))
    assert marked(bench) == {"d0": False, "d2": True}


def test_given_an_id_whose_earlier_use_is_read_behind_the_later_one_then_both_count_and_repeats_of_the_later_do_not() -> (
    None
):
    bench = a_bench(WAITS, event_topic_partitions=2)
    bench.now += 50 * HOUR
    read(bench, 0, (an_event("d1", event_id="e-1"), 49 * HOUR))
    read(bench, 1, (an_event("d0", event_id="e-1"), HOUR))
    read(bench, 0, (an_event("d2", event_id="e-1"), 50 * HOUR))
    assert marked(bench) == {"d1": False, "d0": True}


def test_given_a_repeat_of_the_earlier_use_behind_the_later_one_then_it_counts_once() -> None:
    bench = a_bench(WAITS, event_topic_partitions=2)
    bench.now += 50 * HOUR
    read(bench, 0, (an_event("d1", event_id="e-1"), 49 * HOUR))
    read(bench, 1, (an_event("d0", event_id="e-1"), HOUR), (an_event("d0 again", event_id="e-1"), 2 * HOUR))
    assert marked(bench) == {"d1": False, "d0": True}


def test_given_a_repeat_of_the_earlier_use_that_is_read_late_then_it_does_not_count() -> None:
    bench = a_bench(WAITS, event_topic_partitions=2)
    bench.now += 27 * HOUR
    read(bench, 0, (an_event("d0", event_id="e-1"), HOUR), (an_event("d1", event_id="e-1"), 26 * HOUR))
    read(bench, 1, (an_event("d0 again", event_id="e-1"), HOUR + 30 * MINUTE))
    assert marked(bench) == {"d0": False, "d1": True}


@pytest.mark.parametrize("is_of_before", [False, True])
def test_given_two_earlier_uses_at_once_behind_the_later_one_then_one_of_them_is_a_repeat(is_of_before: bool) -> None:
    """Both have read the row of the later one, whose end stays what it was."""
    bench = a_bench(WAITS, event_topic_partitions=3)
    bench.now += 50 * HOUR
    read(bench, 0, (an_event("d1", event_id="e-1"), 49 * HOUR))
    if is_of_before:
        (row,) = bench.rows("DD")
        key = Key(str(row["pk"]), str(row["sk"]))
        bench.store.write([Put(key, {name: value for name, value in row.items() if name != "uses"})])
    bench.hold_back(a_cursor_move, times=2)
    for topic_partition in (1, 2):
        read(bench, topic_partition, (an_event(f"d0 {topic_partition}", event_id="e-1"), topic_partition * HOUR))
    bench.release()
    bench.run(SECOND)
    assert len(marked(bench)) == 2


@settings(max_examples=examples(60), deadline=None)
@given(
    uses=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 80), st.integers(0, 2)), min_size=1, max_size=10),
    batches=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=10),
)
def test_given_any_uses_of_ids_in_several_topic_partitions_then_each_counts_that_lies_beyond_the_horizon_of_all_that_did(
    uses: list[tuple[str, int, int]], batches: list[tuple[int, int]]
) -> None:
    """However late they are read, in whatever batches, and whichever topic partition is read first."""
    left: list[list[tuple[str, str, int]]] = [[], [], []]
    for number, (name, hour, topic_partition) in enumerate(sorted(uses, key=lambda use: use[1])):
        left[topic_partition].append((f"d{number}", name, hour))
    counted: dict[str, list[int]] = {"a": [], "b": []}
    wanted: dict[str, bool] = {}
    bench = a_bench(WAITS, event_topic_partitions=3)
    bench.now += 100 * HOUR
    for topic_partition, size in [*batches, (0, 10), (1, 10), (2, 10)]:
        batch, left[topic_partition] = left[topic_partition][:size], left[topic_partition][size:]
        for day, name, hour in batch:
            if all(abs(hour - other) >= 24 for other in counted[name]):
                wanted[day] = bool(counted[name])
                counted[name].append(hour)
        if batch:
            came = [(an_event(day, event_id=name), hour * HOUR) for day, name, hour in batch]
            read(bench, topic_partition, *came)
    assert marked(bench) == wanted


@pytest.mark.parametrize("after", range(1, 9))
def test_given_a_crash_amid_an_id_that_is_used_again_then_all_are_told_so(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_ingest, "ROWS_PER_MOVE", 4)
    bench = a_bench(*(a_spec(f"s{number}", trigger=on_data(count=1_000)) for number in range(8)))
    bench.event(an_event("d1", event_id="e-1"))
    bench.run(SECOND)
    bench.now += DEDUPE_HORIZON_MS + MINUTE
    bench.run(SECOND)
    bench.crash_after = bench.effects_outside + after
    bench.event(an_event("d2", event_id="e-1"))
    bench.run(MINUTE)
    entries = [entry for row in bench.rows("EC#") for entry in json.loads(str(row["entries"]))]
    assert [entry.get("dedupe_unknown", False) for entry in entries if entry["partition"] == "d2"] == [True] * 8


@pytest.mark.parametrize("move", range(3))
def test_given_a_crash_amid_the_earlier_use_then_the_id_counts_again_behind_it_in_the_same_batch(
    move: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What had begun is in the row, beside the later use: who writes over it says both."""
    monkeypatch.setattr(event_ingest, "ROWS_PER_MOVE", 4)
    bench = a_bench(
        *(a_spec(f"s{number}", trigger=on_data(count=1_000)) for number in range(8)), event_topic_partitions=2
    )
    bench.now += 75 * HOUR
    read(bench, 0, (an_event("d2", event_id="e-1"), 74 * HOUR))
    read(bench, 0, (an_event("d2 again", event_id="e-1"), 74 * HOUR + MINUTE))
    moves = count()
    bench.hold_back(lambda effect: a_cursor_move(effect) and next(moves) == move, answer_only=True)
    backlog = [(f"d{number}", hours) for number, hours in enumerate((1, 26))]
    read(bench, 1, *((an_event(day, event_id="e-1"), hours * HOUR) for day, hours in backlog))
    assert bench.holds_something
    bench.crash()
    bench.run(MINUTE)
    entries = [entry for row in bench.rows("EC#") for entry in json.loads(str(row["entries"]))]
    assert sorted(entry["partition"] for entry in entries) == sorted(["d0", "d1", "d2"] * 8)


def test_given_an_id_that_two_use_again_at_once_then_one_of_them_is_a_repeat() -> None:
    bench = a_bench(WAITS, event_topic_partitions=2)
    bench.event(an_event("d1", event_id="e-1"))
    bench.now += DEDUPE_HORIZON_MS + MINUTE
    bench.hold_back(a_cursor_move, times=2)
    bench.event(an_event("d2", event_id="e-1"), 0)
    bench.event(an_event("d3", event_id="e-1"), 1)
    bench.release()
    bench.run(SECOND)
    assert counts(bench) == [[2]]


def test_given_events_without_id_then_their_content_tells_repeats() -> None:
    bench = a_bench(WAITS)
    for day in ("d1", "d1", "d2"):
        document = an_event(day)
        del document["id"]
        bench.event(document)
    assert counts(bench) == [[2]]
    assert len(bench.rows("DD")) == 2


def test_given_an_id_that_meets_in_two_topic_partitions_then_it_counts_once() -> None:
    """One of both was counted by another move while this batch was looked up."""
    bench = a_bench(WAITS, event_topic_partitions=2)
    bench.hold_back(a_cursor_move)
    bench.event(an_event("d1", event_id="e-1"), 0)
    assert bench.holds_something
    bench.event(an_event("d2", event_id="e-1"), 1)
    bench.release()
    bench.run(SECOND)
    assert counts(bench) == [[1]]
    bench.event(an_event("d3"), 0)
    bench.event(an_event("d4"), 1)
    assert counts(bench) == [[3]]


def test_given_nobody_who_listens_then_only_the_position_moves() -> None:
    bench = a_bench()
    bench.event(an_event("d1"))
    assert bench.rows("DD") == []
    assert [len(transaction.actions) for transaction in bench.commits("cursor")][-1] == 1


def test_given_several_leaves_and_schedules_then_each_has_what_it_listens_to() -> None:
    both = a_spec("both", all_of(on_data("a", 9), on_data("b", 9)))
    bench = a_bench(both, a_spec("first", on_data("a", 9)), a_spec("second", on_data("b", 9)))
    bench.append(EVENTS, 0, an_event("d1", "a"), an_event("d2", "a"), an_event("d3", "b"))
    assert counts(bench, "both") == [[2, 1]]
    assert counts(bench, "first") == [[2]]
    assert counts(bench, "second") == [[1]]


@pytest.mark.parametrize(
    "value",
    [b"", b"{", b"[]", b'{"type":"data.partition"}', b"\xff\xfe"],
    ids=["empty", "cut", "list", "lacking", "no text"],
)
def test_given_a_record_that_cannot_be_read_then_it_is_a_dead_letter_and_the_next_one_counts(value: bytes) -> None:
    """CD-053, CD-007."""
    bench = a_bench(WAITS)
    bench.append(EVENTS, 0, value, an_event("d1"))
    assert counts(bench) == [[1]]
    (letter,) = bench.on("tidegate.events.dlq")
    assert letter.value == value
    assert letter.headers["tidegate.error.offset"] == "0"


def test_given_a_batch_then_its_credits_go_back_with_the_durable_position() -> None:
    bench = a_bench(WAITS)
    bench.append(EVENTS, 0, an_event("d1"), an_event("d2"))
    assert bench.all_asked(ReturnCredits)[-1] == ReturnCredits(EVENTS, 0, 2, 2)


@pytest.mark.parametrize("together", [True, False])
def test_given_a_repeat_of_what_nobody_heard_then_it_counts_however_the_records_come(together: bool) -> None:
    """The first one came before anybody listened: it is no earlier count of the second."""
    bench = a_bench()
    first = an_event("d1", event_id="e-1")
    log = bench.log(EVENTS, 0)
    if together:
        bench._reading.discard((EVENTS, 0))
    bench.event(first)
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    if together:
        bench.append(EVENTS, 0, first)
        bench._reading.add((EVENTS, 0))
        bench.give(RecordsArrived(EVENTS, 0, tuple(log), EVENTS_ID))
    else:
        bench.event(first)
    bench.run(SECOND)
    assert counts(bench) == [[1]]


@pytest.mark.parametrize("letter", ["p", "é", "日"])
def test_given_many_large_events_in_any_script_then_each_move_stays_below_the_stores_bytes(
    letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes and not characters, of what is stored and not of what was sent."""
    monkeypatch.setattr(event_ingest, "MOVE_BYTES_MAX", 30_000)
    names = [f"s{number:02d}" for number in range(10)]
    bench = a_bench(*(a_spec(name, on_data(count=1_000)) for name in names))
    before = len(bench.commits("cursor"))
    text = letter * 200
    bench.append(EVENTS, 0, *(an_event(f"d{number}", event_id=f"{number}", version=text) for number in range(20)))
    bench.run(SECOND)
    assert {name: counts(bench, name) for name in names} == {name: [[20]] for name in names}
    moves = bench.commits("cursor")[before:]
    sizes = [
        sum(len(str(getattr(action, "item", {}).get("body", "")).encode()) for action in move.actions) for move in moves
    ]
    assert len(sizes) > 3
    assert max(sizes) <= 30_000
    assert TRANSACTION_BYTES_MAX - event_ingest.MOVE_BYTES_MAX > 100 * 1_000
    assert bench.notices("decision_failed") == []


# -- paged fan-out --------------------------------------------------------------------------------------------------------------

MANY = ROWS_PER_MOVE * 2 + 10


def a_crowd() -> ActorHarness:
    """More schedules listen to one dataset than one transaction can hold inbox rows for."""
    return a_bench(*(a_spec(f"s{number:03d}", on_data(count=1_000)) for number in range(MANY)))


def heard(bench: ActorHarness) -> dict[str, object]:
    return {str(row["name"]): row["counts"] for row in bench.rows("E#")}


def handed_out(bench: ActorHarness) -> int:
    """All entries that were ever counted: a second handing of one event shows here, though it counts once."""
    return sum(len(json.loads(str(row["entries"]))) for row in bench.rows("EC#"))


def test_given_more_listeners_than_a_transaction_holds_then_each_hears_each_event_once() -> None:
    bench = a_crowd()
    before = len(bench.commits("cursor"))
    bench.append(EVENTS, 0, an_event("d1"), an_event("d2"), an_event("d3"))
    bench.run(SECOND)
    assert heard(bench) == {f"s{number:03d}": [3] for number in range(MANY)}
    assert handed_out(bench) == 3 * MANY
    moves = bench.commits("cursor")[before:]
    assert len(moves) > 3
    assert all(len(move.actions) <= ACTIONS_PER_TRANSACTION_MAX for move in moves)


@pytest.mark.parametrize("move", range(0, 6, tier.at_night(1, else_=2)))
def test_given_a_crash_between_two_pages_then_each_still_hears_each_event_once(move: int) -> None:
    """CD-052, CD-054: fan-out and position move together, page by page."""
    bench = a_crowd()
    moves = count()
    bench.hold_back(lambda effect: a_cursor_move(effect) and next(moves) == move, answer_only=True)
    bench.append(EVENTS, 0, an_event("d1"), an_event("d2"), an_event("d3"))
    assert bench.holds_something
    bench.crash()
    bench.run(SECOND)
    assert heard(bench) == {f"s{number:03d}": [3] for number in range(MANY)}
    assert handed_out(bench) == 3 * MANY


def test_given_a_listener_that_came_between_two_pages_then_it_hears_what_came_after_it_only() -> None:
    bench = a_crowd()
    bench.hold_back(a_cursor_move, answer_only=True)
    bench.append(EVENTS, 0, an_event("d1"))
    bench.request(an_apply(a_spec("s000-late", on_data(count=1_000))))
    bench.release()
    bench.run(SECOND)
    assert "s000-late" not in heard(bench)
    bench.event(an_event("d2"))
    assert heard(bench)["s000-late"] == [1]
    assert heard(bench)["s001"] == [2]


# -- what it costs ----------------------------------------------------------------------------------------------------------------


def looks_and_moves(bench: ActorHarness) -> tuple[int, int]:
    """How often ids were read, and how many moves were sent."""
    looks = sum(effect.keys[0].sk == "DD" for effect in bench.all_asked(Read))
    moved = [each.actions[0].key.pk for each in bench.commits("cursor")]
    return looks, sum(EVENTS_ID in pk for pk in moved)


def test_given_events_that_are_new_then_nothing_is_read_of_their_ids() -> None:
    bench = a_bench(WAITS)
    for number in range(5):
        bench.event(an_event(f"d{number}"))
    assert looks_and_moves(bench) == (0, 5)
    assert counts(bench) == [[5]]


def test_given_a_repeat_then_ids_are_read_first_until_none_has_come_for_a_while() -> None:
    """One move is refused; the next repeats cost none."""
    bench = a_bench(WAITS)
    bench.event(an_event("d1", event_id="e-1"))
    for _ in range(3):
        bench.event(an_event("again", event_id="e-1"))
    assert looks_and_moves(bench) == (3, 5)
    for number in range(CHECKS_BEHIND_A_REPEAT):
        bench.event(an_event(f"n{number}"))
    looks, _ = looks_and_moves(bench)
    assert looks == 3 + CHECKS_BEHIND_A_REPEAT - 1
    bench.event(an_event("new"))
    assert looks_and_moves(bench)[0] == looks
    assert counts(bench) == [[2 + CHECKS_BEHIND_A_REPEAT]]


def test_given_ids_that_are_used_again_each_day_then_one_move_of_them_is_refused_and_the_others_are_not() -> None:
    """They are read before they are written, as behind a repeat: a refused move costs as much as one that is made (review)."""
    bench = a_bench(WAITS)
    made = []
    for day in range(2):
        _, before = looks_and_moves(bench)
        for number in range(20):
            bench.event(an_event(f"d{day}-{number}", event_id=f"daily-{number}"))
            bench.run(SECOND)
        made.append(looks_and_moves(bench)[1] - before)
        bench.now += DEDUPE_HORIZON_MS
        bench.run(SECOND)
    assert made == [20, 21]
    assert counts(bench) == [[40]]


# -- any replay -------------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(
    ids=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12),
    cuts=st.sets(st.integers(1, 11), max_size=4),
    crashes=st.sets(st.integers(0, 40), max_size=3),
)
def test_given_any_repeats_batches_and_crashes_then_each_id_counts_once(
    ids: list[str], cuts: set[int], crashes: set[int]
) -> None:
    bench = a_bench(WAITS)
    begun = bench.effects_outside
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(ids)], strict=True):
        if ids[start:end]:
            for after in crashes:
                bench.crash_after = max(bench.effects_outside + 1, begun + after)
            bench.append(EVENTS, 0, *(an_event(f"of-{each}", event_id=each) for each in ids[start:end]))
            bench.run(SECOND)
    assert counts(bench) == [[len(set(ids))]]
    chunks = [json.loads(str(row["entries"])) for row in bench.rows("EC#")]
    assert sorted(entry["partition"] for chunk in chunks for entry in chunk) == sorted(
        f"of-{each}" for each in set(ids)
    )
