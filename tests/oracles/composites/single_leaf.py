"""One leaf by itself, with what only such a one may say (SEMANTICS 5.4, 5.6): how much a job takes, and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracles.composites.pairing import Fired


@dataclass(slots=True)
class Alone:
    """Counts distinct data partitions of one dataset; durations in ms.

    Attributes:
        exactly: A job takes the first `count`, and what is left is the next one's; else it takes all that is there.
        ttl: What is not enough is gone so long after the first of it.
        max_wait: What is not enough becomes a job so long after the first of it.
        settle: What is enough becomes a job when nothing has come for so long,
        max_settle: and at the latest so long after it was enough.
    """

    dataset: str
    count: int
    exactly: bool = False
    ttl: int | None = None
    max_wait: int | None = None
    settle: int | None = None
    max_settle: int | None = None
    fired: list[Fired] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)
    _held: dict[str, int] = field(default_factory=dict)
    _last: int = 0
    _enough_since: int | None = None

    def event(self, dataset: str, data_partition: str, at: int) -> None:
        self.pass_time(at)
        self._held.setdefault(data_partition, at)
        self._last = at
        if len(self._held) >= self.count and self._enough_since is None:
            self._enough_since = at
        if self._enough_since is not None and self.settle is None:
            self._fire()

    def restart(self) -> None:
        """An update: what was counted is discarded."""
        self._held.clear()
        self._enough_since = None

    def pass_time(self, until: int) -> None:
        """Lets the deadline come, if it is due by then; nothing is left after one of them."""
        if not self._held:
            return
        first = min(self._held.values())
        if self._enough_since is not None:
            assert self.settle is not None
            assert self.max_settle is not None
            if min(self._last + self.settle, self._enough_since + self.max_settle) <= until:
                self._fire()
            return
        ends = [(first + length, name) for length, name in ((self.ttl, "ttl"), (self.max_wait, "wait")) if length]
        at, what = min(ends, default=(until + 1, ""))
        if at > until:
            return
        if what == "wait":
            self._fire()
        else:
            self.expired.append("evidence_expired")
            self.restart()

    def _fire(self) -> None:
        """What is there is never more than `exactly` takes: each event is looked at by itself."""
        manifest = tuple(sorted((self.dataset, name) for name in self._held))
        self.fired.append(Fired(manifest, self._enough_since is None, None))
        self.restart()
