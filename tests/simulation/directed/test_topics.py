"""Topics that are made again under the same name: what was read of the old one says nothing about the new one (H5, I3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from tests.support.builders import EVENTS, EVENTS_ID, SECOND, a_spec, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.engine.actor_inputs import OffsetOutOfRange
from tidegate_core.ingest.topic_follower import ASK_AGAIN_MS

NEW_ID = "c" * 32
MadeAgain: TypeAlias = Callable[[ActorHarness], None]


def listening() -> ActorHarness:
    bench = ActorHarness(behaviour=Behaviour(starts_after=None))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=on_data(count=100))))
    bench.run(SECOND)
    return bench


def nodes_start_again(bench: ActorHarness) -> None:
    bench.crash()
    bench.run(SECOND)


def reader_is_told(bench: ActorHarness) -> None:
    bench.give(OffsetOutOfRange(EVENTS, 0, 1))
    bench.run(SECOND)


def brokers_are_asked(bench: ActorHarness) -> None:
    bench.run(ASK_AGAIN_MS + 10 * SECOND)


@pytest.fixture(params=[nodes_start_again, reader_is_told, brokers_are_asked], ids=lambda notices: notices.__name__)
def made_again(request: pytest.FixtureRequest) -> MadeAgain:
    """The topic's id is another one and its log is empty; nodes notice it, and read the new one."""
    notices: MadeAgain = request.param

    def make(bench: ActorHarness) -> None:
        bench.log(EVENTS, 0).clear()
        bench.create_topic(EVENTS, topic_id=NEW_ID)
        notices(bench)

    return make


def counts(bench: ActorHarness) -> list[object]:
    return [row["counts"] for row in bench.rows("E#")]


def test_given_a_topic_that_is_made_again_then_its_records_count_from_the_first_one_on(
    made_again: MadeAgain,
) -> None:
    """Positions are kept by topic id: the old one's would pass over as many records of the new one."""
    bench = listening()
    for day in ("d1", "d2", "d3"):
        bench.event(an_event(day))
    made_again(bench)
    for day in ("d4", "d5"):
        bench.event(an_event(day))
    bench.run(SECOND)
    assert counts(bench) == [[5]]
    assert {str(row["pk"]).split("#")[2] for row in bench.rows("TP")} >= {EVENTS_ID, NEW_ID}


def test_given_a_topic_that_is_made_again_and_filled_anew_then_what_has_counted_does_not_count_again(
    made_again: MadeAgain,
) -> None:
    """Offsets are new, the events' own ids are not: the second line of defence is by id."""
    bench = listening()
    bench.event(an_event("d1", event_id="e-1"))
    bench.event(an_event("d2", event_id="e-2"))
    made_again(bench)
    # In another data partition each, so that the evidence's own set does not hide a repeat.
    bench.event(an_event("d1-again", event_id="e-1"))
    bench.event(an_event("d3", event_id="e-3"))
    bench.run(SECOND)
    assert counts(bench) == [[3]]


def test_given_events_of_the_old_topic_in_the_inbox_then_they_count_beside_those_at_the_same_offsets(
    made_again: MadeAgain,
) -> None:
    """What was handed out before is named by topic id, topic partition and offset as well."""
    bench = listening()
    bench.hold_back(lambda effect: getattr(getattr(effect, "transaction", None), "name", "") == "count")
    bench.event(an_event("d1"))
    assert bench.rows("I#")
    made_again(bench)
    bench.event(an_event("d2"))
    bench.release()
    bench.run(15 * SECOND)
    assert counts(bench) == [[2]]


def test_given_a_schedule_that_was_activated_before_then_the_new_topic_counts_whole(
    made_again: MadeAgain,
) -> None:
    """An activation leaves out what lay below the ends of the topics that it saw, and of no other one."""
    bench = ActorHarness(behaviour=Behaviour(starts_after=None))
    bench.run(SECOND)
    for number in range(5):
        bench.event(an_event(f"before-{number}"))
    bench.request(an_apply(a_spec(trigger=on_data(count=100))))
    bench.run(SECOND)
    assert counts(bench) == []
    made_again(bench)
    for number in range(3):
        bench.event(an_event(f"after-{number}"))
    bench.run(SECOND)
    assert counts(bench) == [[3]]
