"""Reads one shard for the audit, at a pace that leaves the store to the nodes.

Open rows are read before ended ones. So a row that moves forward during the read is seen at least once. A second read
resolves rows that move back, such as a parked run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tidegate_core.explain.audit.shard_snapshot import ShardFacts, Window
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerPlace, LedgerRow, RunEnd
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import Definition, PastGeneration, ScheduleState
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, StoredSuspensions
from tidegate_core.rows.store_operations import Item, Key, Page, RangeRead, Table
from tidegate_ports.store import Store, StoreUnavailable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PAGE: Final = 500
ATTEMPTS_MAX: Final = 5
"""Attempts for one page. A store that is silent for longer ends the audit, which may be run again."""

R = TypeVar("R", bound="DataclassInstance")


class Reader:
    """Reads ranges page by page.

    Args:
        store: The tables.
        now: Milliseconds since the epoch; rows whose time to live has passed count as deleted.
        pause: Callback before each attempt to read.
    """

    def __init__(self, store: Store, now: int, pause: Callable[[], None]) -> None:
        self._store = store
        self._now = now
        self._pause = pause

    def item(self, key: Key) -> Item | None:
        found: Item | None = self._patiently(lambda: self._store.get((key,)).get(key))
        return found

    def rows(self, shard: int, low: str, high: str, table: Table = "main") -> Iterator[Item]:
        """Yields the items of a range that have not expired. Raises StoreUnavailable."""
        after: str | None = None
        while True:
            wanted = RangeRead(keys.shard_pk(shard), low, high, limit=PAGE, after=after, table=table)
            page: Page = self._patiently(partial(self._store.query, wanted))
            yield from (item for item in page.items if self._lives(item))
            after = page.next_after
            if after is None:
                return

    def records(self, record_type: type[R], shard: int, prefix: str, table: Table = "main") -> list[R]:
        """Returns the records of all keys with this prefix."""
        return [from_item(record_type, item) for item in self.rows(shard, prefix, f"{prefix}{keys.LAST}", table)]

    def _lives(self, item: Item) -> bool:
        expires_at = item.get("expires_at")
        return not isinstance(expires_at, int) or expires_at > self._now // 1_000

    def _patiently(self, read: Callable[[], Any]) -> Any:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            self._pause()
            try:
                return read()
            except StoreUnavailable:
                if attempt == ATTEMPTS_MAX:
                    raise
        raise AssertionError("unreachable")


def read_shard(reader: Reader, shard: int, window: Window, namespace: str | None) -> ShardFacts:
    """Returns the rows of a shard's schedules, jobs and runs that concern a window. Raises StoreUnavailable."""
    of = "" if namespace is None else f"{namespace}/"
    states = reader.records(ScheduleState, shard, f"{keys.STATE_PREFIX}{of}")
    generations = {(state.namespace, state.name): state.generation for state in states}
    past = reader.records(PastGeneration, shard, f"{keys.PAST_GENERATION_PREFIX}{of}", "history")
    definitions = reader.records(Definition, shard, f"{keys.DEFINITION_PREFIX}{of}")
    jobs = reader.records(Job, shard, keys.JOB_PREFIX)
    runs = reader.records(Run, shard, keys.RUN_PREFIX)
    places = reader.records(LedgerPlace, shard, keys.LEDGER_PLACE_PREFIX, "history")
    ended = reader.records(Run, shard, keys.ENDED_RUN_PREFIX, "history")
    ends = reader.records(RunEnd, shard, keys.RUN_END_PREFIX, "history")
    refs = {keys.schedule_ref(state.namespace, state.name) for state in states}
    refs |= {ref for place in places if (ref := place.entry.split("#")[1]).startswith(of)}
    return ShardFacts(
        shard=shard,
        namespace=namespace,
        states=states,
        specs={(keys.schedule_ref(each.namespace, each.name), each.version): each.spec for each in definitions},
        # A generation that ended after the states were read is still the current one of its state.
        past=[each for each in past if each.generation < generations.get((each.namespace, each.name), 0)],
        jobs=jobs,
        runs=runs,
        places=places,
        ended=ended,
        ends=ends,
        ledger=[row for ref in sorted(refs) for row in _ledger(reader, shard, ref, window)],
        controls=_controls(reader),
    )


def _ledger(reader: Reader, shard: int, ref: str, window: Window) -> list[LedgerRow]:
    """Reads from the window's begin to the end of the ledger: a later entry may stand for instants in the window."""
    low, high = f"{keys.LEDGER_PREFIX}{ref}#{keys.instant_text(window.begin)}", f"{keys.LEDGER_PREFIX}{ref}#{keys.LAST}"
    return [from_item(LedgerRow, item) for item in reader.rows(shard, low, high, "history")]


def _controls(reader: Reader) -> Any:
    """Reads the suspensions last, so that all suspensions before the window's end are included."""
    item = reader.item(keys.SUSPENSIONS_KEY)
    return NO_SUSPENSIONS if item is None else from_item(StoredSuspensions, item).controls
