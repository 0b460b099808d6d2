"""All nemeses, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.chaos.nemeses import (
    clock_steps,
    network_cuts,
    partition_growth,
    poison_records,
    process_faults,
    server_faults,
    topic_recreation,
)
from tests.chaos.nemeses.nemesis import Nemesis

NEMESES: Mapping[str, Nemesis] = {
    nemesis.name: nemesis
    for nemesis in (
        process_faults.KILL,
        process_faults.KILL_AND_RESTART,
        process_faults.pause(process_faults.SHORT_PAUSE),
        process_faults.pause(process_faults.LONG_PAUSE),
        network_cuts.BROKER_CUT,
        network_cuts.BROKER_DEAF,
        network_cuts.BROKER_MUTE,
        network_cuts.STORE_CUT,
        network_cuts.STORE_DEAF,
        network_cuts.STORE_MUTE,
        server_faults.BROKER_RESTART,
        server_faults.STORE_FAULTS,
        server_faults.BLACKOUT,
        server_faults.API_KILLED,
        clock_steps.CLOCK_STEP,
        process_faults.ROLLING_RESTART,
        process_faults.STORM,
        partition_growth.BY_COMMAND,
        partition_growth.BY_ANOTHER_TOOL,
        poison_records.POISON,
        topic_recreation.MADE_ANEW,
    )
}
