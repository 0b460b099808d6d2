"""Instant of a question, and the reason why a time trigger does not name it: bounds, exclusions, clock changes, or none of these.

Users ask about an instant with an offset, or about a local time on the wall clock of the trigger. A local time may occur twice or never:
`02:30 on 29 March` in Rome is a question that users have, and no instant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from tidegate_core.explain.why.reason import Reason
from tidegate_core.language.constraints.constraint import Compared
from tidegate_core.language.time.zones import LARGEST_SHIFT_SECONDS, Segment, Zone, zone_named
from tidegate_core.language.triggers.exclusions import kept_in_gap
from tidegate_core.language.triggers.on_time.times import TimesTrigger
from tidegate_core.language.triggers.preview import local_text
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import Instant, as_datetime, format_instant, from_datetime, parse_instant

_LOCAL = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?", re.ASCII)
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class QueryTime:
    """Time of a question.

    Attributes:
        instants: One instant; two in order, if the clock repeats the local time; the first after the gap, if the clock leaves it out.
        wall: Local time in wall seconds; None: the question named an instant.
        gap: Segment after the gap in which the local time lies; None: there is no gap.
        local: Local time as text.
    """

    instants: tuple[Instant, ...]
    wall: int | None
    gap: Segment | None
    local: str


def asked(text: str, zone: str) -> QueryTime:
    """Returns the time that a text names.

    Args:
        text: RFC 3339 with an offset, or a local time such as `2026-03-29T02:30`.
        zone: Zone of a local time.

    Raises:
        ValueError: The text is neither. The error names the mistake and the right form.
    """
    if _LOCAL.fullmatch(text) is None:
        try:
            instant = parse_instant(text)
        except ValueError as error:
            # The form of an instant is right, and only its value is impossible.
            other = "" if "lies outside" in str(error) else ", nor a local time such as 2026-03-29T02:30"
            raise ValueError(f"{error}{other}") from error
        return QueryTime((instant,), None, None, local_text(instant, zone))
    try:
        wall = from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC)) // 1000
    except ValueError as error:
        raise ValueError(f"names no date and time that exists ({error})") from error
    return of_wall(wall, zone)


def of_wall(wall: int, zone: str) -> QueryTime:
    """Returns the time at which a zone's clock shows a local time, given in wall seconds. Raises ValueError before 1970 in UTC."""
    known = zone_named(zone)
    first = _segment_before(known, wall)
    found: list[Instant] = []
    gap: Segment | None = None
    segment = first
    while segment.start <= wall + _DAY_SECONDS:
        if segment.start + segment.offset <= wall < segment.end + segment.offset:
            found.append((wall - segment.offset) * 1000)
        elif segment.start + segment.offset_before <= wall < segment.start + segment.offset:
            gap = segment
        segment = known.segment_at(segment.end)
    if found:
        return QueryTime(tuple(found), wall, None, f"{_wall_text(wall)} {zone}")
    if gap is None:
        raise ValueError("lies before 1970-01-01T00:00:00Z: ask about a later time")
    return QueryTime((gap.start * 1000,), wall, gap, f"{_wall_text(wall)} {zone}, which does not exist")


def _segment_before(zone: Zone, wall: int) -> Segment:
    """Returns a segment before all that may show the local time: no offset differs from UTC by more than a day."""
    return zone.segment_at(max(0, wall - _DAY_SECONDS))


def _wall_text(wall: int) -> str:
    return f"{datetime.fromtimestamp(wall, UTC):%a %Y-%m-%d %H:%M:%S}"


def is_jump(segment: Segment) -> bool:
    """Whether the zone was redefined at the start of the segment: no clock change shifts by so much."""
    return segment.offset - segment.offset_before > LARGEST_SHIFT_SECONDS


def unnamed(trigger: TimeTrigger, ref: str, asked: QueryTime, instant: Instant) -> list[Reason]:
    """Returns why the trigger does not name the instant of a question, from the first of its specs that has a reason."""
    parts = (*trigger.specs, trigger) if isinstance(trigger, TimesTrigger) else (trigger,)
    if asked.gap is not None and asked.wall is not None:
        # The reasons of the instant after the gap say nothing about a local time in the gap.
        of_gap = (_of_gap(part, trigger, ref, asked.gap, asked.wall) for part in parts)
        # If one spec leaves the local time out and another one fires, the other one is the answer.
        reasons = sorted(filter(None, of_gap), key=lambda reason: reason.code != "dst_shift")
    else:
        each = (_left_out(part, ref, instant) or _other_pass(part, ref, instant) for part in parts)
        reasons = list(islice(filter(None, each), 1))
    return reasons[:1] or [_not_named(trigger, ref, instant)]


def _of_gap(part: TimeTrigger, whole: TimeTrigger, ref: str, gap: Segment, wall: int) -> Reason | None:
    """Returns the reason for a local time that does not exist, if this part of the trigger names it."""
    clock = part.wall_clock(ref)
    if clock is None or clock.zone.segment_at(gap.start) != gap or clock.times.next_wall(wall - 1) != wall:
        return None
    after = gap.start * 1000
    out_of_bounds = _out_of_bounds(part, after) or _out_of_bounds(whole, after)
    if out_of_bounds is not None:
        return out_of_bounds
    values: dict[str, Compared] = {"after_gap": format_instant(after), "zone": clock.zone.name}
    text = f"local time {as_datetime(wall * 1000):%Y-%m-%d %H:%M:%S} does not exist in {clock.zone.name}"
    exclusions = (*(part.exclude or ()), *(whole.exclude or ()))
    if not any(True for _ in kept_in_gap(exclusions, part.own_zone, gap, [wall])):
        return Reason("excluded", f"{text}, and exclude leaves it out", None, values)
    if clock.times.real_cadence:
        text = f"{text}; an hour field that begins with * follows real time and shifts nothing"
        return Reason("dst_gap", text, None, values)
    if is_jump(gap):
        return Reason("zone_jump", f"{text}: the zone was redefined at {format_instant(after)}", None, values)
    if clock.policy.gap == "skip":
        return Reason("dst_gap", f"{text}, and dst_gap is skip", None, values)
    text = f"{text}; it fires at the first instant after the gap, {format_instant(after)}"
    return Reason("dst_shift", text, None, values)


def _left_out(trigger: TimeTrigger, ref: str, instant: Instant) -> Reason | None:
    """Returns the bound or exclusion without which the trigger would name the instant."""
    if not trigger.would_name(instant, ref):
        return None
    out_of_bounds = _out_of_bounds(trigger, instant)
    span = trigger.excluded_at(instant, ref) if out_of_bounds is None else None
    if span is None:
        return out_of_bounds
    begin, end = format_instant(span.begin), format_instant(span.end)
    text = f"exclude leaves out {begin} to {end}"
    if span.begin + 1 == span.end:
        text = f"exclude leaves out all local times in the gap for which {begin} would stand"
    return Reason("excluded", text, None, {"from": begin, "to": end})


def _out_of_bounds(trigger: TimeTrigger, instant: Instant) -> Reason | None:
    if trigger.start is not None and instant < trigger.start:
        start = format_instant(trigger.start)
        return Reason("before_start", f"the trigger starts at {start}", None, {"start": start})
    if trigger.end is not None and instant >= trigger.end:
        end = format_instant(trigger.end)
        return Reason("after_end", f"the trigger ended at {end}", None, {"end": end})
    return None


def _other_pass(trigger: TimeTrigger, ref: str, instant: Instant) -> Reason | None:
    """Returns the reason for a repeated local time that fires in its other pass."""
    clock = trigger.wall_clock(ref)
    if clock is None or clock.times.real_cadence or instant % 1000:
        return None
    second = instant // 1000
    wall = second + clock.zone.segment_at(second).offset
    passes = of_wall(wall, clock.zone.name).instants
    other = next((each for each in passes if each != instant and trigger.names(each, ref)), None)
    if len(passes) < 2 or other is None or clock.times.next_wall(wall - 1) != wall:
        return None
    text = f"the clock shows this time twice; it fires at {format_instant(other)} (dst_overlap {clock.policy.overlap})"
    return Reason("dst_overlap", text, None, {"fires_at": format_instant(other), "zone": clock.zone.name})


def _not_named(trigger: TimeTrigger, ref: str, instant: Instant) -> Reason:
    values: dict[str, Compared] = {}
    words: list[str] = []
    search = Search.of_a_decision()
    following = trigger.seek(instant, ref, search)
    for name, found in (("previous", trigger.last_before(instant, ref, search)), ("next", following.found)):
        if found is not None and trigger.is_within(found):
            values[name] = format_instant(found)
            words.append(f"{name}: {local_text(found, trigger.zone_at(found, ref))}")
    if following.at is not None and following.is_bound:
        values["none_before"] = format_instant(following.at)
        words.append(f"next: not before {local_text(following.at, trigger.zone_at(following.at, ref))}")
    told = "; ".join(words) or "nothing before it and nothing behind it"
    return Reason("not_named", f"the trigger names no such instant; {told}", None, values)
