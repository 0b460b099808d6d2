"""The process `tidegate init`: tables, topics and map of the environment's settings. Idempotent; `--check` only looks."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tidegate_node import bootstrap
from tidegate_node.startup_checks import EXIT_CONFIGURATION, EXIT_TRY_LATER, store_refuses
from tidegate_ports.store import StoreRequestInvalid, StoreUnavailable

EXIT_DIFFERS = 1


def run(check: bool = False, settings: bootstrap.Settings | None = None) -> int:
    """Writes a line for each thing that is not as it should be, and returns the exit code.

    Args:
        check: Changes nothing.
        settings: Instead of those of the environment.

    Returns:
        0 all is as it should be, or, without `check`, what differs keeps no node from serving; 1 something differs, one line for
        each of it; 75 a brick does not answer; 78 the settings, or the tables, cannot be.
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
        # More topic partitions, or another billing mode, may be what an operator chose: no reason to fail a roll-out.
        _say(sys.stdout.write, "nodes serve with that")
        return 0
    return EXIT_DIFFERS if differences else 0


def _say(write: Callable[[str], int], text: str) -> None:
    write(f"{text}\n")
