from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from tests.chaos.rig.limit_contention import LIMIT, WORK_S, Crowd
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.user_client import Client
from tests.unit.support.program_runs import write_run

START, END = 60_000, 75_000
EXPRESSION = "*/15 * * * * *"


class Says:
    """A client whose every request is accepted."""

    def apply(self, spec: object) -> dict[str, object]:
        return {"status": "accepted"}

    def request_all(self, requests: Sequence[object]) -> list[dict[str, object]]:
        return [{"status": "accepted", "discarded": None} for _ in requests]


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    return Evidence(tmp_path)


@pytest.fixture
def crowd(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> Crowd:
    crowd = Crowd(cast("Client", Says()), evidence, EXPRESSION)
    crowd.apply(START)
    monkeypatch.setattr("tests.support.cluster.suspension_load.now_ms", lambda: END)
    crowd.suspend()
    return crowd


def write(evidence: Evidence, schedule: str, starts_at: int, process: int = 1, nominal: int = START) -> None:
    write_run(evidence, schedule, nominal, starts_at, round(WORK_S * 1_000), process)


def test_given_each_ran_once_and_two_at_a_time_then_there_is_no_fault(crowd: Crowd, evidence: Evidence) -> None:
    for number, name in enumerate(crowd.names):
        write(evidence, name, START + 100 + number // LIMIT * 2_000)
    assert crowd.missing() == []
    assert crowd.judge() == []


def test_given_all_at_once_then_those_beyond_the_limit_are_named(crowd: Crowd, evidence: Evidence) -> None:
    for number, name in enumerate(crowd.names):
        write(evidence, name, START + 100 + number)
    assert [fault.kind for fault in crowd.judge()] == ["overlap"] * (len(crowd.names) - LIMIT)


def test_given_one_ran_twice_and_one_never_then_both_are_named(crowd: Crowd, evidence: Evidence) -> None:
    first, second, third, fourth = crowd.names
    for number, name in enumerate((first, second, third)):
        write(evidence, name, START + number * 2_000)
    write(evidence, first, START + 9_000, process=2)
    assert crowd.missing() == [(fourth, START)]
    assert sorted(fault.kind for fault in crowd.judge()) == ["doubled", "lost"]


def test_given_an_instant_amid_the_suspends_then_it_may_go_either_way_for_each_member(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in a chaos run whose answers took long: what was suspended 6 s before the instant was called lost."""
    crowd = Crowd(cast("Client", Says()), evidence, EXPRESSION)
    crowd.apply(START)
    moments = iter([END - 100, END + 500])
    monkeypatch.setattr("tests.support.cluster.suspension_load.now_ms", lambda: next(moments))
    crowd.suspend()
    first, second, *_ = crowd.names
    for number, name in enumerate(crowd.names[1:]):
        write(evidence, name, START + number * 2_000)
    write(evidence, second, END + 1_000, nominal=END)
    assert crowd.missing() == [(first, START)]
    assert [fault.kind for fault in crowd.judge()] == ["lost"]
    write(evidence, first, START + 6_000)
    assert (crowd.missing(), crowd.judge()) == ([], [])
    write(evidence, first, END + 20_000, nominal=END + 15_000)
    assert [fault.kind for fault in crowd.judge()] == ["extra"]
