"""Previews of a time trigger: its next instants in its zone, with the effects of clock changes. API and command line call this.

A preview that differs from the real occurrences would be worse than none. So it calls the functions that also decide.
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
"""Comparisons of one preview, about 2 s of the process that answers."""
NONE_FOUND = "no instant was found up to here; --from goes on"


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One line of a preview.

    Attributes:
        instant: Nominal time, or the first instant after a gap.
        result: `fires`: an occurrence. `latches`: a tick of a composite that needs other leaves too. `opens`: a tick that opens
            separate evidence. `skipped/<reason>`: local times that do not fire. `searched`: the search ended here.
        local: Instant on the trigger's wall clock, with its offset.
        zone: Zone of that clock.
        note: Effect of a clock change, and the path of the leaf in a composite; empty if there is neither.
    """

    instant: Instant
    result: str
    local: str
    zone: str
    note: str


def preview(trigger: TimeTrigger, identity: str, after: Instant, count: int) -> list[Upcoming]:
    """Returns the next `count` occurrences strictly after an instant, and the skipped local times between them.

    Args:
        trigger: Time trigger. The preview does not know how many of its `max_fires` have passed.
        identity: Id of the schedule.
        after: Instant before the first occurrence.
        count: Number of occurrences, from 1 to 1,000.
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
    """Returns the next `count` instants of a composite's time leaves, in the same form; an empty list without such leaves."""
    paths = trigger.paths() if isinstance(trigger, CompositeTrigger) else []
    alone = [0] * len(paths)
    shown: list[Upcoming] = []
    for place, (path, leaf) in enumerate(paths):
        if isinstance(leaf, TickLeaf):
            counts = [*alone[:place], 1, *alone[place + 1 :]]
            others = "opens" if leaf.opens_by_tick else "latches"
            result = "fires" if trigger.missing(counts) is None else others
            shown += [_of_leaf(each, path, result) for each in preview(leaf, identity, after, count)]
    shown.sort(key=lambda each: each.instant)  # Ticks of the same instant stay in the order of the leaves.
    return shown[: min(count, MAX_SHOWN)]


def _of_leaf(upcoming: Upcoming, path: str, result: str) -> Upcoming:
    note = f"{path}; {upcoming.note}" if upcoming.note else path
    return replace(upcoming, result=result if upcoming.result == "fires" else upcoming.result, note=note)


def reading_of(trigger: TimeTrigger | EventTrigger) -> str:
    """Returns how the trigger's time expressions were read, if users may expect another reading; otherwise empty."""
    if isinstance(trigger, TimeTrigger):
        return trigger.reading()
    leaves = trigger.paths() if isinstance(trigger, CompositeTrigger) else []
    texts = ((path, leaf.reading()) for path, leaf in leaves if isinstance(leaf, TickLeaf))
    return " | ".join(f"{path}: {text}" for path, text in texts if text)


def _upcoming(trigger: TimeTrigger, identity: str, instant: Instant, result: str, note: str) -> Upcoming:
    zone = trigger.zone_at(instant, identity)
    return Upcoming(instant, result, local_text(instant, zone), zone, note)


def zone_of(trigger: TimeTrigger | EventTrigger, instant: Instant, identity: str) -> str:
    """Returns the zone in which to show an instant of a schedule: the zone of its trigger or of its time leaves.

    An event may satisfy a composite at an instant that no time leaf names. Then the zone of the time leaves applies if they
    have a single one; otherwise UTC.
    """
    if isinstance(trigger, TimeTrigger):
        return trigger.zone_at(instant, identity)
    clocks = _clocks_of(trigger, identity)
    naming = next((spec.own_zone for spec in clocks if spec.names(instant, identity)), None)
    zones = list(dict.fromkeys(spec.own_zone for spec in clocks)) if naming is None else [naming]
    return zones[0] if len(zones) == 1 else "UTC"


def zone_meant(trigger: TimeTrigger | EventTrigger, wall: int, identity: str) -> str | None:
    """Returns the zone in which a user means a local time, in wall seconds; None if no part of the trigger has a wall clock.

    Of several zones it is the first whose times name the local time. The clock need not show that time: it may be skipped.
    """
    clocks = _clocks_of(trigger, identity)
    zones = list(dict.fromkeys(spec.own_zone for spec in clocks))
    if len(zones) < 2:
        return zones[0] if zones else None
    return next((spec.own_zone for spec in clocks if _shows(spec, wall, identity)), "UTC")


def _clocks_of(trigger: TimeTrigger | EventTrigger, identity: str) -> list[TimeTrigger]:
    """Returns the parts of the trigger with a wall clock: itself, its specs, or its time leaves and their specs."""
    parts = [trigger] if isinstance(trigger, TimeTrigger) else trigger.leaves()
    of_time = [part for part in parts if isinstance(part, TimeTrigger)]
    specs = [spec for part in of_time for spec in (part.specs if isinstance(part, TimesTrigger) else [part])]
    return [spec for spec in specs if spec.wall_clock(identity) is not None]


def _shows(spec: TimeTrigger, wall: int, identity: str) -> bool:
    clock = spec.wall_clock(identity)
    return clock is not None and clock.times.next_wall(wall - 1) == wall


def local_text(instant: Instant, zone: str) -> str:
    """Returns the instant on the wall clock of a zone, with the offset."""
    second = instant // 1000
    offset = zone_named(zone).segment_at(second).offset
    wall = as_datetime(instant) + timedelta(seconds=offset)
    sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60
    return f"{wall:%a %Y-%m-%d %H:%M:%S}{sign}{minutes // 60:02d}:{minutes % 60:02d}"
