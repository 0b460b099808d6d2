"""Requests on one schedule, brought to a status, and their answers."""

from __future__ import annotations

from tests.support.builders import Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness

CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00"}


def answer(bench: ActorHarness, document: Doc, run: int = 0) -> Doc:
    bench.request(document)
    bench.run(run)
    receipts = bench.receipts()
    assert str(document["id"]) in receipts, f"{document['id']} was not answered"
    return receipts[str(document["id"])]


def brought_to(bench: ActorHarness, status: str) -> None:
    """A schedule in that status; `unknown` is none at all."""
    if status != "unknown":
        answer(bench, an_apply(a_spec(trigger=every("1h"), suspended=status == "suspended"), "made"))
    if status == "deleted":
        answer(bench, a_request("delete", request_id="removed"))
