"""What all stories share: maps are trusted for seconds, as in the simulation's worlds, where production has a minute."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.simulation.faults.small_limits import OF_MAPS, turned


@pytest.fixture(autouse=True)
def maps_are_trusted_for_seconds() -> Generator[None]:
    with turned(OF_MAPS):
        yield
