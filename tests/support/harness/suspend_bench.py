"""Schedules that are suspended in a mode, and what waits meanwhile."""

from __future__ import annotations

from typing import Any

from tests.support.builders import SECOND, Doc, a_request
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.request_bench import answer
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job

MODES = ["drop", "drain", "hold", "freeze"]


def a_bench(behaviour: Behaviour | None = None) -> ActorHarness:
    bench = ActorHarness(behaviour=behaviour)
    bench.run(SECOND)
    return bench


def suspend(bench: ActorHarness, mode: str, **more: Any) -> Doc:
    return answer(bench, a_request("suspend", mode=mode, **more))


def waiting(bench: ActorHarness) -> list[Job]:
    found = [from_item(Job, row) for row in bench.rows("J#")]
    return sorted((job for job in found if job.state == "pending_constraint"), key=lambda job: job.nominal)
