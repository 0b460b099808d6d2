"""Topics of the users' own: their records count once for who was active, or are dead letters (decision 19, I3)."""

from __future__ import annotations

import json

import pytest

from tests.support import tier
from tests.support.builders import SECOND, a_spec, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.recorded_effects import Sent
from tests.support.harness.source_bench import (
    TOPIC,
    WAITS,
    a_source,
    a_source_apply,
    ask,
    counted,
    positions,
    produce,
    sources,
)
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.dead_letters import SOURCE_HEADER
from tidegate_core.language.values.derived_ids import cluster_object_shard
from tidegate_core.ownership.cluster_object_watch import CHECK_MS
from tidegate_core.rows.dead_letter import LetterId, read_letter
from tidegate_core.rows.effects import Read, ReadEndOffsets, StartReading, WakeUp


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(behaviour=Behaviour(starts_after=None))
    made.create_topic(TOPIC)
    made.run(SECOND)
    return made


def test_given_a_source_then_its_records_count_once_for_who_was_active_and_the_position_is_behind_them(
    bench: ActorHarness,
) -> None:
    produce(bench, "before the source")
    assert ask(bench, a_source_apply())["status"] == "accepted"
    produce(bench, "before the schedule")
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    produce(bench, "d1", "d2", "d3")
    assert counted(bench) == 3
    assert positions(bench) == [5]
    assert bench.rows("I#") == []


def test_given_a_crash_after_each_effect_then_each_record_counts_once() -> None:
    for effects in range(1, 60, tier.at_night(1, else_=4)):
        bench = ActorHarness(behaviour=Behaviour(starts_after=None))
        bench.create_topic(TOPIC)
        bench.run(SECOND)
        bench.crash_after = bench.effects_outside + effects
        bench.request(an_apply(WAITS))
        bench.request(a_source_apply())
        bench.run(20 * SECOND)
        produce(bench, "d1", "d2")
        bench.run(20 * SECOND)
        assert bench.status_of("src-1") == "accepted", effects
        assert counted(bench) == 2, effects
        assert [each.is_open for each in sources(bench).entries] == [True]


def test_given_a_schedule_in_another_namespace_then_it_hears_nothing(bench: ActorHarness) -> None:
    ask(bench, a_source_apply(a_source(namespace="orders")))
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    produce(bench, "d1")
    assert counted(bench) == 0
    assert positions(bench) == [1]


def test_given_an_id_in_a_header_then_a_repeat_counts_once_and_one_on_the_events_topic_is_another(
    bench: ActorHarness,
) -> None:
    ask(bench, a_source_apply(a_source(event={"id": {"header": "commit"}})))
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    produce(bench, "d1", headers={"commit": b"c-1"})
    produce(bench, "d1 again", headers={"commit": b"c-1"})
    produce(bench, "d2", headers={"commit": b"c-2"})
    bench.event(an_event("d3", event_id="c-1"))
    bench.run(SECOND)
    assert counted(bench) == 3


def test_given_two_sources_of_one_topic_then_a_record_is_an_event_of_each(bench: ActorHarness) -> None:
    ask(bench, a_source_apply())
    ask(bench, a_source_apply(a_source("other", event={"dataset": "copy"}), "src-2"))
    bench.request(an_apply(WAITS))
    bench.request(an_apply(a_spec("copies", on_data("copy", count=9)), "a-2"))
    bench.run(SECOND)
    produce(bench, "d1", "d2")
    assert (counted(bench), counted(bench, "copies")) == (2, 2)


def test_given_a_source_that_came_later_than_another_of_its_topic_then_older_records_are_not_its_events(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_spec("copies", on_data("copy", count=9)), "a-2"))
    ask(bench, a_source_apply())
    bench.answer_with(lambda effect: isinstance(effect, StartReading), None)
    produce(bench, "d1")
    ask(bench, a_source_apply(a_source("other", event={"dataset": "copy"}), "src-2"))
    produce(bench, "d2")
    bench.crash()
    bench.run(10 * SECOND)
    assert counted(bench, "copies") == 1


def test_given_a_record_that_is_no_event_then_it_is_a_dead_letter_with_its_source_and_what_follows_goes_on(
    bench: ActorHarness,
) -> None:
    ask(bench, a_source_apply())
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    bench.append(TOPIC, 0, b"no JSON", {"date": 1}, {"day": "d1"})
    bench.run(SECOND)
    assert counted(bench) == 1
    copies = bench.on("tidegate.events.dlq")
    assert [each.value for each in copies] == [b"no JSON", b'{"date": 1}']
    assert {each.headers[SOURCE_HEADER] for each in copies} == {"flights/landed"}
    assert {each.headers["tidegate.error.topic"] for each in copies} == {TOPIC}
    assert "source flights/landed: " in copies[1].headers["tidegate.error.message"]
    assert "/day" in copies[1].headers["tidegate.error.message"]


def test_given_two_sources_and_one_refuses_then_the_other_ones_event_counts(bench: ActorHarness) -> None:
    ask(bench, a_source_apply())
    ask(bench, a_source_apply(a_source("strict", event={"partition": {"header": "day"}}), "src-2"))
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    produce(bench, "d1")
    assert counted(bench) == 1
    (copy,) = bench.on("tidegate.events.dlq")
    assert copy.headers[SOURCE_HEADER] == "flights/strict"


def replay(bench: ActorHarness, letter: Sent) -> None:
    """As the API does, of a letter whose record had no headers of its own."""
    headers = tuple((name, value.encode()) for name, value in letter.headers.items())
    read = read_letter(LetterId("events", 0, len(bench.log(TOPIC, 0))), bench.now, letter.key, letter.value, headers)
    log = bench.log(TOPIC, 0)
    log.append(LogRecord(len(log), bench.now, read.key, read.value, read.replay_headers()))
    bench.hand_over(TOPIC, 0, len(log) - 1)
    bench.run(SECOND)


def test_given_a_replay_of_what_one_of_two_sources_refused_then_it_is_no_second_event_of_the_other(
    bench: ActorHarness,
) -> None:
    """Found in review: a record is another one when it is replayed, so that whoever had made an event of it made one more, however late."""
    ask(bench, a_source_apply())
    ask(bench, a_source_apply(a_source("strict", event={"dataset": "copy", "partition": {"header": "day"}}), "src-2"))
    for dataset in ("raw", "copy"):
        bench.request(an_apply(a_spec(dataset, on_data(dataset, count=1), overlap="queue"), f"apply-{dataset}"))
    bench.run(SECOND)
    produce(bench, "d1")
    replay(bench, bench.on("tidegate.events.dlq")[0])
    # Refused once more; the letter of the replay knows as well who needs none.
    again = bench.on("tidegate.events.dlq")[1]
    ask(bench, a_source_apply(a_source("strict", event={"dataset": "copy"}), "src-3"))
    replay(bench, again)
    assert sorted(str(row["name"]) for row in bench.rows("J#")) == ["copy", "raw"]


def test_given_a_schedule_activated_while_a_source_is_being_opened_then_what_came_before_it_does_not_count(
    bench: ActorHarness,
) -> None:
    """The source is listed, its ends are on their way: the schedule finds it, and reads the topic's ends as well."""
    bench.hold_back(lambda effect: effect == ReadEndOffsets(TOPIC, may_be_missing=True), answer_only=True)
    bench.request(a_source_apply())
    bench.run(10)
    assert [each.is_open for each in sources(bench).entries] == [False]
    produce(bench, "produced before the schedule")
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    bench.release()
    bench.run(10 * SECOND)
    produce(bench, "d1")
    assert counted(bench) == 1


def test_given_a_lost_poke_then_the_source_is_read_all_the_same_from_its_own_first_offset(bench: ActorHarness) -> None:
    bench.request(an_apply(WAITS))
    bench.answer_with(lambda effect: isinstance(effect, WakeUp) and effect.controls, None, times=99)
    assert ask(bench, a_source_apply())["status"] == "accepted"
    produce(bench, "d1")
    bench.run(2 * CHECK_MS)
    assert counted(bench) == 1


def test_given_a_wide_resume_then_records_of_before_it_do_not_count(bench: ActorHarness) -> None:
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    scope = {"scope": "namespace", "namespace": "flights"}
    ask(bench, {"id": "w-1", "type": "control.suspend", **scope})
    produce(bench, "amid")
    ask(bench, {"id": "w-2", "type": "control.resume", **scope})
    produce(bench, "d1")
    assert counted(bench) == 1
    vectors = [json.loads(str(row["offsets"])) for row in bench.rows("VEC")]
    assert {f"{'c' * 32}/0": 1, f"{'b' * 32}/0": 0} in vectors


def test_given_more_topic_partitions_than_holders_then_each_reads_its_own() -> None:
    bench = ActorHarness(topic_partitions=2, topic_partition=cluster_object_shard("sources", 4) % 2)
    bench.create_topic(TOPIC, 5)
    bench.run(SECOND)
    bench.request(a_source_apply(), bench.holding.topic_partition)
    bench.run(SECOND)
    reading = [effect for effect in bench.asked if isinstance(effect, StartReading) and effect.topic == TOPIC]
    mine = [number for number in range(5) if number % 2 == bench.holding.topic_partition]
    assert [effect.topic_partition for effect in reading] == mine
    assert {effect.topic_id for effect in reading} == {"c" * 32}


def test_given_topics_that_are_read_in_turn_then_what_their_sources_begin_with_is_read_once(
    bench: ActorHarness,
) -> None:
    """Found in review: each topic's reading forgot the other's vector, at a read more for each batch."""
    bench.create_topic("lake.other", topic_id="d" * 32)
    ask(bench, a_source_apply())
    ask(bench, a_source_apply({**a_source("other"), "topic": "lake.other"}, "src-2"))
    bench.request(an_apply(WAITS))
    bench.run(20 * SECOND)
    vectors = {str(each.vector) for each in sources(bench).entries}
    assert len(vectors) == 2
    begun = len(bench.asked)
    for number in range(5):
        produce(bench, f"d{number}")
        bench.append("lake.other", 0, {"day": f"e{number}"})
        bench.run(10)
    assert counted(bench) == 10
    wanted = [key.pk for effect in bench.asked[begun:] if isinstance(effect, Read) for key in effect.keys]
    read = [pk for pk in wanted if any(vector in pk for vector in vectors)]
    assert len(read) <= len(vectors), read
