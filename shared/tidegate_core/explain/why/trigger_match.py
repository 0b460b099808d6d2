"""Whether a time trigger names an instant, and if not, why: bounds, exclusions, clock changes, or simply not."""

from __future__ import annotations

from itertools import islice

from tidegate_core.explain.why.query_time import QueryTime, is_jump, of_wall
from tidegate_core.explain.why.reason import Reason
from tidegate_core.language.constraints.constraint import Compared
from tidegate_core.language.time.zones import Segment
from tidegate_core.language.triggers.exclusions import kept_in_gap
from tidegate_core.language.triggers.on_time.times import TimesTrigger
from tidegate_core.language.triggers.preview import local_text
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import Instant, as_datetime, format_instant


def unnamed(trigger: TimeTrigger, ref: str, asked: QueryTime, instant: Instant) -> list[Reason]:
    """Returns why the trigger does not name the instant that was asked about; the first of its specs that could say so."""
    parts = (*trigger.specs, trigger) if isinstance(trigger, TimesTrigger) else (trigger,)
    if asked.gap is not None and asked.wall is not None:
        # That an instant after the gap is left out, or fires in another pass, says nothing of a local time in it.
        of_gap = (_of_gap(part, trigger, ref, asked.gap, asked.wall) for part in parts)
        # A spec that leaves it out is no reason beside another one that does not.
        reasons = sorted(filter(None, of_gap), key=lambda reason: reason.code != "dst_shift")
    else:
        each = (_left_out(part, ref, instant) or _other_pass(part, ref, instant) for part in parts)
        reasons = list(islice(filter(None, each), 1))
    return reasons[:1] or [_not_named(trigger, ref, instant)]


def _of_gap(part: TimeTrigger, whole: TimeTrigger, ref: str, gap: Segment, wall: int) -> Reason | None:
    """A local time that does not exist, and that the part of the trigger would name if it did."""
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
        return Reason("zone_jump", f"{text}: the zone was defined anew at {format_instant(after)}", None, values)
    if clock.policy.gap == "skip":
        return Reason("dst_gap", f"{text}, and dst_gap is skip", None, values)
    text = f"{text}; it fires at the first instant after the gap, {format_instant(after)}"
    return Reason("dst_shift", text, None, values)


def _left_out(trigger: TimeTrigger, ref: str, instant: Instant) -> Reason | None:
    """Something that the trigger would name without its bounds and exclusions."""
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
    """A local time that the clock repeats, and that fires in its other pass."""
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
