"""The fires of a recurring message: a pure function of an interval, of the outages, and of a place (DESIGN 5).

Nothing remembers a fire. What lies behind the delivery position is done, what lies before it is found here, by whoever owns
the shard, and always the same. So nothing in here may depend on who asks, or when.
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
"""Occurrences that one delivery stands for after an outage; what is beyond is the next one's. Some 0.7 s to count."""
TRIGGERS_KEPT_CHARACTERS: Final = 5_000_000
"""Of the texts of parsed triggers per process; one has up to 18 bytes in memory for each of them, so all have 90 MB at most."""
TRIGGER_CHARACTERS_MIN: Final = 500
"""As many are counted of a short one: no more than 10,000 are kept. Long ones, with exclusions, are kept as well: each fire would parse its own
anew, which takes 5 ms for 24,000 characters."""


class Gap(NamedTuple):
    """Slots `begin <= slot < end` at which nobody served the shard."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Covered:
    """Nominals of the first and the last occurrence that a delivery stands for, and how many they are."""

    first: int
    last: int
    count: int


@dataclass(frozen=True, slots=True)
class Fire:
    """One delivery that is to happen, or would be if catch-up did not leave it out.

    Attributes:
        slot: Of its place in the order of the checkpoint; of several occurrences that of the first, so that no checkpoint
            passes one of them before the delivery that stands for them.
        nominal: Of the last occurrence that it stands for.
        covered: None where it stands for itself.
        skipped: It is not sent (`catch_up: none`).
        is_bound: It is none, but how far a search came: none has an earlier slot, and what follows is not known.
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
        """Occurrences that it stands for."""
        return 1 if self.covered is None else self.covered.count

    @property
    def due(self) -> int:
        """When it became due, the last one of several: at its instant, also where its schedule goes on late; with the request where that has
        asked for an instant that had passed.
        """
        begin = self.interval.begin
        is_asked_for = self.nominal < begin and _trigger(self.interval.trigger).counts_from(begin) < begin
        return max(self.nominal, self.slot) if is_asked_for else self.nominal


def version_of(interval: Interval) -> str:
    """Returns what stands for the interval in the places of its fires."""
    return f"{interval.generation:010d}"


def gaps_of(outages: Sequence[Outage]) -> list[Gap]:
    """Returns the outages as spans that do not overlap; what two share belongs to the one that was written down first.

    A fact is not changed by a later one: else what was delivered for the first would be a part of something else. The very
    begin is no part of it: the position stood there, so what has that slot may have been delivered.
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
    """All fires of one interval, in the order of their places.

    Attributes:
        outages: As written down, in their order.
    """

    namespace: str
    name: str
    interval: Interval
    outages: Sequence[Outage] = field(default=())

    def after(self, place: Place) -> Fire | None:
        """Returns the first fire behind a place, or how far one search for it came; None when no further one is to be sent."""
        return next(self._behind(place), None)

    def behind(self, place: Place) -> Iterator[Fire]:
        """Yields all fires behind a place, in order; without end for most triggers."""
        return (fire for fire in self._behind(place) if not fire.is_bound)

    def _behind(self, place: Place) -> Iterator[Fire]:
        for fire in self._from(place[0]):
            if self.interval.end is not None and fire.slot >= self.interval.end:
                return
            if fire.place > place:
                yield fire

    def cancelled(self, place: Place) -> Iterator[Fire]:
        """Yields the fires behind a place that were due and not sent when a request ended the interval."""
        end, until = self.interval.end, self.interval.until
        if end is None or until is None:
            return
        for fire in self._from(max(end, place[0])):
            if fire.slot >= until:
                return
            if fire.slot >= end and fire.place > place and not fire.is_bound:
                yield fire

    def last_before(self, slot: int) -> int | None:
        """Returns the last nominal of the interval whose slot is below this one."""
        since, begin = self.interval.since, self.interval.begin
        if slot <= begin + len(self._late):
            return self._late[slot - begin - 1] if slot > begin else None
        # Not beyond its first nominal: a request waits for this in the lane, and what was left out before can be decades.
        search = Search(STEPS_PER_SEARCH, floor=since)
        # The trigger itself looks back without regard to its end: what it names behind that is none of its instants.
        ends = slot if self._times.end is None else min(slot, self._times.end)
        last = self._times.last_before(ends, keys.schedule_ref(self.namespace, self.name), search)
        return last if last is not None and since <= last and max(last, begin) < slot else None

    def made_through(self, position: Place) -> int | None:
        """Returns the last nominal of the interval that has been dealt with, by a delivery position; what was refused too."""
        following = self.after(position)
        return self.last_before(position[0] + 1 if following is None else following.slot)

    # -- how they follow each other ------------------------------------------------------------------------------------

    def _from(self, slot: int) -> Iterator[Fire]:
        """Yields fires; the first one may lie before the slot, when it stands for occurrences around it."""
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
        """Yields one fire for each COVERED_MAX occurrences of a gap, from its begin: whoever counts must count alike."""
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
        """Returns the next nominal of a gap: what one delivery stands for is searched to the end of it, and no outage is long."""
        while following.is_bound and following.at is not None and max(following.at, self.interval.begin) < gap.end:
            following = self._next(following.at - 1)
        return following.found

    def _first(self, slot: int) -> Next:
        """Returns the first nominal whose slot is not below this one, or how far it was searched."""
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
        """Nominals that lie before the begin, or too close behind it: each has a slot of its own, a millisecond after the one before. Two of
        one place would be one fire.
        """
        late: list[int] = []
        if self.interval.since < self.interval.begin:
            nominal = self._next(self.interval.since - 1).found
            while nominal is not None and nominal < self.interval.begin + len(late):
                late.append(nominal)
                nominal = self._next(nominal).found
        return tuple(late)

    def _next(self, nominal: int) -> Next:
        # From the last nominal and never from now: a late look must not lose one.
        return self._times.seek(nominal, keys.schedule_ref(self.namespace, self.name), Search.of_a_decision())

    def _gap_at(self, slot: int) -> Gap | None:
        return next((gap for gap in self._gaps if gap.begin <= slot < gap.end), None)

    @cached_property
    def _gaps(self) -> list[Gap]:
        """An interval that a request has ended knows the outages of before: later ones are none of its own."""
        if self.interval.catch_up == "all":
            return []
        until = self.interval.until
        return gaps_of([each for each in self.outages if until is None or each.end <= until])

    @property
    def _times(self) -> TimeTrigger:
        return _trigger(self.interval.trigger)
