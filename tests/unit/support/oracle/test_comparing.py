"""The walk over wall clocks against the oracle, over all zones from 2015 to 2037; `make oracle` asks a million times."""

from __future__ import annotations

import pytest

from tests.oracles.calendar.brute_force_walker import Meaning
from tests.oracles.calendar.comparison import compare, difference
from tests.oracles.calendar.random_questions import Triple, zones
from tests.support.tier import at_night
from tidegate_core.language.time.wall_clock import DstPolicy

TRIPLES = at_night(20_000, else_=500)
AUTUMN = 1_792_843_200_000
"""2026-10-24T12:00:00Z: the night after it Rome has 02:30 twice."""


@pytest.mark.parametrize("seed", range(2))
def test_given_random_triples_then_the_walk_answers_as_the_oracle_does(seed: int) -> None:
    done = compare(seed, TRIPLES // 2)

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
