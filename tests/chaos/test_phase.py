"""Strikes at a cluster behind proxies: each was felt, and nothing was lost, doubled, miscounted, early or unguarded.

Times are no matter of this test: `make chaos` prints them, and goes on for as long as one likes.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.chaos.nemeses.network_cuts import BROKER_DEAF
from tests.chaos.nemeses.process_faults import KILL
from tests.chaos.nemeses.server_faults import STORE_FAULTS
from tests.chaos.rig.campaign import Campaign, run
from tests.chaos.rig.load import Sizes
from tests.support.checkers.faults import report
from tests.support.cluster.machine_stalls import Standstills
from tests.support.cluster.measurements import show
from tests.support.tier import ALL, at_night

SEED_VARIABLE = "TIDEGATE_TEST_SEED"
NEMESES = (KILL, BROKER_DEAF, STORE_FAULTS) if ALL else (BROKER_DEAF, STORE_FAULTS)
"""`tests/cluster/test_kills.py` kills in both tiers."""
NODES = at_night(3, else_=2)
SIZES = Sizes(messages_per_s=8.0, events_per_s=4.0, stops_per_s=0.4)


@pytest.mark.timeout(1_200)
def test_given_a_one_way_cut_and_a_spoilt_store_then_each_is_felt_and_every_guarantee_holds(
    tmp_path: Path,
) -> None:
    """TS-09: as `make soak` for a day. Events in are events consumed: `judge_counts` finds each that is not."""
    seed = int(os.environ.get(SEED_VARIABLE, "") or random.SystemRandom().randrange(1 << 32))
    show(f"\nseed {seed} (again with {SEED_VARIABLE}={seed})")
    phases = iter([(nemesis, 1) for nemesis in NEMESES])
    with Standstills() as standstills:
        figures = run(Campaign(seed, SIZES, phases, nodes=NODES), tmp_path, show, standstills.unrests)
    for line in figures.lines():
        show(line)
    assert not figures.faults, report(figures.faults)
    assert not [phase.void for phase in figures.phases if phase.void]
