"""Limits of production that a world makes small."""

from __future__ import annotations

from importlib import import_module
from random import Random

import pytest

from tests.simulation.faults.small_limits import KNOBS, draw_knobs, turned
from tidegate_core.decisions import event_ingest
from tidegate_core.decisions.delivery_plane import plane


@pytest.mark.parametrize("path", KNOBS)
def test_given_a_knob_then_it_is_a_limit_of_production_and_its_values_are_smaller(path: str) -> None:
    module, name = path.split(":")
    limit = getattr(import_module(f"tidegate_core.{module}"), name)
    assert all(0 < value < limit for value in KNOBS[path])


def test_given_turned_knobs_then_each_reader_sees_them_and_only_meanwhile() -> None:
    before = event_ingest.ROWS_PER_MOVE, vars(plane)["PAYLOADS_AHEAD_ROWS_MAX"]
    knobs = (
        ("decisions.event_ingest:ROWS_PER_MOVE", 2),
        ("decisions.delivery_plane.loading:PAYLOADS_AHEAD_ROWS_MAX", 1),
    )
    with turned(knobs):
        assert (event_ingest.ROWS_PER_MOVE, vars(plane)["PAYLOADS_AHEAD_ROWS_MAX"]) == (2, 1)
    assert before == (event_ingest.ROWS_PER_MOVE, vars(plane)["PAYLOADS_AHEAD_ROWS_MAX"])


def test_given_many_worlds_then_each_knob_is_turned_in_some_and_half_of_them_have_none() -> None:
    drawn = [draw_knobs(Random(number)) for number in range(300)]
    assert {path for knobs in drawn for path, _ in knobs} == set(KNOBS)
    assert 0.3 < sum(not knobs for knobs in drawn) / len(drawn) < 0.7
