"""What the parts of a partition actor share: operations, the checked clock, timers, the facts of the holding."""

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
"""Whoever hands over looks ever less often whether it may: most is done within a few looks, a cut may take a minute."""
PRODUCE_RETRY_FIRST_MS = 500
PRODUCE_RETRY_LAST_MS = 4_000
ERROR_CHARACTERS_MAX = 1_000
"""Of an error's text in a log line: a store's message may quote what was sent."""


class Fenced(Exception):
    """A write was refused because a newer epoch exists: everything of this holding ends."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"fenced at {key.pk}/{key.sk}")
        self.key = key


class NewerOwnerExists(Exception):
    """A holder with a newer map, or a later one of this topic partition, exists: this one must not go on as it is."""


class InvalidEffect(Exception):
    """The store will never do what was asked, as it is: whoever asked has to do without.

    Attributes:
        keys: Of all items that it was about; not all of them are to blame.
    """

    def __init__(self, what: str, message: str, keys: Sequence[Key]) -> None:
        super().__init__(f"{what}: {message}")
        self.keys = tuple(keys)


class InvalidWrite(InvalidEffect):
    """A transaction, of which nothing was applied, or a batch, of which some may have been."""

    def __init__(self, written: Transaction | Batch, message: str) -> None:
        kind = "transaction" if isinstance(written, Transaction) else "batch"
        super().__init__(f"{kind} {written.name}", message, [action.key for action in written.actions])


class InvalidRead(InvalidEffect):
    """A read, of a key that no item can have."""

    def __init__(self, effect: Effect, message: str) -> None:
        super().__init__("read", message, effect.keys if isinstance(effect, Read) else ())


class Countdown:
    """Waits for a number of things that go on side by side."""

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
    """Runs operations at the same time, until all have ended."""
    countdown = Countdown(host, len(operations))
    for operation in operations:
        host.operations.start(_counted(operation, countdown))
    yield from countdown.wait()


def _counted(operation: Operation[None], countdown: Countdown) -> Operation[None]:
    yield from operation
    countdown.down()


class ActorContext:
    """One per partition actor.

    The clock never goes back: `now` is the latest instant that the driver ever told (DESIGN 2).

    Attributes:
        store_seen: When the store last answered, whatever it said.
        writes: Version in which rows are written by now (`rows/schema_version.py`).
        readings: What was read of topics' ends (`read_end_offsets`).
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
        """Calls back at or after the instant, within this life of the holding.

        Args:
            instant: Milliseconds since the epoch.
            action: Is called once.
            routine: It only looks for what got lost on its way, and for rows that come near: nothing is due by itself.
        """
        self._order += 1
        heapq.heappush(self._alarms, (instant, self._order, action, routine))

    def sleep(self, milliseconds: int, *, routine: bool = False) -> Operation[None]:
        """`yield from host.sleep(...)`; `routine` as of `call_at`."""
        signal = Signal("sleep")
        self.call_at(self.now + milliseconds, lambda: self.operations.raise_(signal), routine=routine)
        yield signal

    def wait_while(self, condition: Callable[[], bool]) -> Operation[None]:
        """For an orderly end: looks again and again, ever less often, until it no longer holds."""
        pause = DRAIN_CHECK_FIRST_MS
        while condition():
            yield from self.sleep(pause)
            pause = min(2 * pause, DRAIN_CHECK_LAST_MS)

    def next_wake(self) -> int | None:
        return self._alarms[0][0] if self._alarms else None

    def next_due(self) -> int | None:
        """Returns the earliest alarm that is no routine."""
        return min((alarm[0] for alarm in self._alarms if not alarm[3]), default=None)

    def ring(self) -> None:
        """Runs what is due."""
        while self._alarms and self._alarms[0][0] <= self.now:
            _, _, action, _ = heapq.heappop(self._alarms)
            action()

    # -- identity -----------------------------------------------------------------------------------------------------

    def token(self) -> str:
        """A token that no other transaction of any process ever has."""
        self._tokens += 1
        holding = self.holding
        return f"{holding.owner}/{holding.topic_partition}.{holding.tenure}/{self._tokens}"

    def jitter(self, salt: str, span: int) -> int:
        """A spread of 0..span-1 that is the same for the same owner and salt: the core has no randomness."""
        weight = self._owner_weight + _weight(salt, behind=len(self.holding.owner))
        return weight * 7919 % max(span, 1)

    # -- outside ------------------------------------------------------------------------------------------------------

    def emit(self, effect: Effect) -> None:
        self.operations.tell(effect)

    def note(self, event: str, **fields: Value) -> None:
        self.operations.tell(Notice(event, fields))

    def failed(self, name: str, about: str, error: Exception) -> None:
        """Says loudly that something was not done, and what: it must not stop anything else, and must not be silent."""
        touched = [key.sk for key in error.keys] if isinstance(error, InvalidEffect) else []
        text = both_ends(f"{type(error).__name__}: {error}", ERROR_CHARACTERS_MAX)
        self.note("decision_failed", name=name, about=about, keys=list(touched), error=text)

    def start_safely(self, name: str, about: str, operation: Operation[None]) -> None:
        """Starts an operation about one thing, whose failure is told and stops nothing else."""
        self.operations.start(self.safely(name, about, operation))

    def safely(self, name: str, about: str, operation: Operation[None]) -> Operation[None]:
        """Goes through an operation about one thing; its failure is told, and whoever asked for it goes on."""
        try:
            yield from operation
        except Fenced:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is: one poisoned thing must not stop the others
            self.failed(name, about, error)

    def commit_until_settled(
        self, transaction: Transaction, until: int | None = None
    ) -> Operation[Committed | Refused]:
        """Sends a transaction until its fate is known. Its own success, met as a refusal, counts as success (protocol H15).

        Args:
            transaction: What is sent.
            until: It is not sent again later than this: the answer is a refusal then, in doubt if any send had no answer.

        Raises:
            InvalidWrite: The store will never take it.
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
        """Sends an unconditional batch once; returns whether all of it is acknowledged.

        Raises:
            InvalidWrite: The store will never take it; some of it may be there.
        """
        answer = yield Write(batch, guarded)
        if isinstance(answer, Invalid):
            raise InvalidWrite(batch, answer.message)
        return not isinstance(answer, Unavailable)

    def write_for_good(self, batch: Batch) -> Operation[None]:
        """Sends an unconditional batch until all of it is acknowledged. Raises InvalidWrite."""
        pause = RETRY_FIRST_MS
        while not (yield from self.write(batch)):
            yield from self.sleep(pause + self.jitter(batch.name, pause))
            pause = min(2 * pause, RETRY_LAST_MS)

    def produce_for_good(self, produce: Produce) -> Operation[str | None]:
        """Sends a record of our own, which may repeat (its id tells), until it is there; returns why it never will be."""
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
        """Sends records once, together and in this order; returns what became of each, once that is known of all."""
        if not records:
            return ()
        answer = yield ProduceMany(tuple(records))
        assert isinstance(answer, ManyProduced)
        return answer.outcomes

    def read_for_good(self, effect: Effect) -> Operation[object]:
        """Asks until there is an answer other than `Unavailable`.

        Raises:
            InvalidRead: The store will never answer it.
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
        """Forgets all operations and alarms: what was fenced must not go on."""
        self.operations.end_all()
        self._alarms.clear()


def _weight(text: str, behind: int = 0) -> int:
    """Sums a text's letters up, each times its place; `behind` letters stand in front of it."""
    return sum(map(mul, map(ord, text), count(behind + 1)))
