from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from tests.chaos.rig import stop_load
from tests.chaos.rig.stop_load import (
    StopLoad,
)
from tests.support.checkers.stops import StopAnswer
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.message_load import MessageBook
from tests.support.cluster.topic_reader import Arrived
from tests.support.cluster.user_client import Acknowledged, Client

NEVER_S = 3_600.0
"""No trial by itself: tests begin them."""
HELD = frozenset({3, 11})
NOW = 1_763_000_000_000


class Broker:
    """Stands in for the client: takes everything, and keeps it."""

    def __init__(self) -> None:
        self.taken: list[Mapping[str, Any]] = []
        self.answered: dict[str, int] = {}

    def answered_at(self) -> Mapping[str, int]:
        return self.answered

    def send(
        self,
        topic: str,
        value: Mapping[str, Any],
        key: str | None = None,
        topic_partition: int | None = None,
        on_acknowledged: Callable[[Acknowledged], None] = lambda _: None,
    ) -> None:
        self.taken.append(value)
        on_acknowledged(Acknowledged(f"tidegate.{topic}", topic_partition or 0, 0, 1_000))

    def of(self, *types: str) -> list[Mapping[str, Any]]:
        return [value for value in self.taken if value["type"] in types]


def a_receipt(request_id: str, status: str, at: int, running: list[str] | None = None) -> Arrived:
    value = json.dumps({"request_id": request_id, "status": status, "running": running or []}).encode()
    return Arrived("tidegate.receipts", 0, 0, None, value, {}, at)


@pytest.fixture(autouse=True)
def _standing_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes to pass between two looks at it is no latency of anybody's."""
    monkeypatch.setattr(stop_load, "now_ms", lambda: NOW)


def send_all(load: StopLoad) -> None:
    """Has it send what is sent later, and begin nothing of its own."""
    load.stopping.set()
    load.run()


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def load(broker: Broker, tmp_path: Path) -> StopLoad:
    client = cast("Client", broker)
    return StopLoad(client, Evidence(tmp_path), MessageBook(client, "sink"), random.Random(1), NEVER_S)


def test_given_receipts_then_a_trial_has_its_answer_and_one_whose_apply_was_refused_is_none(load: StopLoad) -> None:
    load.volley(HELD)
    send_all(load)
    first, second, third = load.trials[:3]
    answered = load.stops(
        [
            a_receipt(first.schedule, "accepted", 1_000),
            a_receipt(first.stop_id, "accepted", 2_000, ["r1"]),
            a_receipt(first.stop_id, "unchanged", 3_000),
            a_receipt(second.schedule, "rejected", 1_000),
            a_receipt(third.schedule, "accepted", 1_000),
        ]
    )
    assert [(stop.schedule, stop.answer) for stop, _ in answered] == [
        (first.schedule, StopAnswer("accepted", 2_000, frozenset({"r1"}))),
        (third.schedule, None),
    ]
    assert [asked_at for _, asked_at in answered] == [1_000, 1_000]


def test_given_an_apply_that_the_broker_has_and_nobody_answered_then_it_is_named_and_no_other(
    broker: Broker, load: StopLoad
) -> None:
    load.volley(HELD)
    first, second, *others = load.trials
    second.apply_acknowledged = False  # The broker never said that it has it: nobody owes an answer.

    answers = [a_receipt(each.schedule, "accepted", 1_000) for each in others]

    assert load.unanswered(answers) == [first.schedule]
    assert load.unanswered([*answers, a_receipt(first.schedule, "rejected", 1_000)]) == []
