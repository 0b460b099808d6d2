"""What the parts of a partition actor share: operations, the checked clock, timers, the facts of the holding."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from tidegate_core.decisions.inputs import Holding
from tidegate_core.decisions.operations import Operation, Operations, Signal
from tidegate_core.effects import Commit, Committed, Effect, Notice, Refused, Unavailable
from tidegate_core.store.values import Key, Transaction, Value

RETRY_FIRST_MS = 100
RETRY_LAST_MS = 2_000


class Fenced(Exception):
    """A write was refused because a newer epoch exists: everything of this holding ends."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"fenced at {key.pk}/{key.sk}")
        self.key = key


class Host:
    """One per partition actor.

    The clock never goes back: `now` is the latest instant that the driver ever told (DESIGN 2).
    """

    def __init__(self, holding: Holding) -> None:
        self.holding = holding
        self.operations = Operations()
        self.now = 0
        self.ended = False
        self._alarms: list[tuple[int, int, Signal | Callable[[], None]]] = []
        self._order = 0
        self._tokens = 0
        self._life = 0

    # -- time ---------------------------------------------------------------------------------------------------------

    def call_at(self, instant: int, action: Callable[[], None]) -> None:
        """Calls back at or after the instant, within this life of the holding."""
        self._order += 1
        heapq.heappush(self._alarms, (instant, self._order, action))

    def sleep(self, milliseconds: int) -> Operation[None]:
        """`yield from host.sleep(...)`."""
        signal = Signal("sleep")
        self.call_at(self.now + milliseconds, lambda: self.operations.raise_(signal))
        yield signal

    def next_wake(self) -> int | None:
        return self._alarms[0][0] if self._alarms else None

    def ring(self) -> None:
        """Runs what is due."""
        while self._alarms and self._alarms[0][0] <= self.now:
            _, _, action = heapq.heappop(self._alarms)
            if callable(action):
                action()

    # -- identity -----------------------------------------------------------------------------------------------------

    def token(self) -> str:
        """A token that no other transaction of any process ever has."""
        self._tokens += 1
        holding = self.holding
        return f"{holding.owner}/{holding.topic_partition}.{holding.tenure}/{self._tokens}"

    def jitter(self, salt: str, span: int) -> int:
        """A spread of 0..span-1 that is the same for the same owner and salt: the core has no randomness."""
        return (
            sum((index + 1) * ord(letter) for index, letter in enumerate(self.holding.owner + salt))
            * 7919
            % max(span, 1)
        )

    # -- outside ------------------------------------------------------------------------------------------------------

    def tell(self, effect: Effect) -> None:
        self.operations.tell(effect)

    def note(self, event: str, **fields: Value) -> None:
        self.operations.tell(Notice(event, fields))

    def commit_for_good(self, transaction: Transaction) -> Operation[Committed | Refused]:
        """Sends a transaction until its fate is known. Its own success, met as a refusal, counts as success (protocol H15)."""
        pause = RETRY_FIRST_MS
        doubtful = False
        while True:
            verdict = yield Commit(transaction)
            if isinstance(verdict, Refused):
                if any(item is not None and item.get("w") == transaction.token for _, item in verdict.failed):
                    return Committed()
                if verdict.failed:
                    return Refused(verdict.failed, verdict.doubtful or doubtful)
            doubtful = doubtful or isinstance(verdict, Unavailable)
            if isinstance(verdict, Committed):
                return verdict
            assert isinstance(verdict, Refused | Unavailable)
            yield from self.sleep(pause + self.jitter(transaction.token, pause))
            pause = min(2 * pause, RETRY_LAST_MS)

    def read_for_good(self, effect: Effect) -> Operation[object]:
        """Asks until there is an answer other than `Unavailable`."""
        pause = RETRY_FIRST_MS
        while True:
            result: object = yield effect
            if not isinstance(result, Unavailable):
                return result
            yield from self.sleep(pause + self.jitter(result.what, pause))
            pause = min(2 * pause, RETRY_LAST_MS)

    def new_life(self) -> None:
        """Forgets all operations and alarms: what was fenced must not go on."""
        self.operations.end_all()
        self._alarms.clear()
        self._life += 1
