"""Computes the fires of a recurring message: a pure function of an interval, the outages and a place.

No row stores a fire. Fires up to the delivery position are complete; each owner of the shard computes the fires after it here, and
every owner must get the same ones. So nothing here may depend on the node or on the present time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from tidegate_core.language.triggers import TimeTrigger, Trigger
from tidegate_core.language.triggers.search import STEPS_PER_SEARCH, Next, Search
from tidegate_core.messages.wire.due_queue import Place
from tidegate_core.messages.wire.payload_budget import LruCache
from tidegate_core.rows import keys
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.recurring_message import Interval, fire_id, series_id

COVERED_MAX: Final = 100_000
"""Occurrences that one delivery covers after an outage; the next delivery covers further ones. Counting them takes some 0.7 s."""
TRIGGERS_KEPT_CHARACTERS: Final = 5_000_000
"""Characters of all parsed triggers in memory, per process. A trigger takes up to 18 bytes per character, so all take at most 90 MB."""
TRIGGER_CHARACTERS_MIN: Final = 500
"""Least size that a trigger counts, so at most 10,000 are kept. Long triggers with exclusions are kept too: otherwise each fire would
parse its trigger again, which takes 5 ms for 24,000 characters."""


class Gap(NamedTuple):
    """Slots `begin <= slot < end` at which no owner served the shard."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Covered:
    """Nominal times of the first and last occurrence that a delivery covers, and their number."""

    first: int
    last: int
    count: int


@dataclass(frozen=True, slots=True)
class Fire:
    """One delivery of a recurring message, also one that catch-up leaves out.

    Attributes:
        slot: Slot of the first occurrence that it covers, so no checkpoint passes an occurrence before this delivery.
        nominal: Nominal time of the last occurrence that it covers.
        covered: Occurrences of an outage that it covers; None if it is a single occurrence.
        skipped: The fire is not sent (`catch_up: none`).
        is_bound: Not a fire but the end of a search: no fire has an earlier slot, and later fires are unknown.
    """

    namespace: str
    name: str
    interval: Interval
    slot: int
    nominal: int
    covered: Covered | None = None
    skipped: bool = False
    is_bound: bool = False

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.namespace, self.name)

    @property
    def place(self) -> Place:
        return (self.slot, series_id(self.namespace, self.name), version_of(self.interval))

    @property
    def message_id(self) -> str:
        return fire_id(self.interval.incarnation, self.nominal)

    @property
    def count(self) -> int:
        """Number of occurrences that it covers."""
        return 1 if self.covered is None else self.covered.count

    @property
    def due(self) -> int:
        """Returns when its last occurrence became due: at the nominal time, also if the schedule resumed later.

        If a request asked for an instant that had passed, the occurrence became due with the request.
        """
        begin = self.interval.begin
        is_asked_for = self.nominal < begin and _trigger(self.interval.trigger).counts_from(begin) < begin
        return max(self.nominal, self.slot) if is_asked_for else self.nominal


def version_of(interval: Interval) -> str:
    """Returns the version that the places of the interval's fires contain."""
    return f"{interval.generation:010d}"


def gaps_of(outages: Sequence[Outage]) -> list[Gap]:
    """Returns the outages as spans that do not overlap; the outage that was written first keeps a shared part.

    A later outage must not change an earlier one: the delivery of the earlier one would then belong to another span. The first
    instant of an outage is not part of its span: the position was there, so a fire with that slot may be delivered.
    """
    gaps: list[Gap] = []
    for outage in outages:
        begin = outage.begin + 1
        for earlier in sorted(gaps):
            if earlier.end <= begin or earlier.begin >= outage.end:
                continue
            if begin < earlier.begin:
                gaps.append(Gap(begin, earlier.begin))
            begin = earlier.end
        if begin < outage.end:
            gaps.append(Gap(begin, outage.end))
    return sorted(gaps)


_TRIGGERS: Final[TypeAdapter[Any]] = TypeAdapter(Trigger)
_KEPT: Final = LruCache[str, TimeTrigger](TRIGGERS_KEPT_CHARACTERS)


def _trigger(text: str) -> TimeTrigger:
    trigger = _KEPT.get(text)
    if trigger is None:
        trigger = _TRIGGERS.validate_json(text)
        assert isinstance(trigger, TimeTrigger)
        _KEPT.keep(text, trigger, max(len(text), TRIGGER_CHARACTERS_MIN))
    return trigger


@dataclass(frozen=True)
class FireSeries:
    """All fires of one interval: the span in which one version of the schedule was active. In the order of slot, id and version.

    Attributes:
        outages: In the order in which they were written.
    """

    namespace: str
    name: str
    interval: Interval
    outages: Sequence[Outage] = field(default=())

    def after(self, place: Place) -> Fire | None:
        """Returns the first fire after a place, or the end of one search for it; None when no fire is left."""
        return next(self._behind(place), None)

    def behind(self, place: Place) -> Iterator[Fire]:
        """Yields all fires after a place, in order; for most triggers without end."""
        return (fire for fire in self._behind(place) if not fire.is_bound)

    def _behind(self, place: Place) -> Iterator[Fire]:
        for fire in self._from(place[0]):
            if self.interval.end is not None and fire.slot >= self.interval.end:
                return
            if fire.place > place:
                yield fire

    def cancelled(self, place: Place) -> Iterator[Fire]:
        """Yields the fires after a place that were due and unsent when a request ended the interval."""
        end, until = self.interval.end, self.interval.until
        if end is None or until is None:
            return
        for fire in self._from(max(end, place[0])):
            if fire.slot >= until:
                return
            if fire.slot >= end and fire.place > place and not fire.is_bound:
                yield fire

    def last_before(self, slot: int) -> int | None:
        """Returns the last nominal time of the interval whose slot is below this one."""
        since, begin = self.interval.since, self.interval.begin
        if slot <= begin + len(self._late):
            return self._late[slot - begin - 1] if slot > begin else None
        # Not before its first nominal time: a request in the shard writer waits for this, and earlier exclusions may span decades.
        search = Search(STEPS_PER_SEARCH, floor=since)
        # The trigger searches back without regard to its own end: instants after that end do not count.
        ends = slot if self._times.end is None else min(slot, self._times.end)
        last = self._times.last_before(ends, keys.schedule_ref(self.namespace, self.name), search)
        return last if last is not None and since <= last and max(last, begin) < slot else None

    def made_through(self, position: Place) -> int | None:
        """Returns the last nominal time of the interval up to a delivery position; refused fires count too."""
        following = self.after(position)
        return self.last_before(position[0] + 1 if following is None else following.slot)

    # -- order of fires ------------------------------------------------------------------------------------------------

    def _from(self, slot: int) -> Iterator[Fire]:
        """Yields fires; the first one may lie before the slot if it covers occurrences of an outage around the slot."""
        following = self._first(slot)
        while (nominal := following.at) is not None:
            at = self._slot_of(nominal)
            gap = self._gap_at(at)
            if following.is_bound:
                yield Fire(self.namespace, self.name, self.interval, at, nominal, is_bound=True)
                following = self._next(nominal - 1)
            elif gap is None:
                yield Fire(self.namespace, self.name, self.interval, at, nominal)
                following = self._next(nominal)
            else:
                yield from self._in(gap)
                following = self._first(gap.end)

    def _in(self, gap: Gap) -> Iterator[Fire]:
        """Yields one fire per `COVERED_MAX` occurrences of a gap, counted from its begin, so all owners count alike."""
        nominal = self._within(gap, self._first(gap.begin))
        while nominal is not None and self._slot_of(nominal) < gap.end:
            first, last, count = nominal, nominal, 0
            while nominal is not None and self._slot_of(nominal) < gap.end and count < COVERED_MAX:
                last, count = nominal, count + 1
                nominal = self._within(gap, self._next(nominal))
            covered = Covered(first, last, count) if count > 1 else None
            slot = self._slot_of(first)
            skipped = self.interval.catch_up == "none"
            yield Fire(self.namespace, self.name, self.interval, slot, last, covered, skipped)

    def _within(self, gap: Gap, following: Next) -> int | None:
        """Returns the next nominal time in a gap. The search runs to the end of the gap: outages are short."""
        while following.is_bound and following.at is not None and max(following.at, self.interval.begin) < gap.end:
            following = self._next(following.at - 1)
        return following.found

    def _first(self, slot: int) -> Next:
        """Returns the first nominal time whose slot is not below this one, or the end of the search."""
        begin, since = self.interval.begin, self.interval.since
        if begin < slot < begin + len(self._late):
            return self._next(self._late[slot - begin] - 1)
        return self._next(since - 1 if slot <= begin else max(slot, since) - 1)

    def _slot_of(self, nominal: int) -> int:
        begin = self.interval.begin
        if nominal >= begin + len(self._late):
            return nominal
        return begin + self._late.index(nominal) if nominal in self._late else max(nominal, begin)

    @cached_property
    def _late(self) -> tuple[int, ...]:
        """Nominal times before the begin, or too close after it: each gets its own slot, one millisecond after the last.

        Two of them at one place would be one fire.
        """
        late: list[int] = []
        if self.interval.since < self.interval.begin:
            nominal = self._next(self.interval.since - 1).found
            while nominal is not None and nominal < self.interval.begin + len(late):
                late.append(nominal)
                nominal = self._next(nominal).found
        return tuple(late)

    def _next(self, nominal: int) -> Next:
        # The search starts at the last nominal time and never at the present: a late search must not lose an instant.
        return self._times.seek(nominal, keys.schedule_ref(self.namespace, self.name), Search.of_a_decision())

    def _gap_at(self, slot: int) -> Gap | None:
        return next((gap for gap in self._gaps if gap.begin <= slot < gap.end), None)

    @cached_property
    def _gaps(self) -> list[Gap]:
        """Gaps of the interval; an interval that a request has ended ignores later outages."""
        if self.interval.catch_up == "all":
            return []
        until = self.interval.until
        return gaps_of([each for each in self.outages if until is None or each.end <= until])

    @property
    def _times(self) -> TimeTrigger:
        return _trigger(self.interval.trigger)
