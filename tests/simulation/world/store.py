"""The store behind an unreliable network: the in-memory store evaluates what was sent, this decides whether and when it arrives."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tests.simulation.faults.random_draws import lies_in
from tests.simulation.faults.store_faults import StoreFaults
from tests.simulation.runner.trace import Trace
from tests.simulation.world.fault_waits import FaultWaits
from tests.simulation.world.stalls import Stalls
from tests.simulation.world.timeline import START, Timeline
from tidegate_core.rows.store_operations import (
    Applied,
    Cancelled,
    Delete,
    Item,
    Key,
    Lost,
    Page,
    Put,
    RangeRead,
    RawOutcome,
    RefusalCode,
    Throttled,
    Transaction,
)
from tidegate_memory.store import MemoryStore

LATE_MS = (1_000, 40_000)
DUPLICATE_MS = (50, 60_000)
BLACK_OUT_LATE_MS = (500, 15_000)
TORN = 0.5
"""Share of the queries with several items that are read in two pieces, in worlds with scattered reads."""
AIMED = 0.6
"""Share of the transactions at which a world aims that meet a fault, each of these kinds as often as the others."""
HUNTED = 0.9
"""Likewise of those that it hunts."""
AIMED_KINDS = ("lost_request", "throttled", "clash", "late", "lost_answer", "duplicate")
BLACK_OUT_LATE = 0.25
"""Share of the calls of a brown-out that take effect after it."""


class SimStore:
    """One attempt per call; the answer comes through a callback, None meaning `unavailable` for reads and batches.

    Attributes:
        memory: The store itself, for monitors and checks.
        late_until: Nothing that was delayed arrives after this instant.
        on_taken_effect: Called when a transaction has taken effect, long before its sender knows.
        rows_put: When a row of a message came by a batch, and from whose, by partition key and the message's id.
        waits: When faults kept the fate of a transaction from whoever waits for it.
        first_sent: When each transaction was sent for the first time, by its token.
    """

    def __init__(self, timeline: Timeline, trace: Trace, faults: StoreFaults) -> None:
        self.memory = MemoryStore(remembers_tokens=faults.remembers_tokens, checks_witness=False)
        self._timeline = timeline
        self._trace = trace
        self._faults = faults
        self._busy: dict[Key, int] = {}
        self._changed: Counter[str] = Counter()
        self._stalls = Stalls(timeline, trace, faults)
        self._healed = False
        self.late_until = timeline.now
        self.on_taken_effect: Callable[[Transaction], None] | None = None
        self.rows_put: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        self.waits = FaultWaits()
        self.first_sent: dict[str, int] = {}

    def heal(self) -> None:
        """No faults from now on; what was delayed still arrives."""
        self._healed = self._stalls.healed = True

    @property
    def now(self) -> int:
        return self._timeline.now

    # -- transactions -------------------------------------------------------------------------------------------------

    def transact(self, transaction: Transaction, answer: Callable[[RawOutcome], None]) -> None:
        faults, after = self._faults, self._timeline.after
        name = transaction.name
        aimed = self._aimed_at(name)
        self.waits.sent(transaction, self.now)
        self.first_sent.setdefault(transaction.token, self.now)
        if self._is_down() or self._is_out(name):
            self._trace.bit("brown_out", name)
            if self._timeline.happens(BLACK_OUT_LATE):
                self._later(BLACK_OUT_LATE_MS, lambda: self._apply_late(transaction, "brown_out_late"))
            after(faults.timeout_ms, lambda: answer(Lost()))
        elif self._stalls.hit_transaction(name):
            after(faults.timeout_ms, lambda: answer(Lost()))
        elif aimed == "lost_request" or self._meets(faults.lost_request):
            self._trace.bit("lost_request", name)
            after(faults.timeout_ms, lambda: answer(Lost()))
        elif aimed == "throttled" or self._meets(faults.throttled):
            self._trace.bit("throttled", name)
            after(self._latency(), lambda: answer(Throttled()))
        elif aimed == "clash" or self._meets(faults.clash):
            self._trace.bit("conflict", name)
            clashing = RefusalCode("TransactionConflict"), *(RefusalCode("None") for _ in transaction.actions[1:])
            after(self._latency(), lambda: answer(Cancelled(tuple(clashing))))
        elif aimed == "late" or self._meets(faults.late):
            self._later(LATE_MS, lambda: self._apply_late(transaction, "late"))
            after(faults.timeout_ms, lambda: answer(Lost()))
        elif aimed == "lost_answer" or self._meets(faults.lost_answer):
            after(self._latency(), lambda: self._apply_late(transaction, "lost_answer"))
            after(faults.timeout_ms, lambda: answer(Lost()))
        else:
            self.waits.arrives(transaction)
            if aimed == "duplicate" or self._meets(faults.duplicate):
                self._later(DUPLICATE_MS, lambda: self._apply_late(transaction, "duplicate"))
            after(self._latency(), lambda: self._arrive(transaction, answer))

    def _arrive(self, transaction: Transaction, answer: Callable[[RawOutcome], None]) -> None:
        outcome = self._apply(transaction)
        self._timeline.after(self._latency(), lambda: answer(outcome))

    def _apply_late(self, transaction: Transaction, kind: str) -> None:
        outcome = self._apply(transaction)
        self._trace.bit(f"{kind}_{'applied' if isinstance(outcome, Applied) else 'refused'}", transaction.name)

    def _apply(self, transaction: Transaction) -> RawOutcome:
        now = self._timeline.now
        if self._faults.conflicts and not self._healed:
            clashing = [self._busy.get(action.key, 0) > now for action in transaction.actions]
            if any(clashing):
                self._trace.bit("conflict", transaction.name)
                return Cancelled(tuple(RefusalCode("TransactionConflict" if each else "None") for each in clashing))
            until = now + 1 + int(self._timeline.around(3))
            for action in transaction.actions:
                self._busy[action.key] = until
        outcome = self.memory.transact(transaction)
        if self._faults.scattered_ms:
            for action in transaction.actions:
                self._changed[action.key.pk] += 1
        if self.on_taken_effect is not None and isinstance(outcome, Applied):
            self.on_taken_effect(transaction)
        where = transaction.actions[-1].key
        self._trace.note("store", transaction.name, type(outcome).__name__, transaction.token, where.pk, where.sk)
        return outcome

    # -- batches ------------------------------------------------------------------------------------------------------

    def write(
        self, actions: Sequence[Put | Delete], answer: Callable[[Sequence[Put | Delete] | None], None], writer: str = ""
    ) -> None:
        """Answers with what was not processed, or None when nothing is known."""
        faults, after = self._faults, self._timeline.after
        if self._is_down():
            self._trace.bit("brown_out", "batch")
            after(faults.timeout_ms, lambda: answer(None))
            return
        if self._stalls.hit_batch(actions):
            after(faults.timeout_ms, lambda: answer(None))
            return
        if self._meets(faults.lost_request):
            self._trace.bit("lost_request", "batch")
            after(faults.timeout_ms, lambda: answer(None))
            return
        taken: list[Put | Delete] = []
        left: list[Put | Delete] = []
        for action in actions:
            (left if self._meets(faults.unprocessed) else taken).append(action)
        if left:
            self._trace.bit("unprocessed", "batch")
        # Acknowledged once all of it is there, not before.
        placed = max((self._place(action, writer) for action in taken), default=0.0)
        if self._meets(faults.lost_answer):
            self._trace.bit("lost_answer_applied", "batch")
            after(faults.timeout_ms, lambda: answer(None))
        else:
            after(int(placed) + 1 + self._latency(), lambda: answer(left))

    def _place(self, action: Put | Delete, writer: str) -> float:
        """Plans one item of a batch: visible at a moment of its own, maybe again much later. Returns the delay."""
        delay = self._latency() + self._timeline.between(0, self._scatter_longest())
        if self._meets(self._faults.late):
            self._trace.bit("late_applied", "batch")
            self._later(LATE_MS, lambda: self._put(action, writer))
        if self._meets(self._faults.duplicate):
            self._trace.bit("duplicate_applied", "batch")
            self._later(DUPLICATE_MS, lambda: self._put(action, writer))
        self._timeline.after(delay, lambda: self._put(action, writer))
        return delay

    def _put(self, action: Put | Delete, writer: str) -> None:
        self.memory.write((action,))
        if isinstance(action, Put) and action.key.sk.startswith("D#"):
            self.rows_put[action.key.pk, action.key.sk.split("#")[2]].append((self._timeline.now, writer))
        self._changed[action.key.pk] += 1
        self._trace.note("store", type(action).__name__.lower(), action.key.pk, action.key.sk)

    # -- reads --------------------------------------------------------------------------------------------------------

    def get(self, keys: Sequence[Key], answer: Callable[[Mapping[Key, Item] | None], None]) -> None:
        if self._fails_read("get"):
            self._timeline.after(self._faults.timeout_ms, lambda: answer(None))
            return
        found: dict[Key, Item] = {}
        # A batch get is no snapshot: its halves may be read some time apart.
        later = list(keys)[len(keys) // 2 :] if self._scatter_longest() and len(keys) > 1 else []
        first = list(keys)[: len(keys) - len(later)]

        def read_first() -> None:
            found.update(self.memory.get(first))
            if later:
                before = self._changes_of(first)
                self._timeline.after(self._timeline.between(0, self._scatter_longest()), lambda: read_later(before))
            else:
                self._timeline.after(self._latency(), lambda: answer(found))

        def read_later(before: int) -> None:
            if self._changes_of(first) != before:
                self._trace.bit("torn", "get")
            found.update(self.memory.get(later))
            self._timeline.after(self._latency(), lambda: answer(found))

        self._timeline.after(self._latency(), read_first)

    def query(self, wanted: RangeRead, answer: Callable[[Page | None], None]) -> None:
        if self._fails_read("query"):
            self._timeline.after(self._faults.timeout_ms, lambda: answer(None))
            return
        back = self._latency()
        if self._stalls.hit_load(wanted):
            slow = self._stalls.slow_ms()
            if slow is None:
                self._timeline.after(self._faults.timeout_ms, lambda: answer(None))
                return
            back = slow
        page = wanted if wanted.limit <= self._faults.page else replace(wanted, limit=self._faults.page)

        def read() -> None:
            result = self.memory.query(page)
            if len(result.items) > 1 and self._scatter_longest() and self._timeline.happens(TORN):
                before = self._changed[page.pk]
                wait = self._timeline.between(0, self._scatter_longest())
                self._timeline.after(wait, lambda: read_rest(result, before))
            else:
                self._timeline.after(back, lambda: answer(result))

        def read_rest(first: Page, before: int) -> None:
            """A query is read item by item: what follows its first half may be younger, also of one and the same transaction."""
            if self._changed[page.pk] != before:
                self._trace.bit("torn", "query")
            half = first.items[: len(first.items) // 2]
            rest = self.memory.query(replace(page, after=str(half[-1]["sk"]), limit=page.limit - len(half)))
            self._timeline.after(back, lambda: answer(Page((*half, *rest.items), rest.next_after)))

        self._timeline.after(self._latency(), read)

    def _changes_of(self, keys: Sequence[Key]) -> int:
        """Grows whenever something beside one of them is written."""
        return sum(self._changed[pk] for pk in {key.pk for key in keys})

    # -- chance -------------------------------------------------------------------------------------------------------

    def _fails_read(self, name: str) -> bool:
        if self._is_down():
            self._trace.bit("brown_out", name)
            return True
        if self._meets(self._faults.unreadable):
            self._trace.bit("unreadable", name)
            return True
        return False

    def _later(self, span_ms: tuple[int, int], action: Callable[[], None]) -> None:
        delay = self._timeline.between(*span_ms)
        self.late_until = max(self.late_until, self._timeline.now + int(delay) + 1)
        self._timeline.after(delay, action)

    def _is_down(self) -> bool:
        return not self._healed and lies_in(self._faults.brown_outs, self._timeline.now - START)

    def _aimed_at(self, name: str) -> str | None:
        """Returns the fault that such a transaction meets, if the world aims at it and hits."""
        hits = name in self._faults.aimed and self._meets(HUNTED if name in self._faults.hunted else AIMED)
        return self._timeline.chance.choice(AIMED_KINDS) if hits else None

    def _is_out(self, name: str) -> bool:
        """Whether such a transaction gets no answer, whatever becomes of all other calls."""
        faults, elapsed = self._faults, self._timeline.now - START
        outs = (*faults.write_outs, *faults.aimed_outs) if name in faults.aimed else faults.write_outs
        return not self._healed and lies_in(outs, elapsed)

    def _meets(self, rate: float) -> bool:
        return not self._healed and self._timeline.happens(rate)

    def _latency(self) -> float:
        return self._timeline.around(self._faults.latency_ms / 2)

    def _scatter_longest(self) -> int:
        return 0 if self._healed else self._faults.scattered_ms
