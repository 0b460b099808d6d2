"""What the landings owe, when their suspends are answered late."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from tests.support.cluster.evidence import Evidence
from tests.support.cluster.pipeline_load import JOIN, LANDING, REPORT, Pipeline
from tests.support.cluster.user_client import Client
from tests.unit.support.program_runs import write_run

START, END = 60_000, 75_000
FIRST, SECOND = LANDING.values()
NOTHING: dict[str, object] = {"jobs": [], "evidence": {}, "messages": 0}


class Says:
    """A client whose every request is accepted.

    Attributes:
        discarded: What the suspends ended.
    """

    def __init__(self) -> None:
        self.discarded = NOTHING

    def apply(self, spec: object) -> dict[str, object]:
        return {"status": "accepted"}

    def request_all(self, requests: Sequence[object]) -> list[dict[str, object]]:
        return [{"status": "accepted", "discarded": self.discarded} for _ in requests]


@pytest.fixture
def says() -> Says:
    return Says()


@pytest.fixture
def pipeline(tmp_path: Path, says: Says) -> Pipeline:
    pipeline = Pipeline(cast("Client", says), Evidence(tmp_path), "*/15 * * * * *")
    pipeline.apply(START)
    return pipeline


def suspend(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, sent: int, answered: int) -> None:
    moments = iter([sent, answered])
    monkeypatch.setattr("tests.support.cluster.suspension_load.now_ms", lambda: next(moments))
    pipeline.suspend_landings()


def write(pipeline: Pipeline, schedule: str, nominal: int) -> None:
    write_run(pipeline.evidence, schedule, nominal, starts_at=nominal)


def test_given_no_instant_between_then_what_was_due_before_is_owed(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspend(pipeline, monkeypatch, END - 5_000, END - 4_000)
    write(pipeline, FIRST, START)
    assert (pipeline.days(), pipeline.missing(), pipeline.is_done()) == ({START}, [START], False)
    for name in (SECOND, JOIN, REPORT):
        write(pipeline, name, START)
    assert (pipeline.missing(), pipeline.is_done()) == ([], True)
    write(pipeline, FIRST, END)
    assert ("extra", f"{FIRST} {END}") in [(fault.kind, fault.what) for fault in pipeline.judge()]


def test_given_an_instant_between_then_it_may_go_either_way_for_each_landing_and_only_whole_days_are_joined(
    pipeline: Pipeline, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found at the end of a chaos run of 103 min, which was not judged for it: an answer took longer than the pause."""
    says.discarded = {"jobs": ["one"], "evidence": {}}
    suspend(pipeline, monkeypatch, END - 100, END + 500)
    for name in (FIRST, SECOND, JOIN, REPORT):
        write(pipeline, name, START)
    assert pipeline.is_done()
    write(pipeline, FIRST, END)
    assert (pipeline.days(), pipeline.missing(), pipeline.is_done()) == ({START}, [], True)
    write(pipeline, SECOND, END)
    assert (pipeline.days(), pipeline.is_done()) == ({START, END}, False)


def test_given_something_was_discarded_and_no_instant_lies_between_then_it_must_not_be(
    pipeline: Pipeline, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    says.discarded = {"jobs": ["one"], "evidence": {}}
    with pytest.raises(AssertionError, match="one"):
        suspend(pipeline, monkeypatch, END - 5_000, END - 4_000)
