"""A position that the log does not hold any more is said in the log and in the gauge, until reading starts again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_ports.bus import BeginOffsets

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


def _gauge(around: Surroundings) -> dict[str, float]:
    topics = (around.facts.requests.name, around.facts.events.name)
    return {topic: around.metrics.value("tidegate_position_gone", topic=topic) for topic in topics}


def test_given_nothing_is_gone_then_the_series_are_there_for_alerts(around: Surroundings) -> None:
    page = around.metrics.exposition()[0].decode()

    assert 'tidegate_position_gone{topic="tidegate.requests"} 0.0' in page
    assert 'tidegate_position_gone{topic="tidegate.events"} 0.0' in page


@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        pytest.param(30, 50, "the log begins at 30, so 13 records from the stored position 17 on", id="retention"),
        pytest.param(0, 9, "the log ends at 9, before the stored position 17: it was cut", id="cut"),
        pytest.param(None, None, "the log does not hold the stored position 17", id="brokers silent"),
    ],
)
async def test_given_a_position_is_gone_then_an_error_names_what_an_operator_needs(
    around: Surroundings, until: Any, begin: int | None, end: int | None, said: str
) -> None:
    events = around.facts.events
    where = f"{events.id}/5"
    around.bus.log_begins = [Unavailable("silent") if begin is None else BeginOffsets({where: begin})]
    around.bus.log_ends = Unavailable("silent") if end is None else EndOffsets({where: end})

    around.standing_still.gone(events.name, 5, 17)

    await until(lambda: around.notes.said, "the error")
    ((name, fields),) = around.notes.said
    assert name == "reading_stands_still"
    assert (fields["topic"], fields["topic_partition"], fields["position"]) == (events.name, 5, 17)
    assert (fields["log_begin"], fields["log_end"]) == (begin, end)
    assert fields["item"] == f"TP#cluster#{events.id}#000005"
    for part in (said, str(fields["item"]), "docs/operations.md"):
        assert part in str(fields["message"])


async def test_given_several_then_the_gauge_counts_those_that_stand_still_now(around: Surroundings) -> None:
    requests, events = around.facts.requests.name, around.facts.events.name
    for topic, number in ((requests, 1), (events, 2), (events, 3), (events, 3)):
        around.standing_still.gone(topic, number, 4)
    assert _gauge(around) == {requests: 1, events: 2}

    around.standing_still.over(events, 3)
    around.standing_still.over(events, 7)

    assert _gauge(around) == {requests: 1, events: 1}
    assert around.standing_still.positions == {(requests, 1): 4, (events, 2): 4}
