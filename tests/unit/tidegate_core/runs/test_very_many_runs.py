"""A schedule with more open runs than its shard's owner keeps in its view: what stops it ends, and is answered (I7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.request_bench import answer
from tidegate_core.rows.effects import LaunchOrder, ReadRange
from tidegate_core.runs import run_lifecycle
from tidegate_core.writes import read_cache

LASTS = Behaviour(runs_for=None)
NEVER_STARTS = Behaviour(starts_after=None)
EACH_EIGHTH = 8


def a_crowd(monkeypatch: pytest.MonkeyPatch) -> ActorHarness:
    """Ninety runs, where sixty items are kept; each eighth has not passed the gate."""
    monkeypatch.setattr(read_cache, "ITEMS_MAX", 60)
    monkeypatch.setattr(run_lifecycle, "READ_BY_NAME_MAX", 15)
    bench = ActorHarness()

    def behaves(order: LaunchOrder) -> Behaviour:
        return LASTS if len(bench.submitted_at) % EACH_EIGHTH else NEVER_STARTS

    bench.behaves = behaves
    bench.run(SECOND)
    for name in ("nightly", "beside"):
        bench.request(
            an_apply(a_spec(name, every("10s" if name == "nightly" else "2m"), overlap="allow"), f"apply-{name}")
        )
    bench.run(14 * MINUTE)
    return bench


STOPS: list[tuple[str, dict[str, Any]]] = [
    ("delete", {}),
    ("suspend", {"mode": "drop"}),
    ("suspend", {"mode": "hold"}),
    ("suspend", {"mode": "drain"}),
]


@pytest.mark.parametrize(("kind", "more"), STOPS)
def test_given_very_many_open_runs_then_a_stop_is_answered(
    kind: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: each page read all of them by name, the last pushed the first out of the view, and no page ever was one."""
    bench = a_crowd(monkeypatch)
    mine = [str(row["id"]) for row in bench.rows("R#") if row["name"] == "nightly"]
    started = {order.run_id for order in bench.started}
    assert 60 < len(mine) > len(started & set(mine))
    receipt = answer(bench, a_request(kind, request_id="stop", **more))
    assert receipt["status"] == "accepted"
    assert set(receipt["running"]) == started & set(mine)
    left = {str(row["id"]) for row in bench.rows("R#") if row["name"] == "nightly" and "ended_at" not in row}
    assert left == (set(mine) if more.get("mode") == "drain" else started & set(mine))
    assert bench.notices("decision_failed") == []


def test_given_runs_that_pass_the_gate_while_a_page_is_made_then_they_go_on_and_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = a_crowd(monkeypatch)
    waiting = {str(row["id"]) for row in bench.rows("R#") if row["name"] == "nightly" and row["state"] == "submitted"}
    bench.hold_back(lambda effect: isinstance(effect, ReadRange) and effect.range.low == "R#", answer_only=True)
    bench.request(a_request("delete", request_id="stop"))
    for process in bench._processes.values():
        if process.order.run_id in waiting:
            bench._start(process)
    bench.release()
    receipt = bench.receipts()["stop"]
    assert receipt["status"] == "accepted"
    assert waiting <= set(receipt["running"])
    assert waiting <= {str(row["id"]) for row in bench.rows("R#") if "ended_at" not in row}
