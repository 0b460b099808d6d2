"""Records that cannot be processed never hold up those behind them, and are never lost (DESIGN 7)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import EVENTS, MINUTE, REQUESTS, SECOND, a_send, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import Match, a_commit
from tests.support.tier import examples
from tidegate_core.ingest import dead_letters
from tidegate_core.ingest.dead_letters import PATIENCE_MS
from tidegate_core.rows.effects import Commit, Effect, Invalid, NotProduced, Produce, ReturnCredits, StartReading, Write

AWAY = NotProduced("unavailable", "its leader is away")


def a_dead_letter(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic.endswith(".dlq")


def a_write_of(text: str) -> Match:
    return lambda effect: isinstance(effect, Write) and any(text in str(action) for action in effect.batch.actions)


def a_move_with_rows(effect: Effect) -> bool:
    return a_commit("cursor")(effect) and isinstance(effect, Commit) and len(effect.transaction.actions) > 1


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def away(bench: ActorHarness) -> None:
    bench.answer_with(a_dead_letter, AWAY, times=1_000_000)


def letters(bench: ActorHarness) -> list[bytes]:
    return [each.value for each in bench.sent if each.topic.endswith(".dlq")]


def position(bench: ActorHarness, topic_id: str) -> dict[str, object]:
    (row,) = [row for row in bench.rows("TP") if topic_id in str(row["pk"])]
    return {"next": row["next"], "open": row["open"]}


REQUESTS_AT, EVENTS_AT = "a" * 32, "b" * 32


def test_given_a_dead_letter_topic_that_is_away_then_events_behind_a_bad_record_count(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data())))
    away(bench)
    bench.append(EVENTS, 0, b"{not json", an_event("p1"))
    bench.run(2 * SECOND)
    assert len(bench.started) == 1
    assert position(bench, EVENTS_AT) == {"next": 2, "open": [0]}
    bench.event(an_event("p2"))
    bench.run(SECOND)
    assert len(bench.started) == 2
    assert letters(bench) == []


def test_given_a_dead_letter_topic_that_is_away_then_requests_and_messages_behind_a_bad_record_go_on(
    bench: ActorHarness,
) -> None:
    away(bench)
    bench.append(REQUESTS, 0, b"{not json", an_apply(a_spec(trigger=every("1h"))), a_send("m-1", after="1s"))
    bench.run(5 * SECOND)
    assert bench.status_of("apply-nightly") == "accepted"
    assert len(bench.delivered()) == 1
    assert position(bench, REQUESTS_AT) == {"next": 3, "open": [0]}


def test_given_a_topic_that_comes_back_then_each_bad_record_is_copied_once_and_the_position_says_so(
    bench: ActorHarness,
) -> None:
    away(bench)
    bench.append(EVENTS, 0, b"{1", an_event("p1"), b"{2", b"{3")
    bench.run(10 * SECOND)
    assert position(bench, EVENTS_AT) == {"next": 4, "open": [0, 2, 3]}
    bench.as_usual()
    bench.run(10 * SECOND)
    assert sorted(letters(bench)) == [b"{1", b"{2", b"{3"]
    assert position(bench, EVENTS_AT) == {"next": 4, "open": []}


def test_given_a_topic_that_answers_then_the_position_passes_no_record_before_its_copy_is_there(
    bench: ActorHarness,
) -> None:
    bench.hold_back(a_dead_letter)
    bench.append(EVENTS, 0, b"{1", an_event("p1"))
    bench.run(PATIENCE_MS - 1)
    assert bench.commits("cursor") == []
    bench.release()
    assert position(bench, EVENTS_AT) == {"next": 2, "open": []}
    assert all("open" not in str(move) or move.actions[0].values[":open"] == [] for move in bench.commits("cursor"))  # type: ignore[union-attr]  # the position's own update comes first


def test_given_a_topic_that_stays_away_then_only_the_first_batch_waits_for_it(bench: ActorHarness) -> None:
    away(bench)
    bench.append(EVENTS, 0, b"{1")
    bench.run(2 * SECOND)
    bench.append(EVENTS, 0, b"{2", an_event("p"))
    assert position(bench, EVENTS_AT) == {"next": 3, "open": [0, 1]}


@pytest.mark.parametrize("crashes", [1, 3])
def test_given_a_successor_then_it_copies_what_was_left_open_and_counts_nothing_twice(
    bench: ActorHarness, crashes: int
) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=1_000))))
    away(bench)
    bench.append(EVENTS, 0, an_event("p0"), b"{1", an_event("p2"), b"{3", an_event("p4"))
    bench.run(2 * SECOND)
    for _ in range(crashes):
        bench.crash()
        bench.run(10 * SECOND)
    reads = [effect.offset for effect in bench.all_asked(StartReading) if effect.topic == EVENTS]
    assert reads[1:] == [1] * crashes
    bench.event(an_event("p5"))
    bench.as_usual()
    bench.run(MINUTE)
    assert sorted(set(letters(bench))) == [b"{1", b"{3"]
    assert [row["counts"] for row in bench.rows("E#")] == [[4]]
    assert position(bench, EVENTS_AT) == {"next": 6, "open": []}
    taken = [effect for effect in bench.all_asked(ReturnCredits) if effect.topic == EVENTS]
    assert taken[-1].next_offset == 6


def test_given_a_refused_event_then_no_receipt_stands_under_its_id(bench: ActorHarness) -> None:
    """Found in review: whoever waited for the answer to a request of the same id took the event's refusal for it."""
    bench.append(EVENTS, 0, b'{"id": "same", "type": "data.partition", "namespace": "flights", "dataset": "No Name"}')
    bench.run(2 * SECOND)
    assert len(letters(bench)) == 1
    assert bench.receipts() == {}


def test_given_a_refused_request_then_its_sender_is_answered_by_whoever_copies_it(bench: ActorHarness) -> None:
    away(bench)
    bench.request(b'{"id": "r", "type": "schedule.undo"}')
    bench.run(2 * SECOND)
    assert bench.receipts() == {}
    bench.crash()
    bench.as_usual()
    bench.run(10 * SECOND)
    assert bench.status_of("r") == "rejected"
    assert len(bench.on("tidegate.requests.dlq")) == 1


def test_given_a_send_that_the_store_never_takes_then_its_sender_is_answered_by_whoever_copies_it(
    bench: ActorHarness,
) -> None:
    """Found by a review: read again it is a request like others, and its dead letter named nobody who was to be told."""
    away(bench)
    bench.answer_with(a_write_of("poisoned"), Invalid("too large"), times=100)
    bench.request(a_send("m-1", payload="poisoned", after="1s"))
    bench.run(2 * SECOND)
    assert position(bench, REQUESTS_AT) == {"next": 1, "open": [0]}
    bench.crash()
    bench.as_usual()
    bench.run(10 * SECOND)
    assert bench.status_of("m-1") == "rejected"
    assert len(bench.on("tidegate.requests.dlq")) == 1
    assert bench.delivered() == []


def test_given_a_request_whose_inbox_row_the_store_never_takes_then_its_sender_is_answered(bench: ActorHarness) -> None:
    """Found by a review: it was a dead letter, and nobody was told."""
    bench.answer_with(a_move_with_rows, Invalid("too large"), times=2)
    bench.append(REQUESTS, 0, an_apply(a_spec()), an_apply(a_spec("other")))
    bench.run(2 * SECOND)
    assert [bench.status_of(f"apply-{name}") for name in ("nightly", "other")] == ["rejected", "accepted"]
    assert len(bench.on("tidegate.requests.dlq")) == 1


def test_given_an_open_record_that_the_log_has_no_more_then_it_is_said_and_over(bench: ActorHarness) -> None:
    """Compaction of a users' own topic leaves others before it and behind it."""
    away(bench)
    bench.append(EVENTS, 0, b"{0", b"{1", an_event("p2"))
    bench.run(2 * SECOND)
    bench.as_usual()
    log = bench.log(EVENTS, 0)
    log[1] = log[2]
    bench.crash()
    bench.run(5 * SECOND)
    assert letters(bench) == [b"{0"]
    assert position(bench, EVENTS_AT) == {"next": 3, "open": []}
    assert [notice.fields["message"] for notice in bench.notices("dead_letter_refused")] == [
        "the log has no offset 1 any more"
    ]


def test_given_open_records_that_retention_has_taken_then_reading_goes_on_behind_them(bench: ActorHarness) -> None:
    """Found in review: a client that is asked for an offset before the log's begin brings nothing, so nothing said that it was gone."""
    away(bench)
    bench.append(EVENTS, 0, b"{0", b"{1", an_event("p2"), b"{3", an_event("p4"))
    bench.run(2 * SECOND)
    bench.as_usual()
    bench.remove_before(EVENTS, 0, 3)
    bench.crash()
    bench.run(5 * SECOND)
    reads = [effect.offset for effect in bench.all_asked(StartReading) if effect.topic == EVENTS]
    assert reads[-3:] == [0, 1, 3]
    assert letters(bench) == [b"{3"]
    assert position(bench, EVENTS_AT) == {"next": 5, "open": []}
    assert [notice.fields["message"] for notice in bench.notices("dead_letter_refused")] == [
        f"the log has no offset {gone} any more" for gone in (0, 1)
    ]
    assert bench.notices("position_gone") == []


def test_given_a_position_that_retention_has_passed_then_a_person_decides_whatever_was_open(
    bench: ActorHarness,
) -> None:
    """At the position itself records were removed unread."""
    away(bench)
    bench.append(EVENTS, 0, b"{0", an_event("p1"))
    bench.run(2 * SECOND)
    bench.remove_before(EVENTS, 0, 7)
    bench.crash()
    bench.run(5 * SECOND)
    assert [notice.fields["offset"] for notice in bench.notices("position_gone")] == [2]
    reads = [effect.offset for effect in bench.all_asked(StartReading) if effect.topic == EVENTS]
    assert reads[-2:] == [0, 2]


def test_given_more_than_may_be_open_then_the_position_waits_for_room(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "OPEN_MAX", 5)
    away(bench)
    for number in range(4):
        bench.append(EVENTS, 0, b"{a%d" % number, b"{b%d" % number)
        bench.run(2 * SECOND)
    assert position(bench, EVENTS_AT) == {"next": 4, "open": [0, 1, 2, 3]}
    bench.as_usual()
    bench.run(20 * SECOND)
    assert position(bench, EVENTS_AT) == {"next": 8, "open": []}
    assert len(set(letters(bench))) == 8


def test_given_large_records_then_they_do_not_fill_the_memory(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "OPEN_BYTES_MAX", 2_500)
    away(bench)
    for _ in range(4):
        bench.append(EVENTS, 0, b"{" * 1_000)
        bench.run(2 * SECOND)
    assert position(bench, EVENTS_AT) == {"next": 2, "open": [0, 1]}


def test_given_a_record_that_no_dead_letter_topic_takes_then_its_letter_is_without_its_value_and_says_so(
    bench: ActorHarness,
) -> None:
    """A user's own topic may have records above the 5 MiB of a letter: of such a one nobody found anything but a line in a log."""
    too_large = NotProduced("refused", "message size too large")

    def with_its_value(effect: Effect) -> bool:
        return isinstance(effect, Produce) and effect.topic.endswith(".dlq") and effect.value != b""

    bench.answer_with(with_its_value, too_large, times=1_000_000)
    bench.append(EVENTS, 0, b"{" * 1_000)
    bench.run(2 * SECOND)
    (letter,) = bench.on("tidegate.events.dlq")
    assert (letter.headers["tidegate.error.offset"], letter.headers["tidegate.error.left_out"]) == ("0", "1000")
    assert "without its value of 1000 bytes" in letter.headers["tidegate.error.message"]
    assert position(bench, EVENTS_AT) == {"next": 1, "open": []}


def no_topic(bench: ActorHarness) -> None:
    missing = NotProduced("refused", "unknown topic or partition")
    bench.answer_with(lambda effect: isinstance(effect, Produce) and effect.topic.endswith(".dlq"), missing, 1_000_000)


@pytest.mark.parametrize("falls", [False, True], ids=["same holder", "successor"])
def test_given_a_dead_letter_topic_that_is_made_anew_then_what_came_meanwhile_lies_there_whole(
    bench: ActorHarness, falls: bool
) -> None:
    """Found in review: a record that was read while the topic was not there was passed, and nothing but a line of a log was left of it."""
    no_topic(bench)
    bench.append(EVENTS, 0, b"{0", an_event("p1"))
    bench.run(2 * SECOND)
    assert position(bench, EVENTS_AT) == {"next": 2, "open": [0]}
    bench.run(MINUTE)
    if falls:
        bench.crash()
        bench.run(5 * SECOND)
    bench.as_usual()
    bench.run(dead_letters.REFUSED_AGAIN_MS)
    assert letters(bench) == [b"{0"]
    assert position(bench, EVENTS_AT) == {"next": 2, "open": []}


def test_given_a_dead_letter_topic_that_stays_away_then_each_letter_is_given_up_after_ten_minutes(
    bench: ActorHarness,
) -> None:
    no_topic(bench)
    bench.append(EVENTS, 0, b"{0", an_event("p1"))
    bench.run(dead_letters.REFUSED_MS_MAX - SECOND)
    assert position(bench, EVENTS_AT) == {"next": 2, "open": [0]}
    bench.run(2 * dead_letters.REFUSED_AGAIN_MS)
    assert position(bench, EVENTS_AT) == {"next": 2, "open": []}
    assert len(bench.notices("dead_letter_refused")) == 1


def test_given_more_letters_that_no_topic_takes_than_may_be_open_then_nothing_waits_for_them(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "OPEN_MAX", 5)
    no_topic(bench)
    bench.append(EVENTS, 0, *(b"{%d" % number for number in range(20)), an_event("p1"))
    bench.run(2 * SECOND)
    found = position(bench, EVENTS_AT)
    assert found["next"] == 21
    assert isinstance(found["open"], list)
    assert len(found["open"]) <= 5


@pytest.mark.parametrize("letter", ["é", "日", "\U0001f600"])
def test_given_a_long_problem_then_its_header_is_cut_between_characters(bench: ActorHarness, letter: str) -> None:
    for shift in range(4):
        unknown = {f"{'x' * shift}{letter * 40}{number}": 1 for number in range(40)}
        bench.request({"id": f"r-{shift}", "type": "schedule.delete", "namespace": "flights", "name": "s", **unknown})
    headers = [sent.headers["tidegate.error.message"] for sent in bench.on("tidegate.requests.dlq")]
    assert len(headers) == 4
    assert all(
        dead_letters.MESSAGE_BYTES_MAX - 4 < len(each.encode()) <= dead_letters.MESSAGE_BYTES_MAX for each in headers
    )
    assert {bench.status_of(f"r-{shift}") for shift in range(4)} == {"rejected"}


def test_given_records_before_the_position_then_only_open_ones_are_dealt_with_and_all_credits_go_back(
    bench: ActorHarness,
) -> None:
    bench.append(EVENTS, 0, an_event("p0"), an_event("p1"))
    bench.asked.clear()
    bench.give(bench.arrived(EVENTS, 0, 0))
    assert [effect.count for effect in bench.all_asked(ReturnCredits)] == [2]
    assert bench.commits("cursor") == []


@settings(max_examples=examples(60), deadline=None)
@given(
    records=st.lists(st.booleans(), min_size=1, max_size=14),
    cuts=st.sets(st.integers(1, 13), max_size=5),
    away_from=st.integers(0, 6),
    away_for=st.integers(0, 6),
    crashes=st.sets(st.integers(0, 60), max_size=3),
)
def test_given_any_records_outages_and_crashes_then_each_bad_one_is_copied_and_each_good_one_counts_once(
    records: list[bool], cuts: set[int], away_from: int, away_for: int, crashes: set[int]
) -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=on_data(count=1_000))))
    bench.run(SECOND)
    begun = bench.effects_outside
    documents = [an_event(f"d{n}") if good else b"{%d" % n for n, good in enumerate(records)]
    ends = [*sorted(each for each in cuts if each < len(documents)), len(documents)]
    for step, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if step == away_from and away_for:
            away(bench)
        if step == away_from + away_for:
            bench.as_usual()
        for after in sorted(crashes):
            bench.crash_after = max(bench.effects_outside + 1, begun + after)
        bench.append(EVENTS, 0, *documents[start:end])
        bench.run(2 * SECOND)
    bench.as_usual()
    bench.run(MINUTE)
    assert sorted(set(letters(bench))) == sorted(each for each in documents if isinstance(each, bytes))
    assert [row["counts"] for row in bench.rows("E#")] == ([[sum(records)]] if any(records) else [])
    assert position(bench, EVENTS_AT) == {"next": len(documents), "open": []}
    assert bench.notices("decision_failed") == []
