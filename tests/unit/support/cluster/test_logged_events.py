"""Events of a log: all lives, each line once, whatever was set aside meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cluster import logged_events
from tests.support.cluster.logged_events import LoggedEvents


def append(log: Path, *lines: str) -> None:
    with log.open("a") as file:
        file.write("".join(lines))


def said(name: str, number: int) -> str:
    return json.dumps({"event": name, "number": number}) + "\n"


def test_given_a_log_that_grows_then_each_line_is_there_once_and_a_line_without_an_end_when_it_has_one(
    tmp_path: Path,
) -> None:
    log = tmp_path / "node.log"
    events = LoggedEvents(log)
    assert events.of("lost") == []

    append(log, "a traceback\n", said("lost", 1), '{"event": "lost", "number": 2')
    assert [each["number"] for each in events.of("lost")] == [1]
    append(log, "}\n", '{"event": "lo\n', said("fenced", 3))
    assert [each["number"] for each in events.of("lost")] == [1, 2]
    assert [each["number"] for each in events.of("fenced")] == [3]


def test_given_a_log_that_has_grown_large_then_it_is_set_aside_and_nothing_that_was_said_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logged_events, "ASIDE_BYTES", 50)
    log = tmp_path / "node.log"
    events = LoggedEvents(log)
    for life in range(3):
        append(log, *(said("lost", 10 * life + number) for number in range(3)))
        events.set_aside()
    append(log, said("lost", 99))

    assert [each["number"] for each in events.of("lost")] == [0, 1, 2, 10, 11, 12, 20, 21, 22, 99]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["node.log", *(f"node.log.aside-{n}" for n in (1, 2, 3))]
