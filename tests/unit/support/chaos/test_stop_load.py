from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from tests.chaos.rig import stop_load
from tests.chaos.rig.stop_load import (
    ANSWER_MS,
    ANSWERS_KEPT,
    NAMESPACE,
    SPREAD_MS,
    VOLLEY,
    VOLLEY_CANCELS,
    VOLLEY_FROM_MS,
    VOLLEY_LAST_MS,
    Latency,
    StopLoad,
)
from tests.support.checkers.stops import StopAnswer
from tests.support.cluster.cluster import SHARDS
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.message_load import NAMESPACE as MESSAGES
from tests.support.cluster.message_load import MessageBook, cancel_id
from tests.support.cluster.topic_reader import Arrived
from tests.support.cluster.user_client import Acknowledged, Client
from tidegate_core.model.instants import parse_instant
from tidegate_core.model.shards import message_shard, schedule_shard

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


def test_given_a_volley_then_each_schedule_lies_in_a_shard_that_it_aims_at_and_gets_one_stop(
    broker: Broker, load: StopLoad
) -> None:
    load.volley(HELD)
    send_all(load)
    applied = [value["name"] for value in broker.of("schedule.apply")]
    assert len(set(applied)) == VOLLEY
    assert {schedule_shard(NAMESPACE, name, SHARDS) for name in applied} == HELD
    stops = broker.of("schedule.suspend", "schedule.delete")
    assert sorted(value["name"] for value in stops if value["name"] in applied) == sorted(applied)
    assert {value["type"] for value in stops} == {"schedule.suspend", "schedule.delete"}
    sent = [value["id"] for value in broker.of("message.send")]
    assert len(set(sent)) == VOLLEY_CANCELS == len(load.aimed_cancels)
    assert {message_shard(MESSAGES, None, each, SHARDS) for each in sent} == HELD
    assert sorted(value["message_id"] for value in broker.of("message.cancel")) == sorted(sent)


def test_given_a_volley_that_was_answered_late_then_the_next_ones_instants_lie_where_its_answers_did(
    broker: Broker, load: StopLoad
) -> None:
    """A machine under load answered 72 stops from 12 to 33 s after their begin, and met one instant of those from 7 to 13 s."""
    load.volley(HELD)
    begun = load.trials[0].due - VOLLEY_FROM_MS
    for number, trial in enumerate(load.trials):
        broker.answered[trial.stop_id] = begun + 12_000 + 250 * number
    load.volley(HELD)
    due = [trial.due for trial in load.trials[VOLLEY:]]
    assert due[0] == NOW + 12_000
    assert [each - due[0] for each in due] == [250 * number for number in range(VOLLEY)]


def test_given_cancels_that_were_answered_together_then_the_next_ones_instants_lie_about_that_moment(
    broker: Broker, load: StopLoad
) -> None:
    load.volley(HELD)
    begun = load.trials[0].due - VOLLEY_FROM_MS
    for message in broker.of("message.send"):
        broker.answered[cancel_id(message["payload"]["number"])] = begun + 17_000
    load.volley(HELD)
    due = [parse_instant(value["deliver_at"]) - NOW for value in broker.of("message.send")[VOLLEY_CANCELS:]]
    assert len(due) == VOLLEY_CANCELS
    assert all(17_000 - SPREAD_MS <= each <= 17_000 + SPREAD_MS for each in due)
    assert max(due) - min(due) > SPREAD_MS


def test_given_answers_then_the_usual_latency_is_that_of_the_last_ones() -> None:
    latency, answered = Latency(), dict[str, int]()
    assert latency.usual_ms(answered) == ANSWER_MS
    for number, took in enumerate([9_000] * ANSWERS_KEPT + [800] * ANSWERS_KEPT):
        latency.sent(f"stop-{number}")
        answered[f"stop-{number}"] = NOW + took
    assert latency.usual_ms(answered) == 800


@pytest.mark.parametrize("answers", ["few", "of an outage"])
def test_given_a_volley_that_says_nothing_then_the_next_ones_instants_are_the_usual_ones(
    broker: Broker, load: StopLoad, answers: str
) -> None:
    load.volley(HELD)
    first = [trial.due - load.trials[0].due for trial in load.trials]
    for trial in load.trials[: VOLLEY // 3] if answers == "few" else load.trials:
        broker.answered[trial.stop_id] = trial.due + (5_000 if answers == "few" else VOLLEY_LAST_MS)
    load.volley(HELD)
    assert [trial.due - load.trials[VOLLEY].due for trial in load.trials[VOLLEY:]] == first


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
