"""Records on which our own code fails, whatever is in them: dead letters, and the records behind them go on.

Found in review: only what a parser refuses was caught; any other error of it would have ended holder after holder.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import EVENTS, REQUESTS, SECOND, Doc, a_send, a_spec, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.ingest import event_decoding, request_ingest
from tidegate_core.ingest.source_mapping import events_of
from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.formats.parsing import parse_events
from tidegate_core.language.values.derived_ids import message_shard

TOPIC = "lake.commits"
SOURCE: Doc = {
    "kind": "source",
    "namespace": "flights",
    "name": "landed",
    "topic": TOPIC,
    "event": {"dataset": "raw", "partition": {"pointer": "/day"}},
}


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.create_topic(TOPIC)
    made.run(SECOND)
    made.request({"id": "s", "type": "source.apply", "namespace": "flights", "name": "landed", "spec": SOURCE})
    made.request(an_apply(a_spec(trigger=on_data(count=100))))
    made.run(10 * SECOND)
    return made


def failing_on(poison: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A parser with a bug that one record meets."""

    def parse(*arguments: Any) -> Any:
        if poison in str(arguments):
            raise KeyError("a bug")
        return original(*arguments)

    return parse


def counts(bench: ActorHarness) -> list[object]:
    return [row["counts"] for row in bench.rows("E#")]


def letters(bench: ActorHarness, topic: str) -> list[str]:
    return [each.headers["tidegate.error.message"] for each in bench.on(topic)]


def test_given_an_event_that_the_parser_fails_on_then_it_is_a_dead_letter_and_the_others_count(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_decoding, "parse_events", failing_on("d2", parse_events))
    bench.append(EVENTS, 0, *(an_event(day) for day in ("d1", "d2", "d3")))
    bench.run(SECOND)
    assert counts(bench) == [[2]]
    (said,) = letters(bench, "tidegate.events.dlq")
    assert "internal error KeyError" in said


def test_given_an_event_whose_identity_cannot_be_told_then_it_is_a_dead_letter(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = DataPartitionEvent.dedupe_id.func  # type: ignore[attr-defined]  # a cached property
    monkeypatch.setattr(DataPartitionEvent, "dedupe_id", property(failing_on("d2", original)))
    bench.append(EVENTS, 0, *(an_event(day) for day in ("d1", "d2", "d3")))
    bench.run(SECOND)
    assert counts(bench) == [[2]]
    assert len(letters(bench, "tidegate.events.dlq")) == 1


def test_given_a_record_that_the_mapping_fails_on_then_it_is_a_dead_letter_of_its_source(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_decoding, "events_of", failing_on("d2", events_of))
    bench.append(TOPIC, 0, *({"day": day} for day in ("d1", "d2", "d3")))
    bench.run(SECOND)
    assert counts(bench) == [[2]]
    (letter,) = bench.on("tidegate.events.dlq")
    assert letter.headers["tidegate.error.source"] == "flights/landed"


def test_given_a_request_that_cannot_be_placed_then_its_sender_is_told_and_the_next_one_is_applied(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_ingest, "message_shard", failing_on("m-2", message_shard))
    bench.append(REQUESTS, 0, *(a_send(f"m-{number}", after="1s", receipt=True) for number in (1, 2, 3)))
    bench.run(2 * SECOND)
    assert [bench.status_of(f"m-{number}") for number in (1, 2, 3)] == ["accepted", "rejected", "accepted"]
    assert len(bench.on("out")) == 2
    assert len(letters(bench, "tidegate.requests.dlq")) == 1


def test_given_a_number_that_json_cannot_hold_then_the_event_is_refused(bench: ActorHarness) -> None:
    """It was kept as `Infinity`, which is no JSON: whoever reads the manifest may fail on it."""
    poison = json.dumps({"type": "custom.x", "namespace": "flights", "data": "@"}).replace('"@"', "1e999")
    bench.append(EVENTS, 0, poison.encode())
    bench.run(SECOND)
    (said,) = letters(bench, "tidegate.events.dlq")
    assert said.startswith("data: contains a number that JSON cannot hold")
