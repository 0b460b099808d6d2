"""The events of a process's log, over all of its lives, each line read once.

A starter sets a log aside that has grown large, and drops the one before it. A long campaign would lose what nodes said, and count
less of it than before: so logs are moved out of its way here, and all of them are read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tidegate_bricks.logged_process import LOG_BYTES_MAX

ASIDE_BYTES = LOG_BYTES_MAX // 2
"""Below the size at which the starter itself would set a log aside."""


class LoggedEvents:
    """What one log says; lines that are no JSON object, or are cut off, are passed over.

    Args:
        log: That the process appends to.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._asides = 0
        self._read = 0
        self._found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)

    def set_aside(self) -> None:
        """Moves the log away where it has grown large. Call it while nobody writes."""
        if self._log.exists() and self._log.stat().st_size > ASIDE_BYTES:
            self._look()
            self._asides += 1
            self._log.rename(self._log.with_name(f"{self._log.name}.aside-{self._asides}"))
            self._read = 0

    def of(self, name: str) -> list[Mapping[str, Any]]:
        """Returns the events of that name, in their order."""
        self._look()
        return list(self._found.get(name, ()))

    def _look(self) -> None:
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            log.seek(self._read)
            new = log.read()
        # A line without its end is being written, or a kill cut it: it is looked at again.
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            event = _event(line)
            if event is not None:
                self._found[str(event.get("event"))].append(event)


def instant_of(event: Mapping[str, Any]) -> int:
    """Returns when an event was logged, ms since the epoch."""
    return int(datetime.fromisoformat(event["at"]).timestamp() * 1_000)


def _event(line: bytes) -> Mapping[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None  # A line that a kill cut in two.
    return event if isinstance(event, dict) else None
