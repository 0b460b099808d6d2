"""Limits of production that a world makes small."""

from __future__ import annotations

from importlib import import_module

from tests.simulation.faults.small_limits import KNOBS, turned
from tidegate_core.ingest import event_ingest
from tidegate_core.messages import message_scheduler


def test_given_a_knob_then_it_is_a_limit_of_production_and_its_values_are_smaller() -> None:
    for path, values in KNOBS.items():
        module, name = path.split(":")
        limit = getattr(import_module(f"tidegate_core.{module}"), name)
        assert all(0 < value < limit for value in values), path


def test_given_turned_knobs_then_each_reader_sees_them_and_only_meanwhile() -> None:
    before = event_ingest.ROWS_PER_MOVE, vars(message_scheduler)["PAYLOADS_AHEAD_ROWS_MAX"]
    knobs = (
        ("ingest.event_ingest:ROWS_PER_MOVE", 2),
        ("messages.wire.payload_budget:PAYLOADS_AHEAD_ROWS_MAX", 1),
    )
    with turned(knobs):
        assert (event_ingest.ROWS_PER_MOVE, vars(message_scheduler)["PAYLOADS_AHEAD_ROWS_MAX"]) == (2, 1)
    assert before == (event_ingest.ROWS_PER_MOVE, vars(message_scheduler)["PAYLOADS_AHEAD_ROWS_MAX"])
