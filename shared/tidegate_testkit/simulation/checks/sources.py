"""Sources: each request is answered as those before it demand, and what was produced while none was there is no event (I3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tidegate_core.decisions.log_ends import ASK_AGAIN_MS, SILENT_AFTER_MS
from tidegate_testkit.simulation.cluster import SOURCE_TOPIC
from tidegate_testkit.simulation.sources import was_silent
from tidegate_testkit.simulation.timeline import START

if TYPE_CHECKING:
    from tidegate_testkit.simulation.checks.case import Case

UNSEEN_MS: Final = ASK_AGAIN_MS + 1_000
"""Between two questions to a topic: whether it answered meanwhile, nobody knows."""


def check_sources(case: Case) -> Iterator[str]:
    for user in case.world.sources:
        for asked, status in user.steps:
            if asked.receipt is None or asked.status == status:
                continue
            if not (was_silent(asked) and _did_not_answer(case, asked.sent_at, asked.acked_at)):
                yield f"answers: {asked.document['type']} {asked.id} was answered {asked.status}, not {status}"


def _did_not_answer(case: Case, begin: int, end: int) -> bool:
    """Whether all brokers, or those of the source's topic, were away in between for as long as a lane asks."""
    broker = case.swarm.broker
    number = list(case.world.cluster.broker.topics).index(SOURCE_TOPIC)
    periods = (*broker.downs, *(when for which, when in broker.leaderless if which == number))
    away_from = away_to = 0
    for first, last in sorted((START + first, START + last) for first, last in periods):
        if first > away_to + UNSEEN_MS:
            away_from = first
        away_to = max(away_to, last)
        if min(away_to, end) - max(away_from, begin) >= SILENT_AFTER_MS - UNSEEN_MS:
            return True
    return False
