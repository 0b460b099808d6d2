"""Which nemeses have shards change hands, and from when on: that alone lets the judge excuse a repeat."""

from __future__ import annotations

import pytest

from tests.chaos.nemeses import NEMESES
from tests.chaos.nemeses.nemesis import ALL_SHARDS, SETTLED_MS, Blow
from tests.support.checkers.hand_over_spans import Unrest
from tests.support.checkers.messages import TAKEN_OVER_MS_MIN

MOVES_NOTHING = {"API killed", "clock step", "poison records"}
NOTICED = {"kill", "kill, back at once", "pause of 1.5 sessions", "pause of 5 sessions"}


@pytest.mark.parametrize("name", NEMESES)
def test_given_a_nemesis_then_it_says_whether_shards_move_because_of_it(name: str) -> None:
    after = NEMESES[name].moves_after_ms
    if name in MOVES_NOTHING:
        assert after is None
    elif name in NOTICED or name.startswith("cut from the broker"):
        assert after == TAKEN_OVER_MS_MIN
    else:
        assert after == 0


def test_given_a_blow_then_shards_may_move_from_when_it_is_noticed_until_the_cluster_is_at_rest() -> None:
    blow = Blow(("node-1",), 10_000, 20_000, frozenset({1}))
    begin = 10_000 + TAKEN_OVER_MS_MIN
    assert NEMESES["kill"]._unrests(blow, 30_000) == [Unrest(begin, 30_000 + SETTLED_MS, ALL_SHARDS)]
    assert NEMESES["API killed"]._unrests(blow, 30_000) == []
