"""The shared parts of a partition actor: operations, clock, alarms, assignment, and calls to the
driver with retries.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from operator import mul

from tidegate_core.engine.actor_inputs import Assignment
from tidegate_core.engine.end_offset_cache import EndOffsetCache
from tidegate_core.engine.operations import Operation, Operations, Signal
from tidegate_core.language.values.problems import both_ends
from tidegate_core.rows.effects import (
    Commit,
    Committed,
    Effect,
    Invalid,
    ManyProduced,
    Notice,
    NotProduced,
    Outcome,
    Produce,
    Produced,
    ProduceMany,
    Read,
    Refused,
    Unavailable,
    Write,
)
from tidegate_core.rows.store_operations import Batch, Key, Transaction, Value

RETRY_FIRST_MS = 100
RETRY_LAST_MS = 500
DRAIN_CHECK_FIRST_MS = 5
DRAIN_CHECK_LAST_MS = 40
"""Interval of the drain check, which grows: most drains end within a few checks, a transaction may take a minute."""
PRODUCE_RETRY_FIRST_MS = 500
PRODUCE_RETRY_LAST_MS = 4_000
ERROR_CHARACTERS_MAX = 1_000
"""Characters of an error in a log line: a store's message may quote what was sent."""


class Fenced(Exception):
    """A write was refused because a newer epoch exists: all work of this assignment ends."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"fenced at {key.pk}/{key.sk}")
        self.key = key


class NewerOwnerExists(Exception):
    """An owner with a newer map, or a later owner of this topic partition, exists: this one must not continue."""


class InvalidEffect(Exception):
    """The store can never carry out the effect, so its author must work without it.

    Attributes:
        keys: Keys of all items in the effect; not all of them are at fault.
    """

    def __init__(self, what: str, message: str, keys: Sequence[Key]) -> None:
        super().__init__(f"{what}: {message}")
        self.keys = tuple(keys)


class InvalidWrite(InvalidEffect):
    """An invalid transaction, of which nothing was applied, or an invalid batch, of which a part may have been."""

    def __init__(self, written: Transaction | Batch, message: str) -> None:
        kind = "transaction" if isinstance(written, Transaction) else "batch"
        super().__init__(f"{kind} {written.name}", message, [action.key for action in written.actions])


class InvalidRead(InvalidEffect):
    """An invalid read, with a key that no item can have."""

    def __init__(self, effect: Effect, message: str) -> None:
        super().__init__("read", message, effect.keys if isinstance(effect, Read) else ())


class Countdown:
    """Waits for the end of a number of concurrent operations."""

    def __init__(self, host: ActorContext, count: int) -> None:
        self._host = host
        self._left = count
        self._done = Signal("countdown")

    def down(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._host.operations.raise_(self._done)

    def wait(self) -> Operation[None]:
        if self._left:
            yield self._done


def run_concurrently(host: ActorContext, operations: Sequence[Operation[None]]) -> Operation[None]:
    """Runs operations concurrently until all have ended."""
    countdown = Countdown(host, len(operations))
    for operation in operations:
        host.operations.start(_counted(operation, countdown))
    yield from countdown.wait()


def _counted(operation: Operation[None], countdown: Countdown) -> Operation[None]:
    yield from operation
    countdown.down()


class ActorContext:
    """The context of one partition actor.

    Its clock never goes back: `now` is the latest instant that the driver reported.

    Attributes:
        store_seen: Time of the store's last answer of any kind.
        writes: Version in which rows are written at present (`rows/schema_version.py`).
        readings: Cached end offsets of topics (`read_end_offsets`).
    """

    def __init__(self, holding: Assignment) -> None:
        self.holding = holding
        self._owner_weight = _weight(holding.owner)
        self.operations = Operations()
        self.now = 0
        self.store_seen = 0
        self.writes = holding.writes
        self.ended = False
        self.readings = EndOffsetCache()
        self._alarms: list[tuple[int, int, Callable[[], None], bool]] = []
        self._order = 0
        self._tokens = 0

    # -- time ---------------------------------------------------------------------------------------------------------

    def call_at(self, instant: int, action: Callable[[], None], *, routine: bool = False) -> None:
        """Calls `action` at or after an instant, unless the assignment ends before.

        Args:
            instant: Time in ms since the epoch.
            action: Function to call once.
            routine: True for a routine check for lost wake-ups and approaching rows: nothing is due at its instant.
        """
        self._order += 1
        heapq.heappush(self._alarms, (instant, self._order, action, routine))

    def sleep(self, milliseconds: int, *, routine: bool = False) -> Operation[None]:
        """Sleeps; `routine` is as in `call_at`."""
        signal = Signal("sleep")
        self.call_at(self.now + milliseconds, lambda: self.operations.raise_(signal), routine=routine)
        yield signal

    def wait_while(self, condition: Callable[[], bool]) -> Operation[None]:
        """Waits for an orderly end: checks the condition at growing intervals until it is false."""
        pause = DRAIN_CHECK_FIRST_MS
        while condition():
            yield from self.sleep(pause)
            pause = min(2 * pause, DRAIN_CHECK_LAST_MS)

    def next_wake(self) -> int | None:
        return self._alarms[0][0] if self._alarms else None

    def next_due(self) -> int | None:
        """Returns the earliest alarm that is no routine check."""
        return min((alarm[0] for alarm in self._alarms if not alarm[3]), default=None)

    def ring(self) -> None:
        """Runs the alarms that are due."""
        while self._alarms and self._alarms[0][0] <= self.now:
            _, _, action, _ = heapq.heappop(self._alarms)
            action()

    # -- identity -----------------------------------------------------------------------------------------------------

    def token(self) -> str:
        """Returns a token that no other transaction of any process ever has."""
        self._tokens += 1
        holding = self.holding
        return f"{holding.owner}/{holding.topic_partition}.{holding.tenure}/{self._tokens}"

    def jitter(self, salt: str, span: int) -> int:
        """Returns 0..span-1, equal for equal owner and salt: the core has no randomness."""
        weight = self._owner_weight + _weight(salt, behind=len(self.holding.owner))
        return weight * 7919 % max(span, 1)

    # -- outside ------------------------------------------------------------------------------------------------------

    def emit(self, effect: Effect) -> None:
        self.operations.tell(effect)

    def note(self, event: str, **fields: Value) -> None:
        self.operations.tell(Notice(event, fields))

    def failed(self, name: str, about: str, error: Exception) -> None:
        """Reports work that was not done, in the log and by a metric. It stops no other work."""
        touched = [key.sk for key in error.keys] if isinstance(error, InvalidEffect) else []
        text = both_ends(f"{type(error).__name__}: {error}", ERROR_CHARACTERS_MAX)
        self.note("decision_failed", name=name, about=about, keys=list(touched), error=text)

    def start_safely(self, name: str, about: str, operation: Operation[None]) -> None:
        """Starts an operation about one object; its failure is reported and stops no other work."""
        self.operations.start(self.safely(name, about, operation))

    def safely(self, name: str, about: str, operation: Operation[None]) -> Operation[None]:
        """Runs an operation about one object; its failure is reported, and the caller continues."""
        try:
            yield from operation
        except Fenced:
            raise
        except Exception as error:  # noqa: BLE001 - any failure: one faulty object must not stop the others
            self.failed(name, about, error)

    def commit_until_settled(
        self, transaction: Transaction, until: int | None = None
    ) -> Operation[Committed | Refused]:
        """Sends a transaction until its outcome is known.

        A refusal that shows the transaction's own token counts as success.

        Args:
            transaction: Transaction to send.
            until: Time after which it is not resent. Then the result is a refusal, doubtful if any send had no
                answer.

        Raises:
            InvalidWrite: The store can never accept it.
        """
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
            if isinstance(verdict, Invalid):
                raise InvalidWrite(transaction, verdict.message)
            assert isinstance(verdict, Refused | Unavailable)
            yield from self.sleep(pause + self.jitter(transaction.token, pause))
            pause = min(2 * pause, RETRY_LAST_MS)
            if until is not None and self.now > until:
                return Refused((), doubtful)

    def write(self, batch: Batch, *, guarded: bool = False) -> Operation[bool]:
        """Sends an unconditional batch once. Returns whether the store acknowledged all of it.

        Raises:
            InvalidWrite: The store can never accept it; a part may be in the store.
        """
        answer = yield Write(batch, guarded)
        if isinstance(answer, Invalid):
            raise InvalidWrite(batch, answer.message)
        return not isinstance(answer, Unavailable)

    def write_for_good(self, batch: Batch) -> Operation[None]:
        """Sends an unconditional batch until the store acknowledges all of it. Raises InvalidWrite."""
        pause = RETRY_FIRST_MS
        while not (yield from self.write(batch)):
            yield from self.sleep(pause + self.jitter(batch.name, pause))
            pause = min(2 * pause, RETRY_LAST_MS)

    def produce_for_good(self, produce: Produce) -> Operation[str | None]:
        """Sends one of tidegate's own records until it is acknowledged. Returns why it never can be, or None.

        The record may repeat; its id identifies repeats.
        """
        pause = PRODUCE_RETRY_FIRST_MS
        while True:
            answer = yield produce
            if isinstance(answer, Produced):
                return None
            assert isinstance(answer, NotProduced)
            if answer.kind == "refused":
                return answer.message
            yield from self.sleep(pause)
            pause = min(2 * pause, PRODUCE_RETRY_LAST_MS)

    def produce_once(self, records: Sequence[Produce]) -> Operation[Sequence[Outcome]]:
        """Sends records once, together and in this order. Returns the outcome of each once all are known."""
        if not records:
            return ()
        answer = yield ProduceMany(tuple(records))
        assert isinstance(answer, ManyProduced)
        return answer.outcomes

    def read_for_good(self, effect: Effect) -> Operation[object]:
        """Repeats a read until its result is not `Unavailable`.

        Raises:
            InvalidRead: The store can never answer it.
        """
        pause = RETRY_FIRST_MS
        while True:
            result: object = yield effect
            if isinstance(result, Invalid):
                raise InvalidRead(effect, result.message)
            if not isinstance(result, Unavailable):
                return result
            yield from self.sleep(pause + self.jitter(result.what, pause))
            pause = min(2 * pause, RETRY_LAST_MS)

    def new_life(self) -> None:
        """Drops all operations and alarms: fenced work must not continue."""
        self.operations.end_all()
        self._alarms.clear()


def _weight(text: str, behind: int = 0) -> int:
    """Returns the sum of a text's characters, each times its position; `behind` characters precede the text."""
    return sum(map(mul, map(ord, text), count(behind + 1)))
