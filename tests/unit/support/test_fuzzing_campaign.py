"""The order of a campaign against a cluster: what its dead letters say is said whatever becomes of the controls behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fuzz import cluster_campaign
from tests.fuzz.cluster_campaign import Found, fuzz_cluster, passed_by
from tests.fuzz.control_schedules import CONTROLS
from tests.fuzz.dead_letter_check import Judged
from tests.fuzz.record_streams import Lane
from tidegate_core.rows import keys
from tidegate_core.writes.cursor_moves import BETWEEN_RECORDS
from tidegate_core.writes.fencing import Cursor


class Answered:
    """Controls that are carried out."""

    def __init__(self, *_: object) -> None: ...

    def carried_out(self) -> int:
        return CONTROLS


class Unanswered(Answered):
    """Controls that stand behind thousands of right requests."""

    def carried_out(self) -> int:
        raise AssertionError("control-resume is not answered")


def ran(patch: pytest.MonkeyPatch, tmp_path: Path, controls: type[Answered], letters: Judged) -> Found:
    """A campaign without a record, on a cluster of no processes."""

    def no_lanes(*_: object) -> list[Lane]:
        return [Lane("events", "tidegate.events", 0, iter(()))]

    def judged(_: Sequence[Lane], each: Iterator[Any]) -> Judged:
        assert list(each) == []
        return letters

    nothing: Any = SimpleNamespace(passed=lambda writer: writer.end, produce=lambda *_: None, flush=lambda: None)
    patch.setattr(cluster_campaign, "Controls", controls)
    patch.setattr(cluster_campaign, "Positions", lambda _: nothing)
    patch.setattr(cluster_campaign, "LaneProducer", lambda *_: nothing)
    patch.setattr(cluster_campaign, "_lanes", no_lanes)
    patch.setattr(cluster_campaign, "letters_of", lambda *_: iter(()))
    patch.setattr(cluster_campaign, "judge", judged)
    cluster: Any = SimpleNamespace(processes=[], nodes=[], bootstrap_servers="")
    evidence: Any = SimpleNamespace(folder=tmp_path)
    nobody: Any = None
    return fuzz_cluster(cluster, nobody, evidence, 1, 0, 1.0, lambda _: None)


def test_given_controls_that_are_not_answered_then_the_dead_letters_are_judged_and_both_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = ran(monkeypatch, tmp_path, Unanswered, Judged(letters=7, faults=["a letter of what nobody produced"]))
    assert found.judged.letters == 7
    assert found.faults == [
        "a letter of what nobody produced",
        "not all controls were carried out: control-resume is not answered",
    ]
    assert f"0 of {CONTROLS} controls carried out; 2 faults" in found.line()


def test_given_a_dead_letter_that_is_open_then_its_record_is_not_passed() -> None:
    position = Cursor(keys.topic_position("cluster", "t" * 32, 0), 1, 1, 40, BETWEEN_RECORDS, 0)
    assert passed_by(position) == 40
    assert passed_by(replace(position, open=(17, 31))) == 17
