"""A reading that the client has forgotten is begun again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate_core.effects import EndOffsets, Unavailable
from tidegate_node.reading_watch import ReadingWatch

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


def watch(around: Surroundings) -> ReadingWatch:
    return ReadingWatch(around.facts, around.bus, around.bus, around.notes)


async def test_given_ends_then_the_membership_is_told_those_of_the_topic_that_is_read(around: Surroundings) -> None:
    requests = around.facts.requests
    around.bus.ends_by_topic[requests.name] = EndOffsets({f"{requests.id}/0": 7, f"{requests.id}/3": 0})

    await watch(around).look()

    assert around.bus.calls == [("restart", {0: 7, 3: 0})]


async def test_given_the_topic_was_made_anew_then_its_ends_say_nothing_of_the_one_that_is_read(
    around: Surroundings,
) -> None:
    around.bus.ends_by_topic[around.facts.requests.name] = EndOffsets({f"{'ef' * 16}/0": 7})

    await watch(around).look()

    assert around.bus.calls == [("restart", {})]


async def test_given_the_brokers_do_not_answer_then_nothing_is_restarted(around: Surroundings) -> None:
    around.bus.log_ends = Unavailable("broker")

    await watch(around).look()

    assert around.bus.calls == []
