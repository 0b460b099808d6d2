"""Recurring messages under a wide suspend: what may have been resumed by then is held back until that is known (SEMANTICS 10).

A resume counts from its append time, and a shard hears of it seconds later; what came due in between is to be sent. The delivery position
does not wait for it: others are sent meanwhile. So the first fire of a schedule that comes due in a span is written down, once
(`HR#`): from its slot on nothing of the schedule was sent. It has no fires then, and costs nothing, however long the span is. Whoever
hears of the end computes what came due behind it, sends that from where it belongs, and removes the row before the schedule goes on.
A successor that finds the row does all of that again: what it repeats has the same ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from tidegate_core.decisions.delivery_plane.outgoing import not_sent
from tidegate_core.decisions.delivery_plane.recurring import Fire
from tidegate_core.decisions.delivery_plane.slots import Place, Slotted, Stage
from tidegate_core.decisions.host import InvalidWrite
from tidegate_core.decisions.operations import Operation, Signal
from tidegate_core.effects import Items, Read, ReadRange
from tidegate_core.records.codec import from_item
from tidegate_core.records.messages import Message
from tidegate_core.records.recurring import HeldSeries, Recurring
from tidegate_core.store import keys
from tidegate_core.store.values import Key, Page, RangeRead, Transaction
from tidegate_core.transactions.controls import hold_series, let_go_series
from tidegate_core.transactions.delivery import Tally

if TYPE_CHECKING:
    from tidegate_core.decisions.delivery_plane.recurring_source import RecurringSource

HELD_TOGETHER: Final = 80
"""Schedules in one transaction, an action each; the store takes 100."""
FIRES_TOGETHER: Final = 100
"""Of one schedule that are sent before its row is moved on: a crash repeats so many at most."""
LOOK_MS: Final = 20
TRY_AGAIN_MS: Final = 60_000
MARK: Final = "held"
"""Version of the place at which schedules that are let go will go on: no checkpoint passes it before they do."""


@dataclass(slots=True)
class _Going:
    """A schedule that is let go.

    Attributes:
        rows: Of what came due behind the span's end, all that are sent now.
        further: Slot of the first one that is held back still.
    """

    held: HeldSeries
    rows: list[Slotted] = field(default_factory=list)
    further: int | None = None

    def keep(self, slot: int) -> None:
        """What has this slot, or a later one, is held back still."""
        self.further = slot if self.further is None else min(self.further, slot)

    @property
    def left(self) -> HeldSeries | None:
        return None if self.further is None else replace(self.held, slot=self.further)


class SeriesHolding:
    """One per shard."""

    def __init__(self, source: RecurringSource) -> None:
        self._source = source
        self._plane = source.plane
        self._held: dict[str, HeldSeries] = {}
        self._stored: dict[str, HeldSeries] = {}
        self._going: dict[str, _Going] = {}
        self._changed = Signal(f"held series {source.plane.shard}")

    def begin(self) -> Operation[None]:
        """Reads what a predecessor held back; who never used a wide control reads nothing."""
        plane, after = self._plane, ""
        while plane.holding.controls.version:
            wanted = RangeRead(keys.shard_pk(plane.shard), "HR#", f"HR#{keys.LAST}", after=after or None)
            page = yield from plane.host.read_for_good(ReadRange(wanted))
            assert isinstance(page, Page)
            self._stored.update((each.ref, each) for each in (from_item(HeldSeries, item) for item in page.items))
            if page.next_after is None:
                break
            after = page.next_after
        self._held = dict(self._stored)

    def keeps(self, ref: str, generation: int | None) -> bool:
        """Whether all that is to come of this generation of the schedule is held back."""
        held = self._held.get(ref)
        return held is not None and held.generation == generation

    def slot_of(self, ref: str, generation: int, otherwise: int) -> int:
        """Returns the slot from which on a generation of the schedule is held back."""
        held = self._held.get(ref)
        return held.slot if held is not None and held.generation == generation else otherwise

    def look(self) -> None:
        """The wide controls have changed, or something is held back that they may not cover any more."""
        self._plane.host.operations.raise_(self._changed)

    # -- in the way of a delivery -------------------------------------------------------------------------------------

    def takes(self, row: Slotted, message: Message) -> bool:
        """Whether a fire that is not to be sent now may have to be sent once the span's end is known: it is held back from this
        very step on, with all that follows on it, and the caller has that written down (`hold`).

        What was due before the span is too late in any case.
        """
        fire = row.fire
        since = self._plane.holding.controls.suspended_since(message.namespace)
        if fire is None or since is None or self._source.due(row, message) < since:
            return False
        generation = fire.interval.generation
        held = HeldSeries(namespace=fire.namespace, name=fire.name, generation=generation, slot=row.slot)
        before = self._held.get(fire.ref)
        if before is None or before.generation != generation or held.slot < before.slot:
            self._held[fire.ref] = held
            self._source.stand_still(fire.ref)
        elif fire.ref in self._going:
            self._going[fire.ref].keep(row.slot)  # It was being let go, and another suspend came first.
        return True

    def hold(self, rows: Sequence[Slotted]) -> Operation[None]:
        """Writes down since when their schedules are held back; then no checkpoint waits for them. Raises InvalidWrite."""
        if not rows:
            return
        refs = list(dict.fromkeys(row.occurrence.ref for row in rows if row.occurrence is not None))
        refs = [ref for ref in refs if self._stored.get(ref) != self._held.get(ref)]
        for first in range(0, len(refs), HELD_TOGETHER):
            stored: list[HeldSeries] = []
            yield from self._plane.holding.move(partial(self._hold, refs[first : first + HELD_TOGETHER], stored))
            self._stored.update((each.ref, each) for each in stored)
        for row in rows:
            self._plane.close(row, Stage.GONE)
        self.look()

    def _hold(
        self, refs: Sequence[str], stored: list[HeldSeries], shard: int, epoch: int, moves: int, *, token: str
    ) -> Transaction:
        """Says what is held back when its turn comes: another group may have held back something earlier, or later, since."""
        stored[:] = [self._held[ref] for ref in refs if ref in self._held]
        return hold_series(shard, epoch, moves, stored, token)

    # -- the end of a span --------------------------------------------------------------------------------------------

    def serve(self) -> Operation[None]:
        """Lets go what is not covered any more, group by group, for good."""
        host = self._plane.host
        while not self._plane.is_draining:
            free = [each for each in self._held.values() if not self._plane.holding.covered(each.namespace)]
            if not free:
                yield self._changed
                continue
            # What is open of others was taken before they were held back, and comes to its end, or is held back too.
            at_rest = (each for each in free if not self._source.open_rows(each.ref))
            try:
                is_under_way = yield from self._let_go(list(islice(at_rest, HELD_TOGETHER)))
            except InvalidWrite as error:
                host.failed("let_go", f"shard {self._plane.shard}", error)
                yield from host.sleep(TRY_AGAIN_MS)
            else:
                if not is_under_way:
                    yield from host.sleep(LOOK_MS)

    def _let_go(self, group: Sequence[HeldSeries]) -> Operation[bool]:
        """Sends what came due behind the end of the span; returns whether there was anything that could be let go now."""
        plane = self._plane
        far = yield from self._read_far([each for each in group if not self._source.is_near(each.ref)])
        mark = Slotted(plane.checkpoints.slot_for(plane.host.now), "", MARK, "", 0, Stage.WRITING)
        going = [
            self._sent_now(each, self._source.kept(each.ref) or far.get(each.ref), mark.slot)
            for each in group
            if self._may_go(each, far.get(each.ref), mark.slot)
        ]
        if not going:
            return False
        self._going = {each.held.ref: each for each in going}
        plane.slots.hold(mark)
        plane.host.operations.raise_(plane.changed)
        try:
            yield from self._until_sent(going)
            moved: list[_Going] = []
            yield from plane.holding.move(partial(self._move, moved))
        finally:
            plane.slots.let_go(mark)
            self._going = {}
        for each in moved:
            self._has_moved(each, (mark.slot, "", ""))
        return True

    def _may_go(self, held: HeldSeries, far: Recurring | None, through: int) -> bool:
        """Whether it is as it was before far records were read, and is not being brought near just now."""
        if self._held.get(held.ref) is not held or self._plane.holding.covered(held.namespace):
            return False
        is_summoned = far is not None and far.summons is not None and far.summons <= through
        return self._source.is_near(held.ref) or not is_summoned

    def _read_far(self, held: Sequence[HeldSeries]) -> Operation[Mapping[str, Recurring]]:
        """Returns the records that are not near; where there is none the schedule is gone, and nothing is to be sent."""
        if not held:
            return {}
        shard = self._plane.shard
        wanted: list[Key] = [
            key(shard, each.namespace, each.name) for each in held for key in (keys.recurring_far, keys.recurring)
        ]
        answer = yield from self._plane.host.read_for_good(Read(tuple(wanted)))
        assert isinstance(answer, Items)
        found = [from_item(Recurring, item) for item in answer.found.values()]
        return {record.ref: record for record in found}

    def _sent_now(self, held: HeldSeries, record: Recurring | None, end: int) -> _Going:
        """Puts what came due behind the span's end, and before this slot, among the rows."""
        going = _Going(held)
        spans = [] if record is None else record.spans()
        interval = next((span for span in spans if span.is_open and span.generation == held.generation), None)
        if record is None or interval is None:
            return going
        controls = self._plane.holding.controls
        begin = max(held.slot, controls.resumed_at(held.namespace))
        for fire in self._source.series_of(record, interval).between(begin, end):
            due = max(fire.nominal, fire.slot)
            if due < held.slot or controls.has_dropped(held.namespace, due):
                continue
            if len(going.rows) == FIRES_TOGETHER:
                going.keep(fire.slot)
                break
            going.rows.extend(self._among_the_rows(fire))
        return going

    def _among_the_rows(self, fire: Fire) -> list[Slotted]:
        """No row of it is open: what is held back has none."""
        plane, (slot, series, version) = self._plane, fire.place
        before = plane.slots.get(series, version, slot)
        if before is not None and before.stage is Stage.DONE:
            return []  # Sent before an earlier one of the schedule was held back, which nobody had acknowledged.
        if before is not None:
            plane.slots.discard(before)
        if not fire.skipped:
            return [self._source.add(fire, Stage.READY)]
        plane.checkpoints.count(Tally(expired=fire.count))
        first = fire.nominal if fire.covered is None else fire.covered.first
        not_sent(plane.host, fire.ref, "outage", fire.count, first, fire.nominal)
        return []

    def _until_sent(self, going: Sequence[_Going]) -> Operation[None]:
        """Waits until all have come to their end; cut short by a hand-over, or by another suspend, what was not taken stays held back."""
        while any(not row.stage.is_closed for each in going for row in each.rows):
            yield from self._plane.host.sleep(LOOK_MS)
            if self._plane.is_draining or any(self._plane.holding.covered(each.held.namespace) for each in going):
                self._give_up(going)

    def _give_up(self, going: Sequence[_Going]) -> None:
        for each in going:
            for row in each.rows:
                if row.stage is Stage.READY:
                    each.keep(row.slot)
                    self._plane.close(row, Stage.GONE)

    def _move(self, moved: list[_Going], shard: int, epoch: int, moves: int, *, token: str) -> Transaction:
        """Moves those alone that are as they were: an update may have begun another generation, of which something is held back since."""
        moved[:] = [each for ref, each in self._going.items() if self._held.get(ref) is each.held]
        left = [held for each in moved if (held := each.left) is not None]
        gone = [each.held for each in moved if each.left is None]
        return let_go_series(shard, epoch, moves, left, gone, token)

    def _has_moved(self, going: _Going, behind: Place) -> None:
        """The store says so, and until now nothing of the schedule could be sent but these rows, nor passed."""
        ref, left = going.held.ref, going.left
        if self._held.get(ref) is not going.held:
            return
        if left is not None:
            self._held[ref] = self._stored[ref] = left
        else:
            del self._held[ref]
            self._stored.pop(ref, None)
            self._source.go_on(ref, behind)
