"""A record of a source with a list in it: each element is an event that counts once, whatever crashes, repeats or is updated (I3)."""

from __future__ import annotations

import json

import pytest

from tests.support import tier
from tests.support.builders import SECOND, Doc, a_spec, an_apply, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.source_bench import (
    TOPIC,
    a_source,
    a_source_apply,
    ask,
    counted,
    positions,
)
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest import event_decoding, event_ingest
from tidegate_core.rows.dead_letter import LetterId, read_letter
from tidegate_core.rows.effects import Commit, Effect

EACH: Doc = {"each": "/days", "event": {"partition": {"pointer": ""}}}
BY_HEADER: Doc = {"each": "/days", "event": {"partition": {"pointer": ""}, "id": {"header": "commit"}}}
BY_ELEMENT: Doc = {"each": "/days", "event": {"partition": {"pointer": "/day"}, "id": {"pointer": "/id"}}}


def a_world(source: Doc = EACH, *names: str, active: bool = True) -> ActorHarness:
    bench = ActorHarness(behaviour=Behaviour(starts_after=None))
    bench.create_topic(TOPIC)
    bench.run(SECOND)
    if active:
        assert ask(bench, a_source_apply(a_source(**source)))["status"] == "accepted"
        for name in names or ("nightly",):
            bench.request(an_apply(a_spec(name, on_data(count=5_000)), name))
        bench.run(5 * SECOND)
    return bench


def notify(bench: ActorHarness, *days: object, commit: str = "c-1") -> None:
    log = bench.log(TOPIC, 0)
    value = json.dumps({"days": days}).encode()
    log.append(LogRecord(len(log), bench.now, None, value, (("commit", commit.encode()),)))
    bench.hand_over(TOPIC, 0, len(log) - 1)
    bench.run(SECOND)


def partitions(bench: ActorHarness, name: str = "nightly") -> list[str]:
    (evidence,) = (str(row["id"]) for row in bench.rows("E#") if row["name"] == name)
    chunks = sorted((row for row in bench.rows("EC#") if evidence in str(row["sk"])), key=lambda row: str(row["sk"]))
    return [entry["partition"] for chunk in chunks for entry in json.loads(str(chunk["entries"]))]


def is_move(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "cursor"


# -- counting -------------------------------------------------------------------------------------------------------------


def test_given_a_notification_of_three_then_each_counts_once_in_its_order_and_the_position_moves_by_one() -> None:
    bench = a_world()
    notify(bench, "d1", "d2", "d3")
    assert (partitions(bench), positions(bench)) == (["d1", "d2", "d3"], [1])


@pytest.mark.parametrize("source", [EACH, BY_HEADER], ids=["ids by place", "id of the record"])
def test_given_a_crash_after_each_effect_then_each_element_counts_once(
    source: Doc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of two rows, so that crashes fall between the elements of one record as well."""
    monkeypatch.setattr(event_ingest, "ROWS_PER_MOVE", 4)
    names = ("s1", "s2", "s3")
    for effects in range(1, 60, tier.at_night(1, else_=4)):
        bench = a_world(source, *names)
        bench.crash_after = bench.effects_outside + effects
        notify(bench, "d1", "d2", "d3", commit="c-1")
        notify(bench, "d4", "d5", commit="c-2")
        bench.run(20 * SECOND)
        days = ["d1", "d2", "d3", "d4", "d5"]
        assert [sorted(partitions(bench, name)) for name in names] == [days] * 3, effects


def test_given_a_thousand_elements_and_a_fall_in_the_middle_then_each_counts_once() -> None:
    bench = a_world()
    moves = iter(range(99))
    bench.crash_at(lambda effect: is_move(effect) and next(moves) == 4)
    days = [f"d{number:04d}" for number in range(1_000)]
    notify(bench, *days)
    bench.run(30 * SECOND)
    assert bench.lives == 2
    assert partitions(bench) == days


def test_given_a_repeat_of_the_record_under_an_id_then_none_of_its_elements_counts_again() -> None:
    bench = a_world(BY_HEADER)
    notify(bench, "d1", "d2", commit="c-1")
    notify(bench, "d1", "d2", commit="c-1")
    notify(bench, "d1", "d3", commit="c-2")
    assert partitions(bench) == ["d1", "d2", "d1", "d3"]


def test_given_an_id_twice_in_one_record_then_it_counts_once() -> None:
    bench = a_world(BY_ELEMENT)
    notify(bench, {"day": "d1", "id": 1}, {"day": "d1 again", "id": 1}, {"day": "d2", "id": 2})
    notify(bench, {"day": "d2 again", "id": 2}, {"day": "d3", "id": 3})
    assert partitions(bench) == ["d1", "d2", "d3"]


def test_given_records_without_ids_then_each_element_of_each_is_an_event_of_its_own() -> None:
    bench = a_world()
    notify(bench, "d1", "d2")
    notify(bench, "d1", "d2")
    assert partitions(bench) == ["d1", "d2", "d1", "d2"]


def test_given_two_sources_of_one_record_then_each_makes_its_own_events() -> None:
    bench = a_world()
    other = a_source("other", each="/days", event={"dataset": "copy", "partition": {"pointer": ""}})
    assert ask(bench, a_source_apply(other, "src-2"))["status"] == "accepted"
    bench.request(an_apply(a_spec("copies", on_data("copy", count=99)), "copies"))
    bench.run(5 * SECOND)
    notify(bench, "d1", "d2", "d3")
    assert (partitions(bench), partitions(bench, "copies")) == (["d1", "d2", "d3"],) * 2


def test_given_more_events_than_go_together_then_the_batch_is_dealt_with_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_decoding, "EVENTS_TOGETHER_MAX", 4)
    bench = a_world()
    log = bench.log(TOPIC, 0)
    for number in range(5):
        days = [f"{number}.{each}" for each in range(3)]
        log.append(LogRecord(number, bench.now, None, json.dumps({"days": days}).encode()))
    bench.hand_over(TOPIC, 0, 0)
    bench.run(SECOND)
    assert partitions(bench) == [f"{number}.{each}" for number in range(5) for each in range(3)]
    assert positions(bench) == [5]


# -- records that are not meant, or not understood ---------------------------------------------------------------------------

PICKY: Doc = {
    "each": "/days",
    "ignore": "tombstones",
    "where": {"all_of": [{"record": "/days", "exists": True}, {"not": {"pointer": "", "prefix": "test"}}]},
    "event": {"partition": {"pointer": ""}},
}


def test_given_records_that_are_not_meant_then_they_are_counted_and_raise_no_alert() -> None:
    bench = a_world(PICKY)
    notify(bench, "d1", "test-1", "test-2")
    bench.log(TOPIC, 0).append(LogRecord(1, bench.now, None, None))
    bench.log(TOPIC, 0).append(LogRecord(2, bench.now, None, b'{"Event": "s3:TestEvent"}'))
    bench.hand_over(TOPIC, 0, 1)
    bench.run(SECOND)
    notify(bench)
    notify(bench, "d2")
    assert (partitions(bench), positions(bench)) == (["d1", "d2"], [5])
    assert bench.on("tidegate.events.dlq") == []
    told = [dict(each.fields) for each in bench.notices("source_records_passed")]
    assert {each["source"] for each in told} == {"flights/landed"}
    counts = {
        reason: sum(int(str(each["passed"])) for each in told if each["reason"] == reason)
        for reason in ("where", "tombstone", "empty")
    }
    assert counts == {"where": 3, "tombstone": 1, "empty": 1}


def test_given_one_element_that_is_broken_then_the_record_is_one_dead_letter_and_its_replay_counts_whole() -> None:
    """None of its elements has counted before: whoever corrects the source and replays the letter gets each of them once."""
    bench = a_world({"each": "/days", "event": {"partition": {"pointer": "/day"}}})
    notify(bench, {"day": "d1"}, {"date": "d2"}, {"day": "d3"})
    assert counted(bench) == 0
    (letter,) = bench.on("tidegate.events.dlq")
    assert "[1].partition: source flights/landed: is taken from the pointer /days/1/day" in str(
        letter.headers["tidegate.error.message"]
    )
    corrected = a_source(
        each="/days", where={"pointer": "/day", "exists": True}, event={"partition": {"pointer": "/day"}}
    )
    assert ask(bench, a_source_apply(corrected, "src-2"))["status"] == "accepted"
    headers = tuple((name, value.encode()) for name, value in letter.headers.items())
    read = read_letter(LetterId("events", 0, 0), bench.now, letter.key, letter.value, headers)
    bench.log(TOPIC, 0).append(LogRecord(1, bench.now, read.key, read.value, read.replay_headers()))
    bench.hand_over(TOPIC, 0, 1)
    bench.run(SECOND)
    assert partitions(bench) == ["d1", "d3"]


# -- updates in the middle of a record ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pages", range(1, 7))
@pytest.mark.parametrize("source", [EACH, BY_HEADER], ids=["ids by place", "id of the record"])
def test_given_an_update_amid_a_record_then_who_has_not_heard_of_an_element_hears_it_once(
    source: Doc, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_ingest, "ROWS_PER_MOVE", 4)
    names = ("s1", "s2", "s3", "s4")
    bench = a_world(source, *names)
    moves = iter(range(1, 99))
    bench.crash_at(lambda effect: is_move(effect) and next(moves) == pages)
    bench.answer_with(lambda effect: type(effect).__name__ == "StartReading" and effect.topic == TOPIC, None, 99)  # type: ignore[union-attr]
    notify(bench, "d1", "d2", "d3")
    bench.run(5 * SECOND)
    updated = a_source(**{**source, "event": {**source["event"], "producer": "anew"}})
    assert ask(bench, a_source_apply(updated, "update"))["status"] == "accepted"
    bench.end_scripts()
    bench.crash()
    bench.run(10 * SECOND)
    assert [sorted(partitions(bench, name)) for name in names] == [["d1", "d2", "d3"]] * 4
