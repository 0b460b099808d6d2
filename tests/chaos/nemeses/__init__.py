"""All nemeses, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.chaos.nemeses import clock_steps as clocks
from tests.chaos.nemeses import network_cuts as network
from tests.chaos.nemeses import partition_growth as growth
from tests.chaos.nemeses import poison_records as poison
from tests.chaos.nemeses import process_faults as processes
from tests.chaos.nemeses import server_faults as bricks
from tests.chaos.nemeses import topic_recreation as anew
from tests.chaos.nemeses.nemesis import Nemesis

NEMESES: Mapping[str, Nemesis] = {
    nemesis.name: nemesis
    for nemesis in (
        processes.KILL,
        processes.KILL_AND_RESTART,
        processes.pause(processes.SHORT_PAUSE),
        processes.pause(processes.LONG_PAUSE),
        network.BROKER_CUT,
        network.BROKER_DEAF,
        network.BROKER_MUTE,
        network.STORE_CUT,
        network.STORE_DEAF,
        network.STORE_MUTE,
        bricks.BROKER_RESTART,
        bricks.STORE_FAULTS,
        bricks.BLACKOUT,
        bricks.API_KILLED,
        clocks.CLOCK_STEP,
        processes.ROLLING_RESTART,
        processes.STORM,
        growth.BY_COMMAND,
        growth.BY_ANOTHER_TOOL,
        poison.POISON,
        anew.MADE_ANEW,
    )
}
