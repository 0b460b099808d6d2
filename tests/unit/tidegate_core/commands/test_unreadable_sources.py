"""A source that a newer release accepted and this one cannot read (a roll-back): its topic waits, and nothing else does."""

from __future__ import annotations

import pytest

from tests.support.builders import SECOND, a_spec, an_apply, an_event, on_data
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
    reword,
    sources,
)
from tidegate_core.ownership.cluster_object_watch import CHECK_MS

OTHER = "lake.others"
GRAMMAR = {"sample": {"every": 10}}


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(behaviour=Behaviour(starts_after=None))
    made.create_topic(TOPIC)
    made.create_topic(OTHER, 1, "d" * 32)
    made.run(SECOND)
    ask(made, a_source_apply())
    ask(made, a_source_apply(a_source("other", event={"dataset": "copy"}) | {"topic": OTHER}, "src-2"))
    made.request(an_apply(WAITS))
    made.request(an_apply(a_spec("copies", on_data("copy", count=9)), "a-2"))
    made.run(SECOND)
    produce(made, "d1")
    return made


def failures(bench: ActorHarness) -> list[object]:
    told = [each.fields for each in bench.notices("decision_failed")]
    return [each["about"] for each in told if each["name"] == "source"]


def test_given_records_behind_its_new_definition_then_they_wait_and_count_once_it_can_be_read(
    bench: ActorHarness,
) -> None:
    """The position is before them, whoever owns the topic partition: a newer node counts them as its definition says."""
    reword(bench, "landed", **GRAMMAR)
    produce(bench, "d2", "d3")
    bench.run(20 * CHECK_MS)
    assert (counted(bench), positions(bench)) == (1, [1])
    assert failures(bench) == ["flights/landed"], "told once for each definition"
    bench.crash()
    bench.run(20 * CHECK_MS)
    assert positions(bench) == [1]

    assert ask(bench, a_source_apply(request_id="src-3"))["status"] == "accepted"
    bench.run(2 * CHECK_MS)
    assert (counted(bench), positions(bench)) == (3, [3])
    assert bench.on("tidegate.events.dlq") == []


def test_given_a_definition_that_is_readable_again_before_anybody_looked_then_its_topic_goes_on(
    bench: ActorHarness,
) -> None:
    reword(bench, "landed", **GRAMMAR)
    produce(bench, "d2")
    reword(bench, "landed", sample=None)
    ask(bench, a_source_apply(request_id="src-3"))
    bench.run(2 * CHECK_MS)
    assert (counted(bench), positions(bench)) == (2, [2])


def test_given_one_of_two_sources_of_a_topic_then_what_the_other_makes_of_its_records_waits_as_well(
    bench: ActorHarness,
) -> None:
    """A record's events are counted with its place in the topic; one that is left out there is lost."""
    ask(bench, a_source_apply(a_source("twin", event={"dataset": "copy"}), "src-3"))
    reword(bench, "landed", **GRAMMAR)
    produce(bench, "d2")
    bench.run(2 * CHECK_MS)
    assert counted(bench, "copies") == 0
    ask(bench, a_source_delete())
    bench.run(2 * CHECK_MS)
    assert counted(bench, "copies") == 1


def test_given_an_unreadable_source_then_other_topics_requests_and_activations_go_on(bench: ActorHarness) -> None:
    reword(bench, "landed", **GRAMMAR)
    bench.run(2 * CHECK_MS)
    bench.event(an_event("e1"))
    assert ask(bench, an_apply(a_spec("later", on_data("raw", count=9)), "a-3"))["status"] == "accepted"
    assert ask(bench, a_source_apply(a_source("third") | {"topic": OTHER}, "src-4"))["status"] == "accepted"
    assert counted(bench) == 2


def test_given_an_unreadable_source_then_it_can_be_deleted(bench: ActorHarness) -> None:
    reword(bench, "landed", **GRAMMAR)
    assert ask(bench, a_source_delete())["status"] == "accepted"
    assert [each.is_there for each in sources(bench).entries if each.name == "landed"] == [False]


def test_given_an_unreadable_source_then_its_topic_cannot_be_changed(bench: ActorHarness) -> None:
    reword(bench, "landed", **GRAMMAR)
    assert ask(bench, a_source_apply(a_source() | {"topic": OTHER}, "src-3"))["status"] == "rejected"
