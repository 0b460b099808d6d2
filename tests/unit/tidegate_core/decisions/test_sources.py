"""Topics of the users' own, from the request on a source to what a schedule counts (decision 19, I3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate_core.decisions.dead_letters import SOURCE_HEADER
from tidegate_core.decisions.followed_topics import ASK_AGAIN_MS
from tidegate_core.decisions.inputs import LogRecord, PositionGone
from tidegate_core.decisions.log_ends import SILENT_AFTER_MS
from tidegate_core.decisions.source_watch import LOOK_MS
from tidegate_core.decisions.sources_home import SOURCES_MAX, TOPIC_PARTITIONS_MAX, moved_by
from tidegate_core.effects import Commit, EndOffsets, Poke, ReadEndOffsets, StartReading, Unavailable
from tidegate_core.model.parsing import parse_request
from tidegate_core.model.position import Position
from tidegate_core.model.receipts import ReceiptStatus
from tidegate_core.model.requests import SourceApply, SourceDelete
from tidegate_core.model.shards import sources_shard
from tidegate_core.records.codec import from_item
from tidegate_core.records.sources import NO_SOURCES, Sources, StoredSources
from tidegate_core.store import keys
from tidegate_testkit.bench import Behaviour, Bench
from tidegate_testkit.builders import EVENTS, NOW, SECOND, Doc, a_spec, all_of, an_apply, an_event, on_data

TOPIC = "lake.commits"
MAPPED = ("dataset", "partition", "id", "kind", "bytes", "rows", "version", "event_time", "producer")
WAITS = a_spec(trigger=on_data(count=1_000))


def a_source(name: str = "landed", **more: Any) -> Doc:
    mapping = {"dataset": "raw", "partition": {"pointer": "/day"}} | more.pop("event", {})
    return {"kind": "source", "namespace": "flights", "name": name, "topic": TOPIC, "event": mapping, **more}


def a_source_apply(source: Doc | None = None, request_id: str = "src-1", **more: Any) -> Doc:
    spec = source or a_source()
    ref = {"namespace": spec["namespace"], "name": spec["name"]}
    return {"id": request_id, "type": "source.apply", **ref, "spec": spec, **more}


def a_source_delete(name: str = "landed", request_id: str = "gone-1", **more: Any) -> Doc:
    return {"id": request_id, "type": "source.delete", "namespace": "flights", "name": name, **more}


@pytest.fixture
def bench() -> Bench:
    made = Bench(behaviour=Behaviour(starts_after=None))
    made.create_topic(TOPIC)
    made.run(SECOND)
    return made


def ask(bench: Bench, document: Doc) -> Doc:
    bench.request(document)
    bench.run(SECOND)
    return bench.receipts()[str(document["id"])]


def produce(bench: Bench, *days: str, topic_partition: int = 0, headers: dict[str, bytes] | None = None) -> None:
    first = len(bench.log(TOPIC, topic_partition))
    lay(bench, *days, topic_partition=topic_partition, headers=headers)
    bench.hand_over(TOPIC, topic_partition, first)
    bench.run(10)


def lay(bench: Bench, *days: str, topic_partition: int = 0, headers: dict[str, bytes] | None = None) -> None:
    """Records lie in the log; nobody has read them yet."""
    log = bench.log(TOPIC, topic_partition)
    for day in days:
        value = json.dumps({"day": day}).encode()
        log.append(LogRecord(len(log), bench.now, None, value, tuple((headers or {}).items())))


def sources(bench: Bench) -> Sources:
    item = bench.store.peek(keys.SOURCES_KEY)
    return NO_SOURCES if item is None else from_item(StoredSources, item).sources


def counted(bench: Bench, name: str = "nightly") -> int:
    return sum(sum(row["counts"]) for row in bench.rows(f"E#flights/{name}#"))  # type: ignore[misc, arg-type]


def positions(bench: Bench, topic_id: str = "c" * 32) -> list[object]:
    return [row["next"] for row in bench.rows("TP") if topic_id in str(row["pk"])]


# -- counting -------------------------------------------------------------------------------------------------------------


def test_given_a_source_then_its_records_count_once_for_who_was_active_and_the_position_is_behind_them(
    bench: Bench,
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
    for effects in range(1, 60):
        bench = Bench(behaviour=Behaviour(starts_after=None))
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


def test_given_a_schedule_in_another_namespace_then_it_hears_nothing(bench: Bench) -> None:
    ask(bench, a_source_apply(a_source(namespace="orders")))
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    produce(bench, "d1")
    assert counted(bench) == 0
    assert positions(bench) == [1]


def test_given_an_id_in_a_header_then_a_repeat_counts_once_and_one_on_the_events_topic_is_another(bench: Bench) -> None:
    ask(bench, a_source_apply(a_source(event={"id": {"header": "commit"}})))
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    produce(bench, "d1", headers={"commit": b"c-1"})
    produce(bench, "d1 again", headers={"commit": b"c-1"})
    produce(bench, "d2", headers={"commit": b"c-2"})
    bench.event(an_event("d3", event_id="c-1"))
    bench.run(SECOND)
    assert counted(bench) == 3


def test_given_two_sources_of_one_topic_then_a_record_is_an_event_of_each(bench: Bench) -> None:
    ask(bench, a_source_apply())
    ask(bench, a_source_apply(a_source("other", event={"dataset": "copy"}), "src-2"))
    bench.request(an_apply(WAITS))
    bench.request(an_apply(a_spec("copies", on_data("copy", count=9)), "a-2"))
    bench.run(SECOND)
    produce(bench, "d1", "d2")
    assert (counted(bench), counted(bench, "copies")) == (2, 2)


def test_given_a_source_that_came_later_than_another_of_its_topic_then_older_records_are_not_its_events(
    bench: Bench,
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


# -- what cannot be mapped ---------------------------------------------------------------------------------------------------


def test_given_a_record_that_is_no_event_then_it_is_a_dead_letter_with_its_source_and_what_follows_goes_on(
    bench: Bench,
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


def test_given_two_sources_and_one_refuses_then_the_other_ones_event_counts(bench: Bench) -> None:
    ask(bench, a_source_apply())
    ask(bench, a_source_apply(a_source("strict", event={"partition": {"header": "day"}}), "src-2"))
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    produce(bench, "d1")
    assert counted(bench) == 1
    (copy,) = bench.on("tidegate.events.dlq")
    assert copy.headers[SOURCE_HEADER] == "flights/strict"


# -- requests ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "field"),
    [
        pytest.param(a_source(topic=EVENTS), "spec.topic", id="tidegate's own topic"),
        pytest.param(a_source(topic="tidegate.anything"), "spec.topic", id="what begins like tidegate's own"),
        pytest.param(a_source(topic="nowhere"), "spec.topic", id="no such topic"),
    ],
)
def test_given_a_topic_that_cannot_be_read_then_the_source_is_refused_and_nothing_stays(
    bench: Bench, source: Doc, field: str
) -> None:
    receipt = ask(bench, a_source_apply(source))
    assert receipt["status"] == "rejected"
    assert [each["field"] for each in receipt["errors"]] == [field]
    assert not any(each.is_there for each in sources(bench).entries)
    assert ask(bench, a_source_apply(request_id="src-2"))["status"] == "accepted"


def test_given_an_update_then_its_version_rises_and_what_comes_is_mapped_anew(bench: Bench) -> None:
    assert ask(bench, a_source_apply())["version"] == 1
    bench.request(an_apply(WAITS))
    bench.request(an_apply(a_spec("copies", on_data("copy", count=9)), "a-2"))
    bench.run(SECOND)
    produce(bench, "d1")
    assert ask(bench, a_source_apply(request_id="same"))["status"] == "unchanged"
    update = ask(bench, a_source_apply(a_source(event={"dataset": "copy"}), "new", expected_version=1))
    assert (update["status"], update["version"]) == ("accepted", 2)
    produce(bench, "d2")
    assert (counted(bench), counted(bench, "copies")) == (1, 1)
    late = ask(bench, a_source_apply(request_id="late", expected_version=1))
    assert (late["status"], late["version"]) == ("conflict", 2)


def test_given_another_topic_then_the_update_is_refused(bench: Bench) -> None:
    ask(bench, a_source_apply())
    bench.create_topic("other", topic_id="d" * 32)
    receipt = ask(bench, a_source_apply(a_source(topic="other"), "src-2"))
    assert receipt["status"] == "rejected"
    assert "lake.commits" in receipt["errors"][0]["problem"]


def test_given_a_delete_then_nothing_that_comes_counts_and_made_anew_it_begins_at_the_end(bench: Bench) -> None:
    ask(bench, a_source_apply())
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    produce(bench, "d1")
    assert ask(bench, a_source_delete())["status"] == "accepted"
    produce(bench, "d2", "d3")
    assert not [row for row in bench.rows("VEC") if json.loads(str(row["offsets"])) == {f"{'c' * 32}/0": 0}]
    assert ask(bench, a_source_delete(request_id="gone-2"))["status"] == "not_found"
    again = ask(bench, a_source_apply(request_id="src-2", expected_version=0))
    assert (again["status"], again["version"]) == ("accepted", 2)
    produce(bench, "d4")
    assert counted(bench) == 2
    assert positions(bench) == [4]


def test_given_as_many_sources_as_may_be_then_one_more_is_refused(bench: Bench) -> None:
    for number in range(SOURCES_MAX):
        bench.request(a_source_apply(a_source(f"s{number}"), f"src-{number}"))
    bench.run(SECOND)
    receipt = ask(bench, a_source_apply(a_source("more"), "one more"))
    assert receipt["status"] == "rejected"
    ask(bench, a_source_delete("s0"))
    assert ask(bench, a_source_apply(a_source("more"), "again"))["status"] == "accepted"
    assert len(str(bench.store.peek(keys.SOURCES_KEY))) < 400_000


def test_given_sources_whose_bodies_fill_the_item_then_one_more_is_refused_with_the_bytes(bench: Bench) -> None:
    quotes = {"pointer": "/" + '"' * 255}
    made = [a_source(f"s{number}", event=dict.fromkeys(MAPPED, quotes)) for number in range(SOURCES_MAX)]
    receipts = [ask(bench, a_source_apply(source, f"src-{number}")) for number, source in enumerate(made)]
    assert {each["status"] for each in receipts} == {"accepted", "rejected"}
    (problem,) = receipts[-1]["errors"]
    assert problem["field"] == "spec"
    assert "at most 350000 can be kept" in problem["problem"]


def test_given_more_topic_partitions_than_a_vector_holds_then_the_source_is_refused_with_their_number(
    bench: Bench,
) -> None:
    wide = EndOffsets({f"{'d' * 32}/{number}": 0 for number in range(TOPIC_PARTITIONS_MAX)})
    ask(bench, a_source_apply())
    bench.answer_with(lambda effect: effect == ReadEndOffsets("wide", may_be_missing=True), wide)
    receipt = ask(bench, a_source_apply(a_source("second", topic="wide"), "src-2"))
    (problem,) = receipt["errors"]
    assert (problem["field"], "8001 topic partitions" in problem["problem"]) == ("spec.topic", True)


def test_given_an_older_apply_behind_a_delete_then_it_is_superseded() -> None:
    """Two topic partitions of the requests: the delete was appended later, and is applied first."""
    delete = parse_request(json.dumps(a_source_delete()).encode())
    apply = parse_request(json.dumps(a_source_apply()).encode())
    assert isinstance(delete, SourceDelete)
    assert isinstance(apply, SourceApply)
    older, newer = (Position(NOW + number, "a" * 32, number, 1) for number in range(2))
    deleted = moved_by(NO_SOURCES, delete, "d", newer, None, "tidegate.")
    assert deleted.status is ReceiptStatus.NOT_FOUND
    assert moved_by(deleted.sources, apply, "a", older, None, "tidegate.").status is ReceiptStatus.SUPERSEDED


def test_given_an_apply_sent_twice_then_the_earlier_record_goes_on_where_the_later_one_has_begun() -> None:
    """Seed 124: read later than its repeat, whose owner fell before it was answered, it was told that it was superseded."""
    apply = parse_request(json.dumps(a_source_apply()).encode())
    assert isinstance(apply, SourceApply)
    earlier, later = (Position(NOW + number, "a" * 32, number, 1) for number in range(2))
    listed = moved_by(NO_SOURCES, apply, "a", later, None, "tidegate.")
    assert listed.status is None
    again = moved_by(listed.sources, apply, "a", earlier, None, "tidegate.")
    assert (again.status, again.sources) == (None, listed.sources)
    opened = moved_by(again.sources, apply, "a", earlier, "vector", "tidegate.")
    assert (opened.status, opened.version) == (ReceiptStatus.ACCEPTED, 1)
    assert [(each.position, each.opened_by) for each in opened.sources.entries] == [(later.text(), None)]
    assert moved_by(listed.sources, apply, "b", earlier, None, "tidegate.").status is ReceiptStatus.SUPERSEDED


# -- interleavings -------------------------------------------------------------------------------------------------------------


def test_given_a_schedule_activated_while_a_source_is_being_opened_then_what_came_before_it_does_not_count(
    bench: Bench,
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


def test_given_a_lost_poke_then_the_source_is_read_all_the_same_from_its_own_first_offset(bench: Bench) -> None:
    bench.request(an_apply(WAITS))
    bench.answer_with(lambda effect: isinstance(effect, Poke) and effect.controls, None, times=99)
    assert ask(bench, a_source_apply())["status"] == "accepted"
    produce(bench, "d1")
    bench.run(2 * LOOK_MS)
    assert counted(bench) == 1


def test_given_brokers_that_do_not_answer_for_one_topic_then_others_are_read(bench: Bench) -> None:
    bench.create_topic("b-topic", topic_id="d" * 32)
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    ask(bench, a_source_apply(a_source("second", topic="b-topic"), "src-2"))
    away = ReadEndOffsets("b-topic", may_be_missing=True)
    bench.answer_with(lambda effect: effect == away, Unavailable("away"), times=5)
    bench.crash()
    bench.run(2 * SECOND)
    produce(bench, "d1")
    assert counted(bench) == 1
    bench.append("b-topic", 0, {"day": "d2"})
    bench.run(6 * LOOK_MS)
    assert counted(bench) == 2


def test_given_a_topic_that_is_gone_then_it_is_looked_for_each_minute_and_found_when_it_is_back(bench: Bench) -> None:
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    bench.topics.clear()
    bench.crash()
    bench.run(SECOND)
    first = len(bench.asked)
    bench.run(10 * ASK_AGAIN_MS)
    looks = [each for each in bench.asked[first:] if each == ReadEndOffsets(TOPIC, may_be_missing=True)]
    assert 9 <= len(looks) <= 10
    bench.create_topic(TOPIC, 1, "d" * 32)
    produce(bench, "d1")
    bench.run(ASK_AGAIN_MS + 2 * LOOK_MS)
    assert counted(bench) == 1


def test_given_a_topic_that_grows_or_is_made_anew_then_what_is_new_counts_whole(bench: Bench) -> None:
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    produce(bench, "d1")
    bench.create_topic(TOPIC, 2)
    produce(bench, "d2", topic_partition=1)
    bench.run(ASK_AGAIN_MS + 2 * LOOK_MS)
    assert counted(bench) == 2
    bench.logs.pop((TOPIC, 0))
    bench.logs.pop((TOPIC, 1))
    bench.create_topic(TOPIC, 1, "d" * 32)
    produce(bench, "d3")
    bench.run(ASK_AGAIN_MS + 2 * LOOK_MS)
    assert counted(bench) == 3
    assert positions(bench, "d" * 32) == [1]


@pytest.mark.parametrize("stale_answers", [0, 2], ids=["known", "some brokers tell of the old one"])
def test_given_a_topic_made_anew_and_longer_than_before_then_none_of_it_moves_the_old_position_and_it_counts_once(
    bench: Bench, stale_answers: int
) -> None:
    """The client reads on in it from the old offset: found with a real broker, when it was filled within 100 ms.

    Records without an id of their own counted twice then: their place, with the topic's id, is their identity.
    """
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    produce(bench, "d1", "d2")
    bench.logs.pop((TOPIC, 0))
    bench.create_topic(TOPIC, 1, "d" * 32)
    old = EndOffsets({f"{'c' * 32}/0": 2})
    bench.answer_with(lambda effect: effect == ReadEndOffsets(TOPIC, may_be_missing=True), old, stale_answers)
    lay(bench, "e1", "e2", "e3")
    bench.hand_over(TOPIC, 0, 2)  # Where the client stood in the old one.
    bench.run((stale_answers + 1) * LOOK_MS)
    assert positions(bench) == [2]
    assert positions(bench, "d" * 32) == [3]
    assert [row["counts"] for row in bench.rows("E#")] == [[5]]
    assert [each.fields["offset"] for each in bench.notices("topic_made_anew")] == [2]


@pytest.mark.parametrize("made_anew", [True, False], ids=["the topic too", "the source alone"])
def test_given_a_source_made_anew_and_a_reader_of_the_topic_of_before_it_then_what_it_still_finds_is_no_event(
    bench: Bench, made_anew: bool
) -> None:
    """Simulation, seed 777009: its holder stood still from the delete until after the apply, and knew of neither."""
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    produce(bench, "d1")
    bench.answer_with(lambda effect: isinstance(effect, Poke) and effect.controls, None, times=99)
    ask(bench, a_source_delete())
    lay(bench, "d2", "d3")
    left = bench.arrived(TOPIC, 0, 1)
    if made_anew:
        bench.logs.pop((TOPIC, 0))
        bench.create_topic(TOPIC, 1, "d" * 32)
    assert ask(bench, a_source_apply(request_id="src-2"))["status"] == "accepted"
    assert bench.notices("topic_left") == []
    bench.give(left)
    bench.run(SECOND)
    assert counted(bench) == 1
    if made_anew:
        lay(bench, "e1")
    else:
        lay(bench, "d4")
        bench.hand_over(TOPIC, 0, 3)
    bench.run(ASK_AGAIN_MS + 2 * LOOK_MS)
    assert counted(bench) == 2


def test_given_a_position_that_is_gone_then_the_topic_is_asked_about_at_once(bench: Bench) -> None:
    bench.request(an_apply(WAITS))
    ask(bench, a_source_apply())
    produce(bench, "d1", "d2")
    bench.logs.pop((TOPIC, 0))
    bench.create_topic(TOPIC, 1, "d" * 32)
    lay(bench, "e1")
    bench.give(PositionGone(TOPIC, 0, 2))
    bench.run(SECOND)
    assert counted(bench) == 3


def test_given_a_topic_that_is_gone_then_activations_are_not_held_up(bench: Bench) -> None:
    ask(bench, a_source_apply())
    bench.topics.clear()
    bench.request(an_apply(WAITS))
    bench.run(SECOND)
    assert bench.state_of() is not None


@pytest.fixture
def leaderless(bench: Bench) -> Bench:
    """There is an open source of a topic that does not answer any more."""
    bench.create_topic("b-topic", topic_id="d" * 32)
    ask(bench, a_source_apply(a_source(topic="b-topic")))
    silence(bench)
    return bench


def silence(bench: Bench) -> None:
    bench.lose(lambda effect: isinstance(effect, ReadEndOffsets) and effect.topic == "b-topic", times=1_000_000)


def test_given_a_source_of_a_topic_that_does_not_answer_then_it_is_refused_and_nobody_waits(bench: Bench) -> None:
    bench.create_topic("b-topic", topic_id="d" * 32)
    silence(bench)
    bench.request(a_source_apply(a_source(topic="b-topic")))
    bench.request(a_source_apply(a_source("second"), "src-2"))
    bench.run(SILENT_AFTER_MS + 2 * SECOND)
    (refused,) = bench.receipts()["src-1"]["errors"]
    assert (refused["field"], refused["problem"]) == ("spec.topic", '"b-topic" does not answer now')
    assert bench.status_of("src-2") == "accepted"
    assert [each.name for each in sources(bench).entries if each.is_there] == ["second"]


def test_given_a_topic_that_does_not_answer_then_activations_and_wide_resumes_go_on_without_it(
    leaderless: Bench,
) -> None:
    leaderless.request(an_apply(WAITS))
    leaderless.request({"id": "w-1", "type": "control.suspend", "scope": "system"})
    leaderless.request({"id": "w-2", "type": "control.resume", "scope": "system"})
    leaderless.run(2 * SILENT_AFTER_MS + 2 * SECOND)
    assert leaderless.state_of() is not None
    assert leaderless.status_of("w-2") == "accepted"


def test_given_a_time_out_and_a_topic_that_does_not_answer_then_it_waits_five_minutes_for_it(leaderless: Bench) -> None:
    pair = all_of(on_data("raw"), on_data("other"), correlate="data_partition", timeout="1m")
    leaderless.request(an_apply(a_spec(trigger=pair)))
    leaderless.run(SILENT_AFTER_MS + SECOND)
    leaderless.event(an_event("d1", "other"))
    leaderless.run(4 * 60 * SECOND)
    assert leaderless.ledger() == []
    leaderless.run(3 * 60 * SECOND)
    assert len(leaderless.ledger()) == 1


def test_given_a_time_out_and_records_that_are_not_read_then_it_waits_for_them(bench: Bench) -> None:
    """The other half of the pair came in time, and lies unread in the source's topic."""
    pair = all_of(on_data("raw"), on_data("other"), correlate="data_partition", timeout="1m")
    bench.request(an_apply(a_spec(trigger=pair)))
    ask(bench, a_source_apply())
    bench.event(an_event("d1", "other"))
    bench.run(50 * SECOND)
    bench.hold_back(
        lambda effect: isinstance(effect, Commit) and effect.transaction.name == "cursor" and "c" * 32 in str(effect)
    )
    produce(bench, "d1")
    bench.run(30 * SECOND)
    assert bench.ledger() == []
    bench.release()
    bench.run(5 * SECOND)
    assert len(bench.rows("R#")) == 1


def test_given_a_time_out_that_waits_for_a_source_and_its_delete_then_it_waits_no_longer(bench: Bench) -> None:
    """Seed 6001155: its reader is gone, so its position stays before the end that was awaited; it took five minutes."""
    pair = all_of(on_data("raw"), on_data("other"), correlate="data_partition", timeout="1m")
    bench.request(an_apply(a_spec(trigger=pair)))
    ask(bench, a_source_apply())
    bench.event(an_event("d1", "other"))
    bench.run(50 * SECOND)
    bench.hold_back(
        lambda effect: isinstance(effect, Commit) and effect.transaction.name == "cursor" and "c" * 32 in str(effect)
    )
    produce(bench, "d1")
    bench.run(30 * SECOND)
    assert bench.ledger() == []
    assert ask(bench, a_source_delete())["status"] == "accepted"
    bench.run(5 * SECOND)
    assert len(bench.ledger()) == 1


def test_given_a_wide_resume_then_records_of_before_it_do_not_count(bench: Bench) -> None:
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
    bench = Bench(topic_partitions=2, topic_partition=sources_shard(4) % 2)
    bench.create_topic(TOPIC, 5)
    bench.run(SECOND)
    bench.request(a_source_apply(), bench.holding.topic_partition)
    bench.run(SECOND)
    reading = [effect for effect in bench.asked if isinstance(effect, StartReading) and effect.topic == TOPIC]
    mine = [number for number in range(5) if number % 2 == bench.holding.topic_partition]
    assert [effect.topic_partition for effect in reading] == mine
    assert {effect.topic_id for effect in reading} == {"c" * 32}
