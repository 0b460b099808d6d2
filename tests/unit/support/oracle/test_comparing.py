"""The walk over wall clocks against the oracle, over all zones from 2015 to 2037; `make oracle` asks a million times."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.oracles.calendar.brute_force_walker import Meaning, mapped, rules_of
from tests.oracles.calendar.comparison import compare, difference
from tests.oracles.calendar.random_questions import Triple, zones
from tidegate_core.time.cron_fields import parse_cron
from tidegate_core.time.wall_clock import DstPolicy

TRIPLES = 20_000
AUTUMN = 1_792_843_200_000
"""2026-10-24T12:00:00Z: the night after it Rome has 02:30 twice."""


@pytest.mark.parametrize("seed", range(4))
def test_given_random_triples_then_the_walk_answers_as_the_oracle_does(seed: int) -> None:
    done = compare(seed, TRIPLES // 4)

    assert done.stories == ()
    assert done.fires > done.triples * 0.99
    assert len(zones()) > 500


def half_past_two(overlap: str) -> Meaning:
    return Meaning((9_000,), lambda day: True, real_cadence=False, overlap=overlap)


def test_given_a_wrong_walk_then_the_oracle_tells_it() -> None:
    """A policy that the walk is not told of is a fault like any other."""
    asked = Triple("30 2 * * *", "unix5", DstPolicy(), "Europe/Rome", AUTUMN, half_past_two("last"))
    _, story = difference(asked)

    assert story is not None
    assert "1792888200000 instead of 1792891800000" in story
    assert (
        difference(Triple("30 2 * * *", "unix5", DstPolicy(), "Europe/Rome", AUTUMN, half_past_two("first")))[1] is None
    )


def test_given_gap_then_the_oracle_maps_its_times_to_its_end() -> None:
    in_gap = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001 - a wall clock's time
    rome = rules_of("Europe/Rome")

    assert mapped(in_gap, half_past_two("first"), rome) == [1_774_746_000]
    assert parse_cron("30 2 * * *").minutes == (150,)
