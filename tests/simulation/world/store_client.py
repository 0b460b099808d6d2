"""A process's way to the store: sends, waits, reads back, repeats, by the rules that the production drivers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tests.simulation.world.store import SimStore
from tests.simulation.world.timeline import Process
from tidegate_core.rows.effects import Committed, Items, Refused, Unavailable, Written
from tidegate_core.rows.store_operations import Delete, Item, Key, Page, Put, RangeRead, RawOutcome, Transaction
from tidegate_core.writes.settlement import ReadWitness, SendAgain, Settlement, Step

Verdict: TypeAlias = Committed | Refused | Unavailable

READ_ATTEMPTS_MAX = 3
WRITE_ATTEMPTS_MAX = 5
PAUSE_FIRST_MS = 50
PAUSE_LAST_MS = 2_000


class StoreClient:
    """Bound to a process: a frozen one waits between two sends, a dead one sends nothing more.

    Args:
        process: Whose it is.
        store: The world's.
        writer: Who writes its batches: the owner id of a node's life.
    """

    def __init__(self, process: Process, store: SimStore, writer: str = "") -> None:
        self._process = process
        self._store = store
        self._writer = writer
        self._doubtful: set[str] = set()

    def commit(self, transaction: Transaction, done: Callable[[Verdict], None]) -> None:
        """Sends one transaction until it is settled."""
        doubtful = transaction.token in self._doubtful
        self._doubtful.discard(transaction.token)
        self._send(Settlement(transaction, doubtful=doubtful), done)

    def _send(self, settlement: Settlement, done: Callable[[Verdict], None]) -> None:
        def answered(outcome: RawOutcome) -> None:
            after, step = settlement.answered(outcome)
            self._process.post(lambda: self._follow(after, step, done))

        self._store.transact(settlement.transaction, answered)

    def _follow(self, settlement: Settlement, step: Step, done: Callable[[Verdict], None]) -> None:
        if isinstance(step, SendAgain):
            pause = step.after_ms_max * self._process.timeline.chance.random()
            self._process.after(pause, lambda: self._send(settlement, done))
        elif isinstance(step, ReadWitness):
            key = step.key

            def witnessed(found: Mapping[Key, Item] | None) -> None:
                after, verdict = settlement.unreadable() if found is None else settlement.witnessed(found.get(key))
                self._process.post(lambda: self._follow(after, verdict, done))

            self._store.get((key,), witnessed)
        else:
            if isinstance(step, Unavailable):
                self._doubtful.add(settlement.transaction.token)
            done(step)

    def write(
        self,
        actions: Sequence[Put | Delete],
        done: Callable[[Written | Unavailable], None],
        may_send: Callable[[], bool] | None = None,
        idle_sends: int = 0,
    ) -> None:
        """Sends a batch until all of it is acknowledged, nothing got on for a while, or it may not be sent any more."""
        if may_send is not None and not may_send():
            self._process.after(1, lambda: done(Unavailable("the guard has lapsed")))
            return

        def answered(left: Sequence[Put | Delete] | None) -> None:
            self._process.post(lambda: follow(left))

        def follow(left: Sequence[Put | Delete] | None) -> None:
            pending = actions if left is None else left
            if not pending:
                done(Written())
                return
            idle = 0 if len(pending) < len(actions) else idle_sends + 1
            if idle >= WRITE_ATTEMPTS_MAX:
                done(Unavailable("store, a batch"))
                return
            pause = min(PAUSE_FIRST_MS << idle, PAUSE_LAST_MS) * self._process.timeline.chance.random()
            self._process.after(pause, lambda: self.write(pending, done, may_send, idle))

        self._store.write(actions, answered, self._writer)

    def read(self, keys: Sequence[Key], done: Callable[[Items | Unavailable], None], attempt: int = 1) -> None:
        def answered(found: Mapping[Key, Item] | None) -> None:
            self._process.post(lambda: follow(found))

        def follow(found: Mapping[Key, Item] | None) -> None:
            if found is not None:
                done(Items(found))
            elif attempt >= READ_ATTEMPTS_MAX:
                done(Unavailable("store, a read"))
            else:
                self._process.after(PAUSE_FIRST_MS, lambda: self.read(keys, done, attempt + 1))

        self._store.get(keys, answered)

    def read_range(self, wanted: RangeRead, done: Callable[[Page | Unavailable], None], attempt: int = 1) -> None:
        def answered(page: Page | None) -> None:
            self._process.post(lambda: follow(page))

        def follow(page: Page | None) -> None:
            if page is not None:
                done(page)
            elif attempt >= READ_ATTEMPTS_MAX:
                done(Unavailable("store, a query"))
            else:
                self._process.after(PAUSE_FIRST_MS, lambda: self.read_range(wanted, done, attempt + 1))

        self._store.query(wanted, answered)
