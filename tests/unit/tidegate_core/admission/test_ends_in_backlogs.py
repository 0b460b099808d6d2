"""Requests that lie in an inbox together share what is read of the topics' ends: each reading serves all that had arrived before.

A source alone reads its topic after it was listed; it shares what was found out of topics that are silent, or not there.

Found by hostile records on processes: thousands of wide resumes and applies of sources, each with readings of its own, of which one
of a topic that is not there takes the brokers seconds, were answered at one a second, and all else in that shard stood behind them.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from random import Random

import pytest

from tests.support import tier
from tests.support.builders import EVENTS, REQUESTS, SECOND, Doc, a_spec, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.source_bench import (
    TOPIC,
    a_source,
    a_source_apply,
    a_source_delete,
    counted,
    lay,
    produce,
    sources,
)
from tidegate_core.commands import source_commands
from tidegate_core.commands.source_commands import SOURCES_MAX
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.language.values.derived_ids import cluster_object_shard, schedule_shard
from tidegate_core.rows.effects import Commit, Effect, EndOffsets, ReadEndOffsets, Write

N = tier.at_night(200, else_=100)
FEW = 3
"""Readings: one for what lay there when the first request was applied, one for what came meanwhile, one of who begins to read."""
MISSING_TAKES_MS = 2_000
"""As with Kafka: its client asks again for so long before it says that a topic is not there."""

WIDTHS = {"wide": 40, "wider": 60, "widest": 2 * SOURCES_MAX + 1}
"""Topics, with how many topic partitions they have."""
SECOND_LISTING = 4
"""Among the moves of an apply (two), a delete, and an apply."""
ELSEWHERE = next(
    name for name in "abcdefgh" if schedule_shard("flights", name, 4) != cluster_object_shard("sources", 4)
)
"""A schedule that does not wait for what sources wait for."""
BEHIND = next(
    n for n in map(str, range(99)) if schedule_shard("flights", n, 4) == schedule_shard("flights", "first", 4)
)
"""One that does wait for what `first` waits for."""


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.create_topic(TOPIC)
    made.store_answers_after = 1  # Else all of a backlog would be looked at in the same instant.
    made.run(SECOND)
    return made


def readings(bench: ActorHarness, documents: list[Doc], run: int = 20 * SECOND) -> Counter[str]:
    """Puts requests into the log at once, waits until all are answered, and returns how often which topic's ends were read."""
    first = len(bench.asked)
    bench.append(REQUESTS, 0, *documents)
    bench.run(run)
    answers = bench.receipts()
    assert [each["id"] for each in documents if each["id"] not in answers] == []
    return Counter(each.topic for each in bench.asked[first:] if isinstance(each, ReadEndOffsets))


def statuses(bench: ActorHarness, documents: list[Doc]) -> Counter[str]:
    answers = bench.receipts()
    return Counter(answers[str(each["id"])]["status"] for each in documents)


def control(kind: str, number: int) -> Doc:
    namespace = f"n{number}"
    return {"id": f"{kind}-{number}", "type": f"control.{kind}", "scope": "namespace", "namespace": namespace}


def test_given_a_backlog_of_controls_then_their_resumes_share_a_reading(bench: ActorHarness) -> None:
    backlog = [control(kind, number) for number in range(N // 2) for kind in ("suspend", "resume")]
    assert readings(bench, backlog)[EVENTS] <= FEW
    assert statuses(bench, backlog) == {"accepted": N}


def test_given_resumes_of_what_is_not_suspended_then_nothing_is_read_or_written_for_them(bench: ActorHarness) -> None:
    backlog = [control("resume", number) for number in range(N)]
    first = len(bench.asked)
    assert readings(bench, backlog)[EVENTS] == 0
    assert not [each for each in bench.asked[first:] if isinstance(each, Write) and each.batch.name == "vector"]
    assert statuses(bench, backlog) == {"unchanged": N}


def test_given_a_backlog_of_activations_then_they_share_a_reading(bench: ActorHarness) -> None:
    backlog = [an_apply(a_spec(f"s{number}", on_data()), f"a-{number}") for number in range(N)]
    assert readings(bench, backlog)[EVENTS] <= FEW * bench.holding.shards
    assert statuses(bench, backlog) == {"accepted": N}


def test_given_a_backlog_of_applies_of_sources_then_only_those_that_are_opened_read_their_topic(
    bench: ActorHarness,
) -> None:
    backlog = [a_source_apply(a_source(f"s{number}"), f"a-{number}") for number in range(N)]
    assert readings(bench, backlog)[TOPIC] <= SOURCES_MAX + FEW
    assert statuses(bench, backlog) == {"accepted": SOURCES_MAX, "rejected": N - SOURCES_MAX}
    assert sum(each.is_open for each in sources(bench).entries) == SOURCES_MAX


def answers_of(bench: ActorHarness, backlog: list[Doc]) -> list[tuple[object, object]]:
    answers = bench.receipts()
    return [(answers[str(each["id"])]["status"], answers[str(each["id"])].get("version")) for each in backlog]


@pytest.mark.parametrize("seed", range(tier.at_night(12, else_=2)))
def test_given_any_backlog_of_sources_then_it_is_answered_as_if_each_came_by_itself(
    bench: ActorHarness, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With names, ids and topics that come again, of topics of several widths of which not all have room."""
    monkeypatch.setattr(source_commands, "TOPIC_PARTITIONS_MAX", 2 * SOURCES_MAX)
    chance = Random(seed)
    backlog: list[Doc] = []
    for number in range(N // 2):
        name = f"s{chance.randrange(SOURCES_MAX + 10)}"
        topic = chance.choices([TOPIC, "nowhere", EVENTS, *WIDTHS], [8, 2, 1, 1, 1, 1])[0]
        expected = {"expected_version": chance.randrange(3)} if chance.random() < 0.2 else {}
        request_id = f"r-{number - chance.choice([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])}"
        if chance.random() < 0.7:
            backlog.append(a_source_apply(a_source(name, topic=topic), request_id, **expected))
        else:
            backlog.append(a_source_delete(name, request_id, **expected))
        if chance.random() < 0.1:
            backlog.append(backlog[chance.randrange(len(backlog))])  # It is sent twice.
    alone = ActorHarness()
    alone.create_topic(TOPIC)
    for each in (bench, alone):
        for topic, width in WIDTHS.items():
            each.create_topic(topic, width, f"{width:032x}")
    for number in range(SOURCES_MAX - 8):  # So that the last places are contended for.
        for each in (bench, alone):
            each.request(a_source_apply(a_source(f"s{number}"), f"before-{number}"))
    for each in (bench, alone):
        each.run(5 * SECOND)
    for document in backlog:
        alone.request(document)
        alone.run(SECOND)
    readings(bench, backlog)
    assert answers_of(bench, backlog) == answers_of(alone, backlog)
    assert open_ones(bench) == open_ones(alone)


def open_ones(bench: ActorHarness) -> set[tuple[str, int]]:
    assert all(each.is_open for each in sources(bench).entries if each.is_there)
    return {(each.name, each.version) for each in sources(bench).entries if each.is_open}


def test_given_applies_of_a_topic_that_is_not_there_then_they_wait_for_the_brokers_once(bench: ActorHarness) -> None:
    telling_late(bench, "nowhere", EndOffsets({}))
    backlog = [a_source_apply(a_source("odd", topic="nowhere"), f"a-{number}") for number in range(N)]
    assert readings(bench, backlog)["nowhere"] <= FEW
    assert statuses(bench, backlog) == {"rejected": N}
    assert not any(each.is_there for each in sources(bench).entries)


def test_given_applies_of_a_silent_topic_then_they_wait_for_it_once(bench: ActorHarness) -> None:
    bench.answer_with(lambda effect: reads(effect, TOPIC), None, 1_000_000)
    backlog = [a_source_apply(a_source(), f"a-{number}") for number in range(N)]
    readings(bench, backlog)
    assert statuses(bench, backlog) == {"rejected": N}
    assert len(bench.notices("source_topic_silent")) == 1


def test_given_applies_of_topics_that_are_all_not_there_then_they_are_asked_side_by_side(bench: ActorHarness) -> None:
    for number in range(SOURCES_MAX):
        telling_late(bench, f"nowhere-{number}", EndOffsets({}))
    topics = [f"nowhere-{number}" for number in range(SOURCES_MAX)]
    backlog = [a_source_apply(a_source(topic, topic=topic), f"a-{topic}") for topic in topics]
    assert max(readings(bench, backlog).values()) <= FEW
    assert statuses(bench, backlog) == {"rejected": SOURCES_MAX}


def test_given_a_topic_that_answers_again_then_the_applies_that_still_wait_are_accepted(bench: ActorHarness) -> None:
    """What was found out of it while they lay in the inbox is no longer so (review)."""
    bench.store_answers_after = 200
    well = bench.now + 8 * SECOND
    bench.hold_back(lambda effect: reads(effect, TOPIC), 1_000_000)
    bench._rules[-1].act = lambda ask: bench._later(
        max(0, well - bench.now), lambda: bench._answer(ask, bench._result(ask))
    )
    backlog = [a_source_apply(a_source(f"s{number}"), f"a-{number}") for number in range(20)]
    readings(bench, backlog, 80 * SECOND)
    assert bench.receipts()["a-19"]["status"] == "accepted"


def reads(effect: Effect, topic: str) -> bool:
    return isinstance(effect, ReadEndOffsets) and effect.topic == topic


def telling_late(bench: ActorHarness, topic: str, ends: EndOffsets) -> None:
    """As Kafka's client does of a topic that is not there: it asks again for two seconds before it says so."""
    bench.hold_back(lambda effect: reads(effect, topic), 1_000_000)
    bench._rules[-1].act = lambda ask: bench._later(MISSING_TAKES_MS, lambda: bench._answer(ask, ends))


# -- what a reading must not serve ------------------------------------------------------------------------------------------


def test_given_a_request_that_comes_while_the_ends_are_on_their_way_then_it_reads_its_own(bench: ActorHarness) -> None:
    """An event that was acknowledged before the request was sent, and after the reading, does not count for it."""
    bench.hold_back(lambda effect: reads(effect, EVENTS), answer_only=True)
    bench.request(an_apply(a_spec("first", on_data(count=9)), "a-1"))
    bench.run(50)
    event = json.dumps(an_event("d1")).encode()
    bench.log(EVENTS, 0).append(LogRecord(0, bench.now, None, event))  # Nobody reads it yet.
    bench.request(an_apply(a_spec(BEHIND, on_data(count=9)), "a-2"))
    bench.run(50)
    bench.release()
    bench.run(5 * SECOND)
    bench.hand_over(EVENTS, 0, 0)
    bench.run(SECOND)
    assert (counted(bench, "first"), counted(bench, BEHIND)) == (1, 0)


def test_given_a_source_that_is_listed_after_a_reading_then_it_begins_at_ends_of_its_own(bench: ActorHarness) -> None:
    """A schedule that is activated while it is not listed names no ends of its topic: what lies there by then is no event for it."""
    moves = count(1)
    fourth = lambda effect: is_move_of_sources(effect) and next(moves) == SECOND_LISTING  # noqa: E731
    bench.hold_back(fourth)
    again = [a_source_apply(request_id="a-1"), a_source_delete(request_id="d-1"), a_source_apply(request_id="a-2")]
    bench.append(REQUESTS, 0, *again)
    bench.run(SECOND)
    assert bench.holds_something
    lay(bench, "d1")
    bench.request(an_apply(a_spec(ELSEWHERE, on_data(count=9))))
    bench.run(SECOND)
    assert bench.status_of(f"apply-{ELSEWHERE}") == "accepted"
    bench.release()
    bench.run(SECOND)
    produce(bench, "d2")
    assert statuses(bench, again) == {"accepted": 3}
    assert counted(bench, ELSEWHERE) == 1


def is_move_of_sources(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "move_sources"


# -- crashes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", range(1, 60, 2))
def test_given_an_owner_that_falls_amid_a_backlog_then_its_successor_answers_it_the_same(after: int) -> None:
    bench = ActorHarness()
    bench.create_topic(TOPIC)
    bench.run(SECOND)
    backlog = [
        *(a_source_apply(a_source(f"s{number}"), f"a-{number}") for number in range(3)),
        a_source_delete("s1", "d-1"),
        a_source_apply(a_source("s1"), "again"),
        a_source_apply(a_source("odd", topic="nowhere"), "odd"),
        a_source_apply(a_source("s3"), "a-3"),
    ]
    bench.crash_after = bench.effects_outside + after
    bench.append(REQUESTS, 0, *backlog)
    bench.run(60 * SECOND)
    assert [status for status, _ in answers_of(bench, backlog)] == [*["accepted"] * 5, "rejected", "accepted"]
    assert open_ones(bench) == {("s0", 1), ("s1", 2), ("s2", 1), ("s3", 1)}
