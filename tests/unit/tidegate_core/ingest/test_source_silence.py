"""Topics of sources that do not answer, or are not read yet: who waits for them, and how long (decision 19)."""

from __future__ import annotations

import pytest

from tests.support.builders import SECOND, a_spec, all_of, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.source_bench import (
    TOPIC,
    WAITS,
    a_source,
    a_source_apply,
    a_source_delete,
    ask,
    counted,
    produce,
    sources,
)
from tidegate_core.ownership.cluster_object_watch import CHECK_MS
from tidegate_core.rows.effects import Commit, ReadEndOffsets, Unavailable
from tidegate_core.shard.events.end_offsets import SILENT_AFTER_MS


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(behaviour=Behaviour(starts_after=None))
    made.create_topic(TOPIC)
    made.run(SECOND)
    return made


def test_given_brokers_that_do_not_answer_for_one_topic_then_others_are_read(bench: ActorHarness) -> None:
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
    bench.run(6 * CHECK_MS)
    assert counted(bench) == 2


@pytest.fixture
def leaderless(bench: ActorHarness) -> ActorHarness:
    """There is an open source of a topic that does not answer any more."""
    bench.create_topic("b-topic", topic_id="d" * 32)
    ask(bench, a_source_apply(a_source(topic="b-topic")))
    silence(bench)
    return bench


def silence(bench: ActorHarness) -> None:
    bench.lose(lambda effect: isinstance(effect, ReadEndOffsets) and effect.topic == "b-topic", times=1_000_000)


def test_given_a_source_of_a_topic_that_does_not_answer_then_it_is_refused_and_nobody_waits(
    bench: ActorHarness,
) -> None:
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
    leaderless: ActorHarness,
) -> None:
    leaderless.request(an_apply(WAITS))
    leaderless.request({"id": "w-1", "type": "control.suspend", "scope": "system"})
    leaderless.request({"id": "w-2", "type": "control.resume", "scope": "system"})
    leaderless.run(2 * SILENT_AFTER_MS + 2 * SECOND)
    assert leaderless.state_of() is not None
    assert leaderless.status_of("w-2") == "accepted"


def test_given_a_time_out_and_a_topic_that_does_not_answer_then_it_waits_five_minutes_for_it(
    leaderless: ActorHarness,
) -> None:
    pair = all_of(on_data("raw"), on_data("other"), correlate="data_partition", timeout="1m")
    leaderless.request(an_apply(a_spec(trigger=pair)))
    leaderless.run(SILENT_AFTER_MS + SECOND)
    leaderless.event(an_event("d1", "other"))
    leaderless.run(4 * 60 * SECOND)
    assert leaderless.ledger() == []
    leaderless.run(3 * 60 * SECOND)
    assert len(leaderless.ledger()) == 1


def test_given_a_time_out_and_records_that_are_not_read_then_it_waits_for_them(bench: ActorHarness) -> None:
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


def test_given_a_time_out_that_waits_for_a_source_and_its_delete_then_it_waits_no_longer(bench: ActorHarness) -> None:
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
