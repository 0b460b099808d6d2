"""The end of limits and rates of keys: a key has a limit for each of its values, and most values never come again (DESIGN 6).

Whoever may make the item of such a limit, by an admission or by joining its queue, leaves a timer row in the limit's home with it. When
that is due the home removes what is idle, and comes back later to what is not; whether anybody waits where a mark says so it
looks as well, so that one that was left behind does not keep the item. A limit that was removed and one that was never used are
the same: no item. So whoever comes next makes it anew, and nothing is lost of a rate either, because it goes when all its spans have passed.

What a late repeat of an offer could leave behind is an item for nobody, which says nothing; it goes when its key comes again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tidegate_core.rows import keys
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.limits.limit_queue_entry import _row
from tidegate_core.writes.limit_permits import remove_idle, take_out
from tidegate_core.writes.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class RemoveIdle:
    """Removes the limit of a timer row if nobody uses it.

    Attributes:
        row: Of kind `L`; it is due.
        look: Has the home look at the limit's queue.
    """

    row: TimerRow
    look: Callable[[str], None]
    name: str = "idle"

    @property
    def about(self) -> str:
        return self.row.ref

    @property
    def stale(self) -> tuple[Key, ...]:
        """Owners of other shards write it."""
        return (self._limit,)

    @property
    def _limit(self) -> Key:
        return keys.limit_of(self.row.ref)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        state = SharedLimit.of(unit.item(self._limit))
        expired = state.expired(now)
        if expired:
            unit.apply(take_out(self._limit, expired))
            unit.go_on()
            return
        if state.in_use or state.queued is not None:
            later = _row(self._limit, max((now, *state.counts)))
            unit.set_row(later, later.key(unit.shard))
            if state.queued is not None:
                unit.after(partial(self.look, self.row.ref))
        else:
            unit.apply(remove_idle(self._limit))
        unit.forget_row(self.row.key(unit.shard))
