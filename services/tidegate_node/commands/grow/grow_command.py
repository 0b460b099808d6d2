"""The process `tidegate partitions grow`: prints its steps, and ends with a code that says what to do next."""

from __future__ import annotations

import sys
import time

from tidegate_node import bootstrap
from tidegate_node.commands.grow.partition_growth import NumberRefused
from tidegate_node.startup_checks import EXIT_CONFIGURATION, EXIT_TRY_LATER, store_refuses
from tidegate_ports.store import StoreRequestInvalid, StoreUnavailable

EXIT_USAGE = 2
LOOK_EVERY_S = 1.0


def run(number: int, settings: bootstrap.Settings | None = None) -> int:
    """Grows the requests topic and the map, and returns the exit code.

    Args:
        number: Wanted number of topic partitions.
        settings: Settings to use instead of the environment's.

    Returns:
        0 done, or already done; 2 the number is impossible; 75 run it again; 78 settings. After 2 and 78 nothing was
        changed.
    """
    try:
        grown = bootstrap.grown(
            bootstrap.load() if settings is None else settings, number, say=_say, wait=lambda: time.sleep(LOOK_EVERY_S)
        )
    except NumberRefused as refusal:
        return _fail(str(refusal), EXIT_USAGE)
    except (bootstrap.SettingsRefused, bootstrap.StartRefused) as refusal:
        return _fail(str(refusal), EXIT_CONFIGURATION)
    except StoreRequestInvalid as refusal:
        return _fail(store_refuses(refusal), EXIT_CONFIGURATION)
    except (StoreUnavailable, bootstrap.NotYet) as silence:
        return _fail(f"{silence}; run it again, it continues there", EXIT_TRY_LATER)
    _say(f"map version {grown.version}: {grown.topic_partitions} topic partitions, {grown.shards} shards")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _fail(line: str, code: int) -> int:
    sys.stderr.write(f"tidegate: {line}\n")
    return code
