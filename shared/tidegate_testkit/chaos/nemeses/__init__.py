"""All nemeses, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_testkit.chaos.nemeses import anew, bricks, clocks, growth, network, poison, processes
from tidegate_testkit.chaos.nemesis import Nemesis

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
