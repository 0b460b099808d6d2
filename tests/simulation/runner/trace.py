"""What happened, line by line, and how often each kind of fault bit."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterable

from tests.simulation.faults.fault_kinds import INJECTED
from tests.simulation.world.timeline import START, Timeline

LINES_KEPT = 4_000
"""Enough for the tail that explains a failure; a replay with `--trace` keeps all."""


class Trace:
    """The simulation's diary.

    Attributes:
        faults: `(kind, where)` to how often it bit; `where` is a transaction's name, a topic, or a part of the world.
        counts: What else is worth counting: what follows from a fault, what users do twice, what actors say of themselves.
    """

    def __init__(self, timeline: Timeline, *, whole: bool = False, hashed: bool = False) -> None:
        self._timeline = timeline
        self._lines: deque[tuple[int, str, str, tuple[object, ...]]] = deque(maxlen=None if whole else LINES_KEPT)
        self._hash = hashlib.blake2b(digest_size=16) if hashed else None
        self.faults: Counter[tuple[str, str]] = Counter()
        self.counts: Counter[str] = Counter()

    def note(self, who: str, what: str, *details: object) -> None:
        line = (self._timeline.now - START, who, what, details)
        self._lines.append(line)
        if self._hash is not None:
            self._hash.update(repr(line).encode())

    def bit(self, kind: str, where: str) -> None:
        """A fault took effect; its kind is one of `faults/fault_kinds.py`."""
        if kind not in INJECTED:
            raise KeyError(f"{kind} is no kind of fault that is injected")
        self.faults[(kind, where)] += 1
        self.note("fault", kind, where)

    def counted(self, what: str, where: str) -> None:
        """Something that is worth counting and no fault."""
        self.counts[what] += 1
        self.note("counted", what, where)

    def digest(self) -> str:
        """A hash over all lines so far; two runs of one seed have the same."""
        assert self._hash is not None
        return self._hash.hexdigest()

    def tail(self, most: int | None = None) -> Iterable[str]:
        """Yields the last lines, readable."""
        lines = list(self._lines)
        for instant, who, what, details in lines if most is None else lines[-most:]:
            yield f"{instant / 1000:9.3f}s {who:<12} {what} {' '.join(str(each) for each in details)}".rstrip()
