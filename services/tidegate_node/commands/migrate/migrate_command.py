"""The process `tidegate migrate`: prints its steps, and ends with a code that says what to do next."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable
from typing import Final

from tidegate_core.rows.schema_version import StoreSchema
from tidegate_node import bootstrap
from tidegate_node.commands.migrate.migration import InTheWay, Migration
from tidegate_node.startup_checks import EXIT_CONFIGURATION, EXIT_TRY_LATER, shards_of, store_refuses
from tidegate_ports.store import StoreRequestInvalid, StoreUnavailable

EXIT_IN_THE_WAY: Final = 1
LOOK_EVERY_S: Final = 2.0
PATIENCE_S: Final = 60.0
"""Longest wait for the nodes. They check every 5 s and report within another 5 s. A much longer delay is a fault that a
person must examine."""


def run(
    *,
    finish: bool = False,
    dry_run: bool = False,
    writes_per_s: float = 50.0,
    settings: bootstrap.Settings | None = None,
) -> int:
    """Migrates, and returns the exit code.

    Args:
        finish: Also raises the version in which nodes write, if no node of an older release is left.
        dry_run: Changes nothing.
        writes_per_s: Reads of 100 rows, and writes of one row, per second.
        settings: Settings to use instead of the environment's.

    Returns:
        0 done; 1 a process of an older release blocks the migration; 75 run it again; 78 the settings, the store or the
        release do not fit.
    """
    try:
        store, settle = bootstrap.migrated(bootstrap.load() if settings is None else settings)
        migration = Migration(
            store,
            settle,
            shards_of(store),
            pause=lambda: time.sleep(1 / writes_per_s),
            wait=_patience(),
            now=lambda: int(time.time() * 1_000),
            token=lambda: f"migrate/{uuid.uuid4()}",
            say=_say,
            dry_run=dry_run,
        )
        schema = migration.run(finish=finish)
    except (bootstrap.SettingsRefused, bootstrap.StartRefused) as refusal:
        return _fail([str(refusal)], EXIT_CONFIGURATION)
    except StoreRequestInvalid as refusal:
        return _fail([store_refuses(refusal)], EXIT_CONFIGURATION)
    except InTheWay as found:
        return _fail(found.reasons, EXIT_IN_THE_WAY)
    except (StoreUnavailable, bootstrap.NotYet) as silence:
        return _fail([f"{silence}; run it again, it continues there"], EXIT_TRY_LATER)
    for line in told(migration, schema):
        _say(line)
    return 0


def told(migration: Migration, schema: StoreSchema) -> list[str]:
    """Returns lines that say what was done, and what is left to do."""
    newest, would = migration.readable.newest, "would be " if migration.dry_run else ""
    lines = [f"{count} rows {would}moved: {name}" for name, count in sorted(migration.moved.items())]
    if schema.rows_from >= newest:
        lines.append(f"all rows are of version {newest}, the newest of this release")
    elif schema.writes < newest:
        lines.append(
            f"nodes write version {schema.writes}, and this release could write {newest}: when no node of the older release runs any "
            "more, run `tidegate migrate --finish`"
        )
    return lines


def _patience() -> Callable[[], bool]:
    begun: list[float] = []

    def wait() -> bool:
        begun.append(time.monotonic())
        time.sleep(LOOK_EVERY_S)
        return time.monotonic() - begun[0] < PATIENCE_S

    return wait


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _fail(lines: tuple[str, ...] | list[str], code: int) -> int:
    sys.stderr.writelines(f"tidegate: {line}\n" for line in lines)
    return code
