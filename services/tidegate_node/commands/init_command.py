"""The process `tidegate init`: creates the tables, topics and map of the environment's settings. Idempotent; `--check`
only compares.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tidegate_node import bootstrap
from tidegate_node.startup_checks import EXIT_CONFIGURATION, EXIT_TRY_LATER, store_refuses
from tidegate_ports.store import StoreRequestInvalid, StoreUnavailable

EXIT_DIFFERS = 1


def run(check: bool = False, settings: bootstrap.Settings | None = None) -> int:
    """Prints a line for each difference, and returns the exit code.

    Args:
        check: Changes nothing.
        settings: Settings to use instead of the environment's.

    Returns:
        0 all is right, or, without `check`, no difference keeps a node from serving; 1 something differs, with one line
        each; 75 the store or a broker does not answer; 78 the settings or the tables are impossible.
    """
    try:
        differences = bootstrap.initialise(bootstrap.load() if settings is None else settings, check=check)
    except (bootstrap.SettingsRefused, bootstrap.StartRefused) as refusal:
        _say(sys.stderr.write, str(refusal))
        return EXIT_CONFIGURATION
    except StoreRequestInvalid as refusal:
        _say(sys.stderr.write, store_refuses(refusal))
        return EXIT_CONFIGURATION
    except bootstrap.NotYet as silence:
        _say(sys.stderr.write, f"{silence}; try again")
        return EXIT_TRY_LATER
    except StoreUnavailable as silence:
        _say(sys.stderr.write, f"store: {silence}; try again")
        return EXIT_TRY_LATER
    for difference in differences:
        _say(sys.stdout.write, difference.text)
    if not differences:
        _say(sys.stdout.write, "tables, topics, map and the version of rows are as they should be")
    elif not check and not any(difference.unsafe for difference in differences):
        # An operator may have chosen more topic partitions or another billing mode, so that must not fail a rollout.
        _say(sys.stdout.write, "nodes serve with that")
        return 0
    return EXIT_DIFFERS if differences else 0


def _say(write: Callable[[str], int], text: str) -> None:
    write(f"{text}\n")
