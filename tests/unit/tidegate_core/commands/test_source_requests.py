"""Requests on sources: what is refused, versions, and where a source that is made anew begins (decision 19)."""

from __future__ import annotations

import json
from itertools import count

import pytest

from tests.support.builders import EVENTS, NOW, SECOND, Doc, a_spec, an_apply, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.source_bench import (
    TOPIC,
    WAITS,
    a_source,
    a_source_apply,
    a_source_delete,
    ask,
    counted,
    positions,
    produce,
    sources,
)
from tidegate_core.commands.cluster_object import Facts, Transition
from tidegate_core.commands.source_commands import SOURCES, SOURCES_MAX, TOPIC_PARTITIONS_MAX
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import SourceApply, SourceDelete
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows import keys
from tidegate_core.rows.effects import EndOffsets, ReadEndOffsets
from tidegate_core.rows.source_list import NO_SOURCES, Sources

MAPPED = ("dataset", "partition", "id", "kind", "bytes", "rows", "version", "event_time", "producer")


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(behaviour=Behaviour(starts_after=None))
    made.create_topic(TOPIC)
    made.run(SECOND)
    return made


def test_given_a_crash_anywhere_in_a_delete_then_the_first_offsets_go_with_the_source() -> None:
    for effects in count(1):
        bench = ActorHarness(behaviour=Behaviour(starts_after=None))
        bench.create_topic(TOPIC)
        bench.run(SECOND)
        assert ask(bench, a_source_apply())["status"] == "accepted"
        assert len(bench.rows("VEC")) == 1
        bench.crash_after = bench.effects_outside + effects
        assert ask(bench, a_source_delete())["status"] == "accepted"
        assert bench.rows("VEC") == [], effects
        if bench.lives == 1:
            return


@pytest.mark.parametrize(
    ("source", "field"),
    [
        pytest.param(a_source(topic=EVENTS), "spec.topic", id="tidegate's own topic"),
        pytest.param(a_source(topic="tidegate.anything"), "spec.topic", id="what begins like tidegate's own"),
        pytest.param(a_source(topic="nowhere"), "spec.topic", id="no such topic"),
    ],
)
def test_given_a_topic_that_cannot_be_read_then_the_source_is_refused_and_nothing_stays(
    bench: ActorHarness, source: Doc, field: str
) -> None:
    receipt = ask(bench, a_source_apply(source))
    assert receipt["status"] == "rejected"
    assert [each["field"] for each in receipt["errors"]] == [field]
    assert not any(each.is_there for each in sources(bench).entries)
    assert ask(bench, a_source_apply(request_id="src-2"))["status"] == "accepted"


def test_given_an_update_then_its_version_rises_and_what_comes_is_mapped_anew(bench: ActorHarness) -> None:
    assert ask(bench, a_source_apply(request_id="absent", expected_version="any"))["status"] == "conflict"
    assert ask(bench, a_source_apply())["version"] == 1
    assert ask(bench, a_source_apply(request_id="there", expected_version="any"))["status"] == "unchanged"
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


def test_given_another_topic_then_the_update_is_refused(bench: ActorHarness) -> None:
    ask(bench, a_source_apply())
    bench.create_topic("other", topic_id="d" * 32)
    receipt = ask(bench, a_source_apply(a_source(topic="other"), "src-2"))
    assert receipt["status"] == "rejected"
    assert "lake.commits" in receipt["errors"][0]["problem"]


def test_given_a_delete_then_nothing_that_comes_counts_and_made_anew_it_begins_at_the_end(bench: ActorHarness) -> None:
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


def test_given_as_many_sources_as_may_be_then_one_more_is_refused(bench: ActorHarness) -> None:
    for number in range(SOURCES_MAX):
        bench.request(a_source_apply(a_source(f"s{number}"), f"src-{number}"))
    bench.run(SECOND)
    receipt = ask(bench, a_source_apply(a_source("more"), "one more"))
    assert receipt["status"] == "rejected"
    ask(bench, a_source_delete("s0"))
    assert ask(bench, a_source_apply(a_source("more"), "again"))["status"] == "accepted"
    assert len(str(bench.store.peek(keys.SOURCES_KEY))) < 400_000


def test_given_sources_whose_bodies_fill_the_item_then_one_more_is_refused_with_the_bytes(bench: ActorHarness) -> None:
    quotes = {"pointer": "/" + '"' * 255}
    made = [a_source(f"s{number}", event=dict.fromkeys(MAPPED, quotes)) for number in range(SOURCES_MAX)]
    receipts = [ask(bench, a_source_apply(source, f"src-{number}")) for number, source in enumerate(made)]
    assert {each["status"] for each in receipts} == {"accepted", "rejected"}
    (problem,) = receipts[-1]["errors"]
    assert problem["field"] == "spec"
    assert "at most 350000 can be kept" in problem["problem"]


def test_given_more_topic_partitions_than_a_vector_holds_then_the_source_is_refused_with_their_number(
    bench: ActorHarness,
) -> None:
    wide = EndOffsets({f"{'d' * 32}/{number}": 0 for number in range(TOPIC_PARTITIONS_MAX)})
    ask(bench, a_source_apply())
    bench.answer_with(lambda effect: effect == ReadEndOffsets("wide", may_be_missing=True), wide)
    receipt = ask(bench, a_source_apply(a_source("second", topic="wide"), "src-2"))
    (problem,) = receipt["errors"]
    assert (problem["field"], "8001 topic partitions" in problem["problem"]) == ("spec.topic", True)


def moved_by(
    before: Sources, request: SourceApply | SourceDelete, request_id: str, position: Position, vector: str | None = None
) -> Transition[Sources]:
    facts = Facts(request_id=request_id, now=NOW, own_topics="tidegate.", end_offsets=vector)
    return SOURCES.transition(before, request, position, facts)


def test_given_an_older_apply_behind_a_delete_then_it_is_superseded() -> None:
    """Two topic partitions of the requests: the delete was appended later, and is applied first."""
    delete = parse_request(json.dumps(a_source_delete()).encode())
    apply = parse_request(json.dumps(a_source_apply()).encode())
    assert isinstance(delete, SourceDelete)
    assert isinstance(apply, SourceApply)
    older, newer = (Position(NOW + number, "a" * 32, number, 1) for number in range(2))
    deleted = moved_by(NO_SOURCES, delete, "d", newer)
    assert deleted.status is ReceiptStatus.NOT_FOUND
    assert moved_by(deleted.after, apply, "a", older).status is ReceiptStatus.SUPERSEDED


def test_given_an_apply_sent_twice_then_the_earlier_record_goes_on_where_the_later_one_has_begun() -> None:
    """Seed 124: read later than its repeat, whose owner fell before it was answered, it was told that it was superseded."""
    apply = parse_request(json.dumps(a_source_apply()).encode())
    assert isinstance(apply, SourceApply)
    earlier, later = (Position(NOW + number, "a" * 32, number, 1) for number in range(2))
    listed = moved_by(NO_SOURCES, apply, "a", later)
    assert listed.status is None
    again = moved_by(listed.after, apply, "a", earlier)
    assert (again.status, again.after) == (None, listed.after)
    opened = moved_by(again.after, apply, "a", earlier, "vector")
    assert (opened.status, opened.version) == (ReceiptStatus.ACCEPTED, 1)
    assert [(each.position, each.opened_by) for each in opened.after.entries] == [(later.text(), None)]
    assert moved_by(listed.after, apply, "b", earlier).status is ReceiptStatus.SUPERSEDED
