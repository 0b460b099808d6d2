"""When a kill bites: only where a run is open that stays so, and a fire is due; else the nemesis waits, and says for what."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.cluster import kill_nemesis
from tests.support.cluster.evidence import ProgramRun
from tests.support.cluster.kill_nemesis import Nemesis

NOW = 1_000_000


@pytest.mark.parametrize(
    ("schedule", "began_ms_ago", "counts"),
    [
        pytest.param("join-day", 1_499, True, id="works on for half a second"),
        pytest.param("join-day", 1_501, False, id="may have ended by the time of the kill"),
    ],
)
def test_given_an_open_run_then_it_counts_only_where_it_is_still_open_at_the_kill(
    schedule: str, began_ms_ago: int, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kill_nemesis, "now_ms", lambda: NOW)
    monkeypatch.setattr(kill_nemesis, "StoreView", lambda _: None)
    run = ProgramRun("r1", 1, schedule, NOW, None, None, (), 7, NOW - began_ms_ago, 0)
    cluster: Any = SimpleNamespace(store=None)
    book: Any = SimpleNamespace(booked=[])
    evidence: Any = SimpleNamespace(open_runs=lambda: [run])
    nemesis = Nemesis(cluster, book, evidence, random.Random(1), working={"join-day"})

    assert (nemesis.look(frozenset()).open_runs == 1) is counts
