"""Sends librdkafka's log lines to one logger instead of stderr, and drops repeats during an outage."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

REPEAT_S = 30.0
"""Seconds for which further lines of the same kind from the same client are dropped."""
KINDS_MAX = 1_000
"""Most kinds remembered. A kind is a client and a facility such as FAIL; a process has some dozens."""


class FirstOfItsKind(logging.Filter):
    """Passes a line if its client and facility logged none within `REPEAT_S`. The client passes both as log
    arguments.
    """

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
