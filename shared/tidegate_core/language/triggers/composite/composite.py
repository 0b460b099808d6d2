"""Base class of composite triggers: a tree of triggers, evaluated over the counts of its leaves.

The outermost composite has the evidence. So only it may have the fields about evidence, such as `correlate`, `window` and
`timeout`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tidegate_core.language.events.trigger_facts import Fact
from tidegate_core.language.time.zones import ZoneName, zone_named
from tidegate_core.language.triggers.latches import OnTimeout, Terms
from tidegate_core.language.triggers.trigger import (
    PLANNED_FOR_EVENTS,
    AtLeastEveryField,
    Correlate,
    EventTrigger,
    LeafTrigger,
    Take,
)
from tidegate_core.language.values.document import PLATFORM, Document, Flag, planned
from tidegate_core.language.values.durations import Duration, DurationField
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.language.values.problems import refused

if TYPE_CHECKING:
    from tidegate_core.language.triggers.composite.composite_nodes import Children


_DAY_SECONDS = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


class PairingWindow(Document):
    """Pairs evidence by local day: events of different days, by append time, never meet.

    Attributes:
        every: Length of the window. `day`: from midnight to midnight, so 23, 24 or 25 hours.
        zone: Zone of the midnights.
    """

    EXAMPLE: ClassVar = {"every": "day", "zone": "Europe/Rome"}
    PLANNED_VALUES: ClassVar = {"every": planned(PLATFORM, "hour", "week", "month")}
    FIELD_HINTS: ClassVar = {"tz": "the field is called zone", "timezone": "the field is called zone"}

    every: Literal["day"]
    zone: ZoneName = "UTC"

    def name_of(self, at: Instant) -> str:
        """Returns the local date of an instant, as text."""
        return date.fromordinal(_EPOCH_ORDINAL + self._day_of(at)).isoformat()

    def end_of(self, at: Instant) -> Instant:
        """Returns the first instant after `at` with a later local date. A clock change may move midnight."""
        zone = zone_named(self.zone)
        next_day = (self._day_of(at) + 1) * _DAY_SECONDS
        segment = zone.segment_at(at // 1000)
        while True:
            begins = max(segment.start, next_day - segment.offset)
            if begins < segment.end:
                return begins * 1000
            segment = zone.segment_at(segment.end)

    def _day_of(self, at: Instant) -> int:
        second = at // 1000
        return (second + zone_named(self.zone).segment_at(second).offset) // _DAY_SECONDS


MAX_LEAVES = 50
MAX_DEPTH = 5
DEFAULT_TTL_MS = 24 * 3_600_000

_OUTERMOST = ("correlate", "window", "timeout", "on_timeout", "at_least_every", "allow_empty")
_POLICIES = planned(
    PLATFORM,
    "max_wait",
    "settle",
    "max_settle",
    "take",
    hint="use them on a trigger that counts events",
)


class CompositeTrigger(EventTrigger, ABC):
    """A trigger that combines several triggers.

    Attributes:
        triggers: List of 2 to 50 triggers, with at most 50 leaves and 5 levels in all.
        correlate: Value that pairs evidence. `data_partition`: the flights of a day meet only the weather of the same day.
        window: Window that pairs evidence: one state per day of its zone, by append time. Evidence ends at midnight.
        timeout: Time from the first latch that holds until `on_timeout` applies.
        on_timeout: Outcome at the time-out. `abort`: the evidence is dropped, with a ledger row. `partial`: it fires with
            the latches so far. `wait`: nothing; only latches end, by their `ttl`.
        at_least_every: Longest time between two jobs: after it a job is created with the events so far. Manual jobs count too.
        allow_empty: Whether `at_least_every` creates a job without any event as well.
    """

    PLANNED_FIELDS: ClassVar = {
        **PLANNED_FOR_EVENTS,
        **_POLICIES,
        **planned(PLATFORM, "ttl", hint="set it on each leaf"),
        **planned(PLATFORM, "pairing", "min"),
        **planned(PLATFORM, "driver", hint="set it on the time trigger"),
    }
    PLANNED_VALUES: ClassVar = {"correlate": planned(PLATFORM, "*", hint="only data_partition works now")}

    LATER_FIELDS: ClassVar = frozenset({"at_least_every", "allow_empty"})

    take: ClassVar[Take] = "all"
    MAY_OPEN_BY_TICK: ClassVar[bool] = False
    """Whether all children are needed, so that each tick of one child can open evidence that waits for the others."""

    triggers: Children
    correlate: Correlate | None = None
    window: PairingWindow | None = None
    timeout: DurationField | None = Field(default=None, gt=0)
    on_timeout: OnTimeout = "abort"
    at_least_every: AtLeastEveryField | None = None
    allow_empty: Flag = False

    # -- a tree within bounds -----------------------------------------------------------------------------------------

    @model_validator(mode="after")
    def _is_within_bounds(self) -> Self:
        if self.depth > MAX_DEPTH:
            raise refused(f"are {self.depth} levels deep, at most {MAX_DEPTH} are allowed", field="triggers")
        if len(self.leaves()) > MAX_LEAVES:
            raise refused(f"have {len(self.leaves())} leaves, at most {MAX_LEAVES} are allowed", field="triggers")
        for place, child in enumerate(self.triggers):
            fields = child.outermost_fields()
            if fields:
                where = (
                    "the outermost trigger"
                    if isinstance(child, CompositeTrigger)
                    else "a trigger outside of composites"
                )
                raise refused(f"is allowed on {where} only", field=f"triggers[{place}].{fields[0]}", hint="take it out")
        return self

    @model_validator(mode="after")
    def _one_tick_opens(self) -> Self:
        paths = self.paths()
        path = next((path for path, leaf in paths if leaf.opens_by_tick), None)
        if path is None:
            return self
        if not self.MAY_OPEN_BY_TICK or path.count("triggers[") > 1:
            hint = "leave driver out, or move it to the outermost all_of"
            raise refused("time is allowed only directly in the outermost all_of", field=f"{path}.driver", hint=hint)
        others = [other for other, leaf in paths if leaf.OF_TIME and other != path]
        if others:
            hint = "make one of type times, or a separate schedule for each"
            raise refused("is a second time trigger next to driver: time", field=f"{others[0]}.type", hint=hint)
        if self.window is not None:
            hint = "take it out: each instant already has separate evidence"
            raise refused("has no effect with driver: time", field="window", hint=hint)
        return self

    @model_validator(mode="after")
    def _reminds_of_one_state(self) -> Self:
        if self.at_least_every is not None and not self.has_one_state:
            hint = "with correlate, window, driver: time or or_mode: each it would not be clear whose job it makes"
            raise refused("needs one state for all events", field="at_least_every", hint=hint)
        if self.allow_empty and self.at_least_every is None:
            raise refused("needs at_least_every", field="allow_empty", hint="nothing else fires without events")
        return self

    @property
    def has_one_state(self) -> bool:
        """Whether all events of the schedule belong to the same evidence."""
        return self.correlate is None and self.window is None and not self.opens_by_tick

    @property
    def opens_by_tick(self) -> bool:
        return any(leaf.opens_by_tick for leaf in self.leaves())

    @model_validator(mode="after")
    def _one_each_when_correlated(self) -> Self:
        if self.correlate is not None:
            for path, leaf in self.paths():
                if not leaf.PAIRS:
                    raise refused("cannot be paired by a value", field=f"{path}.type", hint="take correlate out")
                if leaf.needed != 1:
                    # A value is one data partition, so a second data partition of the same value cannot come.
                    raise refused(
                        "has to be 1 with correlate: data_partition",
                        field=f"{path}.{leaf.COUNT_FIELD}",
                        hint="take correlate out, or count 1 data partition per value",
                    )
        return self

    @property
    def depth(self) -> int:
        return 1 + max(child.depth if isinstance(child, CompositeTrigger) else 1 for child in self.triggers)

    def outermost_fields(self) -> tuple[str, ...]:
        """Returns the fields of this trigger that are set and that only the outermost trigger may have."""
        known = type(self).model_fields
        return tuple(name for name in _OUTERMOST if getattr(self, name) != known[name].get_default())

    def paths(self) -> list[tuple[str, LeafTrigger]]:
        """Returns each leaf with its path within this trigger, in the order of `leaves`."""
        found: list[tuple[str, LeafTrigger]] = []
        for place, child in enumerate(self.triggers):
            here = f"triggers[{place}]"
            if isinstance(child, CompositeTrigger):
                found += [(f"{here}.{path}", leaf) for path, leaf in child.paths()]
            else:
                found.append((here, child))
        return found

    # -- the questions of a trigger -----------------------------------------------------------------------------------

    def leaves(self) -> tuple[LeafTrigger, ...]:
        return tuple(leaf for child in self.triggers for leaf in child.leaves())

    def missing(self, counts: Sequence[int]) -> str | None:
        return self._combined([child.missing(own) for child, own in self._shared_out(counts)])

    def is_satisfied_by(self, counts: Sequence[int]) -> bool:
        return sum(child.is_satisfied_by(own) for child, own in self._shared_out(counts)) >= self.children_needed

    def _shared_out(self, counts: Sequence[int]) -> Iterator[tuple[EventTrigger, Sequence[int]]]:
        """Yields each child with the counts of its leaves."""
        sizes = [len(child.leaves()) for child in self.triggers]
        if len(counts) != sum(sizes):
            raise ValueError(f"{len(counts)} counts: longer or shorter than {sum(sizes)} leaves")
        ends = [*accumulate(sizes)]
        parts = (counts[end - size : end] for size, end in zip(sizes, ends, strict=True))
        return zip(self.triggers, parts, strict=True)

    @abstractmethod
    def _combined(self, shortfalls: Sequence[str | None]) -> str | None:
        """Returns what the composite misses, from what each child misses."""

    @property
    @abstractmethod
    def children_needed(self) -> int:
        """How many of `triggers` have to be satisfied."""

    @property
    def waits_for_others(self) -> bool:
        """Whether one child alone does not satisfy it: then what came first must not wait for ever for the rest."""
        return self.children_needed > 1

    def ttls(self, together: Duration | None) -> tuple[Duration | None, ...]:
        given = (together or DEFAULT_TTL_MS) if self.waits_for_others else together
        return tuple(ttl for child in self.triggers for ttl in child.ttls(given))

    def terms(self, first_at: Instant) -> Terms:
        # If the time-out ends the wait, latches hold until then by default. A shorter default would drop them before the
        # time-out can apply; a longer one has no use.
        together = self.timeout if self.on_timeout != "wait" else None
        return Terms(
            ttls=self.ttls(together if self.waits_for_others else None),
            timeout=self.timeout,
            on_timeout=self.on_timeout,
            ends_at=None if self.window is None else self.window.end_of(first_at),
        )

    def group_of(self, leaf: int, event: Fact, at: Instant) -> str:
        parts = self._group(leaf, event, at)
        if not parts:
            return ""
        # A single value is the key itself, as in older stored evidence. Several values become a JSON list, to be unambiguous.
        return parts[0] if self.correlate and len(parts) == 1 else _as_list(parts)

    def terms_of_instance(self, tick: Instant) -> Terms:
        """Returns the deadlines of the evidence that a tick has opened (`driver: time`)."""
        # Its latches hold as long as it is open: they do not return to the evidence for the next tick.
        ends_at = None if self.on_timeout == "wait" or self.timeout is None else tick + self.timeout
        return Terms(ttls=(None,) * len(self.leaves()), on_timeout=self.on_timeout, ends_at=ends_at)

    def terms_before_tick(self) -> Terms:
        """Returns the deadlines of the evidence that waits for the next tick (`driver: time`)."""
        return Terms(ttls=self.terms(0).ttls, from_first_read=True)

    def group_of_tick(self, at: Instant) -> str:
        if self.opens_by_tick:
            return format_instant(at)
        return "" if self.window is None else _as_list([self.window.name_of(at)])

    def _group(self, leaf: int, event: Fact, at: Instant) -> list[str]:
        window = [] if self.window is None else [self.window.name_of(at)]
        return window + ([] if self.correlate is None else [self.leaves()[leaf].correlation_of(event)])


def _as_list(parts: list[str]) -> str:
    given: Any = parts
    return json.dumps(given, separators=(",", ":"), ensure_ascii=False)
