"""When the consumer of the sink had each record, and what follows for lateness."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.benchmarks.rig import sink_process
from tests.support.checkers.lateness import percentile
from tests.support.cluster.until import PATIENCE_S, until
from tidegate_bricks.logged_process import LoggedProcess
from tidegate_core.language.values.instants import parse_instant

PROGRAM = Path(sink_process.__file__)
END_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """The first time that a record with this id came.

    Attributes:
        nominal: ms since the epoch.
        appended_at: The broker's append time, ms since the epoch.
        received_us: When the consumer had it, µs since the epoch.
    """

    nominal: int
    appended_at: int
    received_us: int

    @property
    def late_us(self) -> int:
        return self.received_us - self.nominal * 1_000


@dataclass(frozen=True, slots=True)
class Arrivals:
    """All that came.

    Attributes:
        first: One for each id.
        repeats: Records whose id had come before.
    """

    first: Sequence[Arrival]
    repeats: int

    def between(self, begin_ms: float, end_ms: float) -> Arrivals:
        """Returns those that were due from `begin_ms` on and before `end_ms`, ms since the epoch."""
        return replace(self, first=[each for each in self.first if begin_ms <= each.nominal < end_ms])

    def figures(self) -> dict[str, float]:
        """Returns lateness in ms at the consumer, and how long it took from the first instant to the last record."""
        if not self.first:
            return {"delivered": 0, "repeats": self.repeats}
        late = [each.late_us for each in self.first]
        begun_us = min(each.nominal for each in self.first) * 1_000
        drained_s = (max(each.received_us for each in self.first) - begun_us) / 1e6
        return {
            "delivered": len(late),
            "repeats": self.repeats,
            "late_p50_ms": percentile(late, 0.5) / 1_000,
            "late_p99_ms": percentile(late, 0.99) / 1_000,
            "late_max_ms": max(late) / 1_000,
            "early": sum(each < 0 for each in late),
            "drained_s": drained_s,
            "per_s": len(late) / drained_s,
        }


class SinkReader:
    """The consumer's process, from the begin of the `with` block on.

    Args:
        bootstrap_servers: Of the broker.
        topic: The sink.
        folder: For its result and its log.
        count: After so many different ids it ends by itself.
    """

    def __init__(self, bootstrap_servers: str, topic: str, folder: Path, count: int) -> None:
        self._result = folder / f"{topic}.json"
        arguments = [bootstrap_servers, topic, str(self._result), str(count)]
        self._command = [sys.executable, "-P", str(PROGRAM), *arguments]
        self._log = folder / f"{topic}.log"
        self._process: LoggedProcess | None = None

    def __enter__(self) -> Self:
        self._process = LoggedProcess(self._command, self._log)
        ready = self._result.with_name(f"{self._result.name}.ready")
        until(ready.exists, f"{self._result.stem} is read")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.close()

    def wait(self, patience_s: float = PATIENCE_S) -> Arrivals:
        """Waits until all have come, at most so long; returns what came."""
        assert self._process is not None
        if self._process.wait(patience_s) is None:
            self._process.terminate()
            self._process.wait(END_TIMEOUT_S)
        assert self._result.exists(), self._process.last_lines()
        return arrivals_of(json.loads(self._result.read_text(encoding="utf-8")))

    def end(self) -> Arrivals:
        """Ends it now; returns what came."""
        return self.wait(0)


def arrivals_of(rows: Sequence[tuple[str, int, int, str]]) -> Arrivals:
    """Returns the rows of the consumer's program as values; of an id the first row counts."""
    first: dict[str, Arrival] = {}
    for nominal, appended_at, received_us, identity in rows:
        if identity not in first:
            first[identity] = Arrival(parse_instant(nominal), appended_at, received_us)
    return Arrivals(list(first.values()), len(rows) - len(first))
