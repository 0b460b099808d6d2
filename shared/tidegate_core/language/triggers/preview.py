"""What a time trigger will do: its coming instants in the zone that it reads, what clock changes do to them, what it leaves out.

The same functions that decide, asked ahead: a preview that differs from what happens would be worse than none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

from tidegate_core.language.time.zones import zone_named
from tidegate_core.language.triggers.composite.composite import CompositeTrigger
from tidegate_core.language.triggers.composite.ticks import TickLeaf
from tidegate_core.language.triggers.on_time.times import TimesTrigger
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.triggers.trigger import EventTrigger, TimeTrigger
from tidegate_core.language.values.instants import Instant, as_datetime

MAX_SHOWN = 1_000
STEPS_PER_PREVIEW = 1_000_000
"""Some 2 s, of the machine of whoever asks."""
NONE_FOUND = "no instant was found up to here; --from goes on"


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One line of a preview.

    Attributes:
        instant: A nominal, or the first instant after a gap.
        result: `fires`; `searched`, up to here and not further: no instant was found; `latches` a composite that waits for others as well, or `opens` an instance of it that does; or `skipped/<reason>` for local times that do neither.
        local: The instant on the trigger's own wall clock, with its offset.
        zone: Of that clock.
        note: What a clock change has to do with it, and which leaf of a composite it latches; empty when there is neither.
    """

    instant: Instant
    result: str
    local: str
    zone: str
    note: str


def preview(trigger: TimeTrigger, identity: str, after: Instant, count: int) -> list[Upcoming]:
    """Returns the next `count` occurrences strictly after an instant, and between them what clock changes leave out.

    Args:
        trigger: A time trigger; how many of its `max_fires` have been is not known here.
        identity: The schedule's own id.
        after: Where it begins.
        count: 1 to 1,000.
    """
    search = Search(STEPS_PER_PREVIEW)
    nominals, following = [after], trigger.seek(after, identity, search)
    while (nominal := following.found) is not None and len(nominals) <= min(count, MAX_SHOWN):
        nominals.append(nominal)
        following = trigger.seek(nominal, identity, search)
    shown: list[Upcoming] = []
    for before, nominal in pairwise(nominals):
        shown += [
            _upcoming(trigger, identity, skip.instant, f"skipped/{skip.reason}", "the local time does not exist")
            for skip in trigger.skips(before, nominal, identity)
        ]
        shown.append(_upcoming(trigger, identity, nominal, "fires", trigger.note(nominal, identity)))
    if following.at is not None and following.is_bound and len(nominals) <= min(count, MAX_SHOWN):
        shown.append(_upcoming(trigger, identity, following.at, "searched", NONE_FOUND))
    return shown


def preview_ticks(trigger: EventTrigger, identity: str, after: Instant, count: int) -> list[Upcoming]:
    """Returns the next `count` instants of a composite's time leaves, in the same form; nothing where it has none."""
    paths = trigger.paths() if isinstance(trigger, CompositeTrigger) else []
    alone = [0] * len(paths)
    shown: list[Upcoming] = []
    for place, (path, leaf) in enumerate(paths):
        if isinstance(leaf, TickLeaf):
            counts = [*alone[:place], 1, *alone[place + 1 :]]
            others = "opens" if leaf.opens_by_tick else "latches"
            result = "fires" if trigger.missing(counts) is None else others
            shown += [_of_leaf(each, path, result) for each in preview(leaf, identity, after, count)]
    shown.sort(key=lambda each: each.instant)  # Of one instant in the order of the leaves.
    return shown[: min(count, MAX_SHOWN)]


def _of_leaf(upcoming: Upcoming, path: str, result: str) -> Upcoming:
    note = f"{path}; {upcoming.note}" if upcoming.note else path
    return replace(upcoming, result=result if upcoming.result == "fires" else upcoming.result, note=note)


def reading_of(trigger: TimeTrigger | EventTrigger) -> str:
    """Returns how its time expressions were read, where that surprises people; empty where there are none."""
    if isinstance(trigger, TimeTrigger):
        return trigger.reading()
    leaves = trigger.paths() if isinstance(trigger, CompositeTrigger) else []
    texts = ((path, leaf.reading()) for path, leaf in leaves if isinstance(leaf, TickLeaf))
    return " | ".join(f"{path}: {text}" for path, text in texts if text)


def _upcoming(trigger: TimeTrigger, identity: str, instant: Instant, result: str, note: str) -> Upcoming:
    zone = trigger.zone_at(instant, identity)
    return Upcoming(instant, result, local_text(instant, zone), zone, note)


def zone_of(trigger: TimeTrigger | EventTrigger, instant: Instant, identity: str) -> str:
    """Returns the zone in which people read an instant of a schedule: of its trigger's clock, or of its time leaves' clocks.

    A composite may be satisfied by an event at an instant that none of its leaves names. It is read on their clock all the
    same, where they have but one; where they have several, or none, in UTC.
    """
    if isinstance(trigger, TimeTrigger):
        return trigger.zone_at(instant, identity)
    clocks = _clocks_of(trigger, identity)
    naming = next((spec.own_zone for spec in clocks if spec.names(instant, identity)), None)
    zones = list(dict.fromkeys(spec.own_zone for spec in clocks)) if naming is None else [naming]
    return zones[0] if len(zones) == 1 else "UTC"


def zone_meant(trigger: TimeTrigger | EventTrigger, wall: int, identity: str) -> str | None:
    """Returns the zone on whose clock people mean a local time, in wall seconds: of several the first that names it.

    Whether the clock shows it, once or twice or never, is another question. None where nothing reads a wall clock.
    """
    clocks = _clocks_of(trigger, identity)
    zones = list(dict.fromkeys(spec.own_zone for spec in clocks))
    if len(zones) < 2:
        return zones[0] if zones else None
    return next((spec.own_zone for spec in clocks if _shows(spec, wall, identity)), "UTC")


def _clocks_of(trigger: TimeTrigger | EventTrigger, identity: str) -> list[TimeTrigger]:
    """Returns what of it reads a wall clock: itself, its specs, or its leaves of time and their specs."""
    parts = [trigger] if isinstance(trigger, TimeTrigger) else trigger.leaves()
    of_time = [part for part in parts if isinstance(part, TimeTrigger)]
    specs = [spec for part in of_time for spec in (part.specs if isinstance(part, TimesTrigger) else [part])]
    return [spec for spec in specs if spec.wall_clock(identity) is not None]


def _shows(spec: TimeTrigger, wall: int, identity: str) -> bool:
    clock = spec.wall_clock(identity)
    return clock is not None and clock.times.next_wall(wall - 1) == wall


def local_text(instant: Instant, zone: str) -> str:
    """Returns the instant as the wall clock of a zone shows it, with its offset."""
    second = instant // 1000
    offset = zone_named(zone).segment_at(second).offset
    wall = as_datetime(instant) + timedelta(seconds=offset)
    sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60
    return f"{wall:%a %Y-%m-%d %H:%M:%S}{sign}{minutes // 60:02d}:{minutes % 60:02d}"
