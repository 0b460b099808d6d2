"""The shard writer: a shard's transactions, one at a time, with several decisions in each.

One at a time, because every transaction checks the lease item, and DynamoDB cancels one of two transactions on the
same item. Several decisions in each, because a store answer takes milliseconds and a decision microseconds.

If a decision raises, or its own transaction is invalid for the store, it is dropped and reported. So a faulty
schedule, run or request never stops the work queued after it. It promises no effect of queued work: a closed writer
leaves it to the successor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tidegate_core.engine.actor_context import (
    RETRY_FIRST_MS,
    RETRY_LAST_MS,
    ActorContext,
    Fenced,
    InvalidRead,
    InvalidWrite,
)
from tidegate_core.engine.decision import Decision, Deferred, Procedure, Work
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.rows.effects import Committed, Items, Read, ReadRange, Refused
from tidegate_core.rows.keys import lease, shard_pk
from tidegate_core.rows.scope_suspension import ScopeSuspensions
from tidegate_core.rows.store_operations import Action, Check, Item, Key, Page, RangeRead, Transaction
from tidegate_core.writes.conditions import holds_lease
from tidegate_core.writes.fencing import adopt_suspensions, finish_suspensions
from tidegate_core.writes.read_cache import View
from tidegate_core.writes.unit_of_work import NotAtHand, UnitOfWork

GROUP_MAX = 16
"""Decisions in one transaction: with about 5 actions each they stay below DynamoDB's 100."""
RANGE_ITEMS_MAX = 500_000
"""Items of one range; above it memory is the limit, not the store (100,000 evidence chunks, as many open jobs)."""
REFUSED_KEPT = 64
"""Refused transactions of which a late copy may still arrive.

With more refusals in a minute, the effect of an earlier copy is found only by the next owner.
"""
READS_PER_DECISION_MAX = 1_000
"""Reads that one decision may request one after the other. A few are usual; the cache holds 64 ranges."""


class RangeTooLarge(Exception):
    """A range holds more items than tidegate ever stores in one. A decision from a part of it would be wrong."""


class ReadsWithoutEnd(Exception):
    """A decision needs more at once than the cache holds: each further read evicts an earlier one."""


class WriterClosed(Exception):
    """The shard writer takes no more work, so a long procedure leaves the rest to the successor."""


W = TypeVar("W", bound=Work)


def _nothing() -> Operation[None]:
    yield from ()


@dataclass(frozen=True, slots=True)
class _Mark(Procedure):
    """A procedure that signals that the queue has reached it. It requests nothing, so it cannot fail."""

    passed: Signal
    name: str = "mark"

    @property
    def about(self) -> str:
        return self.passed.name

    def run(self, writer: ShardWriter) -> Operation[None]:
        writer.host.operations.raise_(self.passed)
        yield from ()


class ShardWriter:
    """The queue of a shard's work and its single worker.

    Args:
        host: Context of the partition actor.
        shard: Shard of this writer.
        epoch: Epoch under which the shard was acquired.
        controls: Version of the scope suspensions in the lease.
        observe: Called with every written item (None = deleted) after a commit. Everything in memory derives from
            these rows.
        settled: Called after each transaction, also after a decision without writes.
        failed: Called with dropped work and its error.
        before: Operation that must be complete before each decision.

    Attributes:
        ended_through: Version of the scope suspensions that this shard has carried out completely.
    """

    def __init__(
        self,
        host: ActorContext,
        shard: int,
        epoch: int,
        controls: int,
        observe: Callable[[Key, Item | None], None],
        settled: Callable[[], None],
        failed: Callable[[Work, Exception], None],
        before: Callable[[], Operation[None]] = _nothing,
    ) -> None:
        self.host = host
        self.shard = shard
        self.view = View(shard)
        self._epoch = epoch
        self.controls = ScopeSuspensions(version=controls)
        self._carrying = controls
        self.ended_through = controls
        self._observe = observe
        self._settled = settled
        self._failed = failed
        self._before = before
        self._queue: deque[Work] = deque()
        self._urgent: deque[Procedure] = deque()
        self._aside: list[Procedure] = []
        self._aside_of: set[str] = set()
        self._back: list[Procedure] = []
        self._work = Signal(f"shard writer {shard}")
        self._alone = 0
        self._busy = False
        self._closed = False
        self._refused_lately: dict[str, tuple[Key, ...]] = {}

    def add(self, work: Work) -> None:
        """Queues work in order of arrival. A closed writer leaves it to the successor."""
        if not self._closed:
            self._queue.append(work)
            self.host.operations.raise_(self._work)

    def add_first(self, *works: Work) -> None:
        """Queues replacements of dropped work before all queued work, in this order."""
        if not self._closed:
            self._queue.extendleft(reversed(works))
            self.host.operations.raise_(self._work)

    def add_urgent(self, procedure: Procedure) -> None:
        """Queues a procedure before all other work: a suspension must not wait for the work that it stops.

        It has its own queue, because a transaction under construction relies on the order of the main queue.
        """
        if not self._closed:
            self._urgent.append(procedure)
            self.host.operations.raise_(self._work)

    def queued(self, kind: type[W]) -> Iterator[W]:
        """Yields the queued work of a type, in order."""
        return (work for work in self._queue if isinstance(work, kind))

    def wait_for_queued(self) -> Operation[None]:
        """Waits until all work that is queued now is done, dropped or deferred.

        For operations that run concurrently with the writer. If the writer is closed, the wait never ends.
        """
        passed = Signal(f"shard writer {self.shard} reached a mark")
        self.add(_Mark(passed))
        yield passed

    @property
    def standing_aside(self) -> int:
        """Number of deferred procedures."""
        return len(self._aside)

    @property
    def is_idle(self) -> bool:
        return not self._busy and not self._queue and not self._urgent and not self._back

    def close(self) -> None:
        """Takes no more work after the present one (drain)."""
        self._closed = True
        self._queue.clear()
        self._urgent.clear()
        self._take_aside()
        self._back.clear()

    def serve(self) -> Operation[None]:
        """Runs the worker: an operation that never ends."""
        while True:
            if self._back:
                back, self._back = self._back, []
                self.add_first(*back)
            if not self._queue and not self._urgent:
                yield self._work
                continue
            self._busy = True
            head = None if self._urgent else self._queue[0]
            if head is None:
                yield from self._run(self._urgent.popleft())
            elif isinstance(head, Procedure):
                self._queue.popleft()
                yield from self._run(head)
            else:
                yield from self._decide_together()
            self._busy = False

    def _run(self, procedure: Procedure) -> Operation[None]:
        if procedure.ordering_key in self._aside_of:
            self._aside.append(procedure)
            return
        try:
            yield from procedure.run(self)
        except Fenced:
            raise
        except WriterClosed:
            return
        except Deferred as why:
            self._defer(procedure, why)
        except Exception as error:  # noqa: BLE001 - any failure: the work queued after it goes on
            yield from self._drop(procedure, error)

    def _defer(self, procedure: Procedure, why: Deferred) -> None:
        if self._closed:
            return
        self._aside.append(procedure)
        if procedure.ordering_key is not None:
            self._aside_of.add(procedure.ordering_key)
        if len(self._aside) == 1:
            self.host.operations.start(self._take_back(why))

    def _take_back(self, why: Deferred) -> Operation[None]:
        """Queues the deferred procedures again, before all queued work, because they were there first.

        They wait for the end of a transaction under construction, which relies on the order of the queue.
        """
        yield from why.until_known()
        self._back = self._take_aside()
        self.host.operations.raise_(self._work)

    def _take_aside(self) -> list[Procedure]:
        aside, self._aside = self._aside, []
        self._aside_of.clear()
        return aside

    def _drop(self, work: Work, error: Exception) -> Operation[None]:
        """Reports work that failed, unless the failure came from a lost ownership.

        Reads from before and after another owner's writes do not fit together.

        Raises:
            Fenced: Another owner has acquired the shard.
        """
        key = lease(self.shard)
        found = yield from self.host.read_for_good(Read((key,)))
        assert isinstance(found, Items)
        stored = found.found.get(key)
        if stored is not None and stored["epoch"] != self._epoch:
            raise Fenced(key)
        self._failed(work, error)

    def _unit(self) -> UnitOfWork:
        return UnitOfWork(self.view, self.shard, self._epoch, self.controls, self.host.writes, self.ended_through)

    # -- for procedures -----------------------------------------------------------------------------------------------

    def decide_alone(self, decision: Decision) -> Operation[None]:
        """Runs one decision in its own transaction until it is committed or has nothing to write."""
        pause = RETRY_FIRST_MS
        while True:
            self.view.forget(decision.stale)
            unit = self._unit()
            yield from self._decide_with_reads(unit, decision)
            unit.keep()
            if (yield from self._commit(unit, decision.name)):
                if not unit.goes_on:
                    return
                continue
            yield from self.host.sleep(pause)
            pause = min(2 * pause, RETRY_LAST_MS)

    def adopt_suspensions(self, controls: ScopeSuspensions) -> Operation[None]:
        """Works under these scope suspensions from now on.

        The lease carries their version before any decision uses them.

        Raises:
            Fenced: Another owner has acquired the shard.
        """
        seen, self._carrying = self.controls.version, controls.version
        if controls.version != seen:
            yield from self._move_lease(
                adopt_suspensions(self.shard, self._epoch, seen, controls.version, self.host.token())
            )
        self.controls = controls

    def finish_suspensions(self) -> Operation[None]:
        """Records in the lease that the shard has carried out the scope suspensions of the lease's version.

        Raises Fenced.
        """
        version = self.controls.version
        yield from self._move_lease(finish_suspensions(self.shard, self._epoch, version, self.host.token()))

    def _move_lease(self, transaction: Transaction) -> Operation[None]:
        if isinstance((yield from self.host.commit_until_settled(transaction)), Refused):
            raise Fenced(lease(self.shard))

    def commit_alone(self, name: str, actions: Sequence[Action], token: str, witness: Key) -> Operation[bool]:
        """Sends actions that depend on no revision, with the lease check. Returns whether they were applied.

        Raises:
            Fenced: Another owner has acquired the shard.
        """
        check = Check(lease(self.shard), holds_lease(self._epoch, self.controls.version))
        verdict = yield from self.host.commit_until_settled(Transaction(name, (check, *actions), token, witness))
        if isinstance(verdict, Refused):
            self._check_fence(verdict)
        return isinstance(verdict, Committed)

    def yield_turn(self) -> Operation[None]:
        """Runs one transaction of the decisions at the head of the queue; for procedures that need many transactions.

        Raises:
            WriterClosed: The successor must continue the procedure.
        """
        if self._closed:
            raise WriterClosed
        if self._queue and not isinstance(self._queue[0], Procedure):
            yield from self._decide_together()

    def fetch(self, need: NotAtHand) -> Operation[None]:
        """Reads the items that a decision lacked into the cache."""
        if need.keys:
            found = yield from self.host.read_for_good(Read(need.keys))
            assert isinstance(found, Items)
            self.view.learn(need.keys, found.found)
            self.view.forget_elsewhere()  # Those rows are older than this read.
            yield from self._take_in_late(found.found.values())
        for low, high in need.ranges:
            items = yield from self.read_range(low, high)
            self.view.learn_range(low, high, items)
        for rows in need.elsewhere:
            self.view.learn_elsewhere(rows, (yield from self._first_of(rows)))

    def _first_of(self, rows: RangeRead) -> Operation[list[Item]]:
        """Reads as many rows as the decision requested: a page may hold fewer although more exist."""
        found: list[Item] = []
        while True:
            page = yield from self.host.read_for_good(ReadRange(rows))
            assert isinstance(page, Page)
            found.extend(page.items)
            if len(page.items) >= rows.limit or page.next_after is None:
                return found
            rows = replace(rows, limit=rows.limit - len(page.items), after=page.next_after)

    def read_range(self, low: str, high: str, pk: str | None = None) -> Operation[list[Item]]:
        """Reads a whole range, page by page."""
        items: list[Item] = []
        after: str | None = None
        while True:
            wanted = RangeRead(pk or shard_pk(self.shard), low, high, after=after)
            page = yield from self.host.read_for_good(ReadRange(wanted))
            assert isinstance(page, Page)
            items.extend(page.items)
            after = page.next_after
            if after is None:
                return items
            if len(items) > RANGE_ITEMS_MAX:
                raise RangeTooLarge(f"{wanted.pk} {low}..{high} holds more than {RANGE_ITEMS_MAX} items")

    # -- the group ----------------------------------------------------------------------------------------------------

    def _decide_together(self) -> Operation[None]:
        most = 1 if self._alone else GROUP_MAX
        self._alone = max(0, self._alone - 1)
        group = list(self._queue)[:most]
        yield from self._read_ahead(group)
        unit = self._unit()
        taken: list[Decision] = []
        # Only these: the items that later work calls stale were not dropped from the cache before the read.
        for decision in group:
            if isinstance(decision, Procedure) or not self._queue:
                break
            try:
                yield from self._decide_with_reads(unit, decision)
                unit.keep()
            except Exception as error:  # noqa: BLE001 - too large, or a bug: the work after it goes on
                unit.drop()
                if not taken and self._queue:
                    self._queue.popleft()
                    yield from self._drop(decision, error)
                break  # It runs again alone, because the fault may lie in the combination.
            taken.append(decision)
            if not self._queue:
                break  # Closed during a read: the decisions so far are sent, the rest is the successor's.
            self._queue.popleft()
            if unit.goes_on:
                break
        if not taken:
            return
        name = taken[0].name if len({decision.name for decision in taken}) == 1 else "mixed"
        try:
            committed = yield from self._commit(unit, name)
        except InvalidWrite as error:
            if len(taken) == 1:
                yield from self._drop(taken[0], error)
                return
            committed = False
        if self._closed:
            return
        if not committed:
            self._queue.extendleft(reversed(taken))
            self._alone = len(taken)  # One by one, so that the refused decision delays no other.
        elif unit.goes_on:
            self._queue.appendleft(taken[-1])

    def _read_ahead(self, group: list[Work]) -> Operation[None]:
        """Reads at once what the decisions of the transaction request first. A single decision reads for itself."""
        if len(group) == 1 and not isinstance(group[0], Procedure):
            self.view.forget(group[0].stale)
            return
        wanted: dict[Key, None] = {}
        for work in group:
            if isinstance(work, Procedure):
                break
            self.view.forget(work.stale)
            scratch = self._unit()
            try:
                work.decide(scratch, self.host.now)
            except NotAtHand as need:
                wanted.update(dict.fromkeys(need.keys))
            except Exception:  # noqa: BLE001, S112 - raised again when the decision runs
                continue
        if not wanted:
            return
        try:
            yield from self.fetch(NotAtHand(keys=tuple(wanted)))
        except InvalidRead:
            return  # The decision that causes the error meets it again, alone.

    def _decide_with_reads(self, unit: UnitOfWork, decision: Decision) -> Operation[None]:
        self.view.forget_elsewhere()
        for _ in range(READS_PER_DECISION_MAX):
            yield from self._before()
            try:
                decision.decide(unit, self.host.now)
                return
            except NotAtHand as need:
                unit.drop()
                yield from self.fetch(need)
        raise ReadsWithoutEnd(f"{decision.name} of {decision.about}")

    def _commit(self, unit: UnitOfWork, name: str) -> Operation[bool]:
        """Returns whether the writes are in the store; False when they certainly are not and never will be.

        Raises:
            Fenced: Another owner has acquired the shard.
            InvalidWrite: The store can never accept the transaction.
        """
        if unit.is_empty:
            self._carry_out(unit)
            return True
        transaction = unit.transaction(name, self.host.token())
        verdict = yield from self.host.commit_until_settled(transaction, unit.sent_until)
        if isinstance(verdict, Refused):
            self._check_fence(verdict)
        applied = isinstance(verdict, Committed)
        if isinstance(verdict, Refused) and verdict.doubtful:
            applied = yield from self._void(unit, transaction.token)
        if applied:
            self._applied(unit, transaction)
        else:
            assert isinstance(verdict, Refused)
            self._refused(unit, transaction, verdict)
            yield from self._take_in_late(item for _, item in verdict.failed if item is not None)
        return applied

    def _refused(self, unit: UnitOfWork, transaction: Transaction, verdict: Refused) -> None:
        self.view.forget(action.key for action in transaction.actions)
        if not verdict.doubtful:
            # Caches the items that caused the refusal. Otherwise a used-up single-use key would be refused forever.
            self.view.learn(
                [key for key, _ in verdict.failed],
                {key: item for key, item in verdict.failed if item is not None},
            )
        self._refused_lately[transaction.token] = tuple(unit.writes)
        if len(self._refused_lately) > REFUSED_KEPT:
            del self._refused_lately[next(iter(self._refused_lately))]
        failed = [key.sk for key, _ in verdict.failed]
        self.host.note("transaction_refused", name=transaction.name, shard=self.shard, keys=list(failed))

    def _take_in_late(self, items: Iterable[Item]) -> Operation[None]:
        """Observes the effect of a refused transaction whose late copy was applied after all.

        A copy is applied when its conditions hold again on arrival, for example when a full limit has a free permit.
        Its rows are read and observed as they are now. Otherwise a suspension would not end a run that this owner
        does not know.
        """
        if not self._refused_lately:
            return
        for token in sorted({str(item.get("w")) for item in items} & self._refused_lately.keys()):
            keys = self._refused_lately.pop(token)
            found = yield from self.host.read_for_good(Read(keys))
            assert isinstance(found, Items)
            self.view.learn(keys, found.found)
            for key in keys:
                self._observe(key, found.found.get(key))
            self._settled()

    def _void(self, unit: UnitOfWork, token: str) -> Operation[bool]:
        """Makes sure that a send without an answer is not applied later, when the condition that refused it holds again.

        Returns whether it was applied in between.

        Raises:
            Fenced: Another owner has acquired the shard.
        """
        void = unit.void(self.host.token())
        if void is None:
            return False  # It only creates items under single-use keys; if it is applied late, its replay finds it.
        verdict = yield from self.host.commit_until_settled(void)
        if not isinstance(verdict, Refused):
            return False
        self._check_fence(verdict)
        yield from self._take_in_late(item for _, item in verdict.failed if item is not None)
        # An item that existed, and that only this owner removes, is gone: so the transaction was applied.
        return any(
            unit.removes(key) if item is None else item.get("w") == token
            for key, item in verdict.failed
            if key != lease(self.shard)
        )

    def _check_fence(self, verdict: Refused) -> None:
        """Raises Fenced when the lease shows another owner.

        The lease may carry this epoch and the version that this writer adopted. Then it refuses only a transaction
        that was decided from an older version during a drain. Versions only rise, so that transaction can never be
        applied.

        Raises:
            Fenced: Another owner has acquired the shard.
        """
        key, failed = lease(self.shard), dict(verdict.failed)
        if key not in failed:
            return
        stored = failed[key]
        if stored is None or (stored["epoch"], stored["controls"]) != (self._epoch, self._carrying):
            raise Fenced(key)

    def _applied(self, unit: UnitOfWork, transaction: Transaction) -> None:
        self.view.applied(unit.writes, transaction.token, unit.behind())
        self.view.forget(action.key for action in transaction.actions if action.key not in unit.writes)
        for key, item in unit.writes.items():
            self._observe(key, item)
        self._carry_out(unit)

    def _carry_out(self, unit: UnitOfWork) -> None:
        for effect in unit.effects:
            if callable(effect):
                effect()
            else:
                self.host.emit(effect)
        self._settled()
