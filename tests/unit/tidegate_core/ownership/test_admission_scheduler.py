"""However often a schedule's waiting jobs are to be looked at, one decision at a time looks at them."""

from __future__ import annotations

import pytest

from tests.support.builders import a_holding, a_job
from tidegate_core.admission.admit import AdmitNext
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.ownership.admission_scheduler import AdmissionScheduler
from tidegate_core.rows.item_codec import to_item
from tidegate_core.shard.shard_cache import ShardCache

REF = "flights/nightly"


@pytest.fixture
def memory() -> ShardCache:
    memory = ShardCache(0)
    for job in (a_job(1), a_job(2), a_job(3, name="other")):
        memory.apply_row(job.key(0), to_item(job, job.key(0)))
    return memory


@pytest.fixture
def writer() -> ShardWriter:
    return ShardWriter(
        ActorContext(a_holding()), 0, 1, 0, lambda key, item: None, lambda: None, lambda work, error: None
    )


def queued(writer: ShardWriter) -> list[str]:
    return [work.ref for work in writer._queue if isinstance(work, AdmitNext)]


def test_given_many_reasons_to_look_then_one_decision_is_queued(writer: ShardWriter, memory: ShardCache) -> None:
    waiting = AdmissionScheduler(writer, memory)
    for _ in range(100):
        waiting.request(REF)
    waiting.request("flights/other")
    waiting.request("flights/nobody")
    assert queued(writer) == [REF, "flights/other"]


@pytest.mark.parametrize(("looked", "goes_on", "again"), [(0, False, 0), (0, True, 1), (1, False, 1), (9, True, 1)])
def test_given_a_decision_that_is_made_then_another_follows_if_there_is_more_or_something_changed_meanwhile(
    writer: ShardWriter, memory: ShardCache, looked: int, goes_on: bool, again: int
) -> None:
    waiting = AdmissionScheduler(writer, memory)
    waiting.request(REF)
    for _ in range(looked):
        waiting.request(REF)
    waiting.decided(REF, goes_on)
    assert queued(writer) == [REF] * (1 + again)
    waiting.decided(REF, goes_on=False)
    waiting.request(REF)
    assert queued(writer) == [REF] * (2 + again)
