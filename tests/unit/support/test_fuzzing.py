"""Hostile records through the ingest: none is at fault; and the judge finds what was planted, or its silence says nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fuzz.hostile_records import KINDS, Kind
from tests.fuzz.ingest_fuzzer import FuzzBench, fuzz
from tidegate_core.engine.operations import Operation
from tidegate_core.ingest import event_decoding, request_ingest
from tidegate_core.ingest.dead_letters import DeadLetters
from tidegate_core.ingest.event_ingest import EventIngest
from tidegate_core.language.values.problems import RefusedRecord
from tidegate_core.rows.effects import Produce

RECORDS = 1_000


@pytest.mark.parametrize("seed", [101])
@pytest.mark.parametrize("kind", KINDS)
def test_given_hostile_records_then_none_is_at_fault(kind: Kind, seed: int) -> None:
    found = fuzz(kind, seed, RECORDS)
    assert found.faults == []
    assert RECORDS // 20 < found.refused < RECORDS
    assert len(found.made) == 11


def _raises(*_: Any, **__: Any) -> Any:
    raise KeyError("planted")


def _is_silent(*_: Any, **__: Any) -> None:
    """Buries nothing."""


def _without_value(bench: FuzzBench, produce: Produce) -> Any:
    return produced(bench, Produce(produce.topic, produce.key, b"", produce.headers))


produced: Callable[..., Any] = FuzzBench._produced


def _leaves_alone(*_: Any) -> Operation[None]:
    """The position stays where it is."""
    yield ()


def _refuses(*_: Any) -> None:
    raise RefusedRecord([])


@pytest.mark.parametrize(
    ("kind", "owner", "name", "planted", "said"),
    [
        pytest.param("events", event_decoding, "parse_events", _raises, "the refusal is about us", id="a parser fails"),
        pytest.param("events", EventIngest, "_kept", _raises, "left the actor", id="ingest fails"),
        pytest.param(
            "requests",
            request_ingest,
            "authorize_request",
            _raises,
            "the refusal is about us",
            id="our own check fails",
        ),
        pytest.param("sources", DeadLetters, "bury", _is_silent, "no dead letter", id="dropped silently"),
        pytest.param("events", FuzzBench, "_produced", _without_value, "another key or value", id="not the record"),
        pytest.param("events", EventIngest, "_process", _leaves_alone, "the position stands at", id="stands still"),
        pytest.param("events", event_decoding, "authorize_events", _refuses, "is right, and refused", id="too strict"),
    ],
)
def test_given_a_planted_fault_then_it_is_found(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, owner: Any, name: str, planted: Any, said: str
) -> None:
    monkeypatch.setattr(owner, name, planted)
    assert any(said in fault for fault in fuzz(kind, 1, 200).faults)
