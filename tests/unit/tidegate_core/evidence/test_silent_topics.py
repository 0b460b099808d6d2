"""Topics of the users' own that do not answer: who asks where they end does not hold up what else its shard has to do.

Found in review: each activation in a namespace with such a source stood in the shard writer for as long as the brokers' client looked.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import SECOND, Doc, a_spec, an_apply, every, on_data
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.engine.end_offset_cache import SILENT_FOR_MS
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows.effects import Effect, EndOffsets, ReadEndOffsets, Unavailable
from tidegate_core.shard.events.end_offsets import SILENT_AFTER_MS, WRITER_PATIENCE_MS

TOPIC, TOPIC_ID = "lake.commits", "c" * 32
NEIGHBOUR = next(
    name
    for name in (f"x{n}" for n in range(99))
    if schedule_shard("flights", name, 4) == schedule_shard("flights", "nightly", 4)
)
FAR_TOO_OFTEN = 1_000_000


def a_source_apply(name: str = "landed", request_id: str = "src-1") -> Doc:
    event = {"dataset": "raw", "partition": {"pointer": "/day"}}
    spec = {"kind": "source", "namespace": "flights", "name": name, "topic": TOPIC, "event": event}
    return {"id": request_id, "type": "source.apply", "namespace": "flights", "name": name, "spec": spec}


def asks(effect: Effect) -> bool:
    return isinstance(effect, ReadEndOffsets) and effect.topic == TOPIC


@pytest.fixture
def bench() -> ActorHarness:
    """A source, and a schedule beside the one that is applied, that fires every 10 s."""
    made = ActorHarness()
    made.create_topic(TOPIC, topic_id=TOPIC_ID)
    made.run(SECOND)
    made.request(a_source_apply())
    made.request(an_apply(a_spec(NEIGHBOUR, trigger=every("10s"))))
    made.run(61 * SECOND)
    return made


def fires(bench: ActorHarness) -> int:
    return len([entry for entry in bench.ledger() if entry[1] == NEIGHBOUR])


def test_given_a_topic_that_does_not_answer_then_what_else_the_shard_has_to_do_goes_on(bench: ActorHarness) -> None:
    before = fires(bench)
    upcoming = 10 * SECOND - bench.now % (10 * SECOND)
    bench.run(upcoming - SECOND)  # One second before the next fire.
    bench.answer_with(asks, None, FAR_TOO_OFTEN)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(3 * SECOND)
    assert bench.status_of("apply-nightly") is None
    assert fires(bench) == before + 1
    bench.run(SILENT_AFTER_MS)
    assert bench.status_of("apply-nightly") == "accepted"


def test_given_a_topic_that_is_known_not_to_answer_then_nobody_waits_for_it_for_a_minute(bench: ActorHarness) -> None:
    bench.answer_with(asks, None, FAR_TOO_OFTEN)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SILENT_AFTER_MS + SECOND)
    for number in range(5):
        bench.request(an_apply(a_spec(f"n{number}", trigger=on_data())))
        bench.run(10)
        assert bench.status_of(f"apply-n{number}") == "accepted"
    bench.run(SILENT_FOR_MS)
    bench.as_usual()
    bench.request(an_apply(a_spec("later", trigger=on_data())))
    bench.run(10)
    assert bench.status_of("apply-later") == "accepted"


def named(bench: ActorHarness) -> list[object]:
    """Vectors of activations that name the topic."""
    return [item for item in bench.store.items("main") if TOPIC_ID in str(item.get("offsets", ""))]


def test_given_a_topic_that_answers_slowly_then_its_ends_are_named_all_the_same(bench: ActorHarness) -> None:
    slow = WRITER_PATIENCE_MS * 2
    before = len(named(bench))

    def later(ask: Any) -> None:
        bench._later(slow, lambda: bench._answer(ask, EndOffsets({f"{TOPIC_ID}/0": 7})))

    bench.hold_back(asks, FAR_TOO_OFTEN)
    bench._rules[-1].act = later
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(4 * slow)
    assert bench.status_of("apply-nightly") == "accepted"
    assert len(named(bench)) == before + 1


def test_given_a_source_whose_topic_answers_again_then_its_apply_finds_out_by_itself(bench: ActorHarness) -> None:
    bench.answer_with(asks, None, FAR_TOO_OFTEN)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SILENT_AFTER_MS + 3 * SECOND)
    bench.as_usual()
    bench.request(a_source_apply("second", "src-2"))
    bench.run(2 * SECOND)
    assert bench.status_of("src-2") == "accepted"


def test_given_a_request_that_is_told_nothing_then_those_behind_it_are_applied_after_it(bench: ActorHarness) -> None:
    bench.answer_with(asks, None, FAR_TOO_OFTEN)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.request({"id": "gone", "type": "schedule.delete", "namespace": "flights", "name": "nightly"})
    bench.run(SILENT_AFTER_MS + 2 * SECOND)
    assert bench.status_of("apply-nightly") == "accepted"
    assert bench.status_of("gone") == "accepted"


@pytest.mark.parametrize("store_answers_after", [300, 1_100])
def test_given_a_slow_store_then_a_source_whose_topic_is_silent_is_refused_and_what_stands_behind_it_goes_on(
    bench: ActorHarness, store_answers_after: int
) -> None:
    """Found in review: what was found out was too old once the request had read anew, so it was found out for ever."""
    bench.answer_with(asks, None, FAR_TOO_OFTEN)
    bench.store_answers_after = store_answers_after
    bench.request(a_source_apply("second", "src-2"))
    bench.request(an_apply(a_spec("behind", trigger=every("1h"))))
    bench.run(60 * SECOND)
    assert bench.status_of("src-2") == "rejected"
    assert bench.status_of("apply-behind") == "accepted"
    assert len(bench.notices("source_topic_silent")) == 1


def test_given_a_topic_that_answers_slowly_and_then_not_at_all_then_what_it_said_when_it_was_found_out_serves(
    bench: ActorHarness,
) -> None:
    """Found in review: rounds without an end. It answers when it is found out, and never when its ends are wanted just after."""
    asked_at = bench.now

    def just_after_another(effect: Effect) -> bool:
        nonlocal asked_at
        if not asks(effect):
            return False
        before, asked_at = asked_at, bench.now
        return bench.now - before < WRITER_PATIENCE_MS

    bench.answer_with(just_after_another, None, FAR_TOO_OFTEN)
    bench.request(a_source_apply("second", "src-2"))
    bench.run(60 * SECOND)
    assert bench.status_of("src-2") == "accepted"


@pytest.mark.parametrize("answer", [None, Unavailable("broker")], ids=["silent", "leaderless"])
def test_given_an_events_topic_that_does_not_answer_then_who_listens_waits_for_it_and_what_else_the_shard_has_to_do_goes_on(
    bench: ActorHarness, answer: Unavailable | None
) -> None:
    """Read again: the request stood in the shard writer until each topic partition had a leader, and no schedule of its shard fired."""
    before = fires(bench)
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), answer, FAR_TOO_OFTEN)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(5 * 60 * SECOND)
    assert bench.status_of("apply-nightly") is None
    assert fires(bench) == before + 30
    bench.as_usual()
    bench.run(SILENT_AFTER_MS + SECOND)
    assert bench.status_of("apply-nightly") == "accepted"


def test_given_an_events_topic_that_does_not_answer_then_a_hand_over_leaves_the_request_to_the_successor(
    bench: ActorHarness,
) -> None:
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), Unavailable("broker"), FAR_TOO_OFTEN)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(20 * SECOND)
    bench.drain()
    bench.run(2 * SECOND)
    assert bench.actor.has_ended
    bench.as_usual()
    bench.new_actor()
    bench.run(SECOND)
    assert bench.status_of("apply-nightly") == "accepted"
