"""Where librdkafka's own lines go: to one logger instead of stderr, and not the same one every second of an outage."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

REPEAT_S = 30.0
"""A kind of line of one client is logged at most once in so long."""
KINDS_MAX = 1_000
"""Remembered; a kind is a client and a facility such as FAIL, and a process has some dozens."""


class FirstOfItsKind(logging.Filter):
    """Lets a client's line pass when none with its facility did lately. The client passes both as arguments."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._passed: dict[tuple[object, ...], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.args[:2] if isinstance(record.args, tuple) else ()
        now = self._clock()
        last = self._passed.get(kind)
        if last is not None and now - last < REPEAT_S:
            return False
        if len(self._passed) >= KINDS_MAX:
            self._passed.clear()
        self._passed[kind] = now
        return True


LOG = logging.getLogger("tidegate.kafka.client")
LOG.addFilter(FirstOfItsKind())
