"""A local time that a clock change leaves out is excluded by what it is itself, not by the instant at which it fires."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.support.tier import examples
from tidegate_core.language.triggers import Trigger
from tidegate_core.language.triggers.preview import local_text
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import Instant, format_instant, parse_instant

ANY: TypeAdapter[Any] = TypeAdapter(Trigger)
ROME, NUUK = "Europe/Rome", "America/Nuuk"
GAPS = {
    ROME: "2026-03-29T01:00:00Z",
    "Europe/Berlin": "2026-03-29T01:00:00Z",
    NUUK: "2026-03-29T01:00:00Z",
    "Asia/Beirut": "2026-03-28T22:00:00Z",
    "Australia/Lord_Howe": "2026-10-03T15:30:00Z",
    "Asia/Tokyo": None,
}
"""Rome's and Berlin's leave out the same local times, Nuuk's the last hour of Saturday at the very same instant, Beirut's the first one
of Sunday; Lord Howe's has half an hour."""
SUNDAY = {"type": "dates", "first": "2026-03-29"}
SATURDAY = {"type": "dates", "first": "2026-03-28"}
AT_HALF_PAST_TWO = {"type": "cron", "expression": "30 2 * * sun"}


def cron(expression: str, zone: str, *exclude: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "cron", "expression": expression, "zone": zone, "exclude": list(exclude) or None, **fields}


def union(*specs: dict[str, Any], exclude: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"type": "times", "specs": list(specs), "exclude": exclude}


def forth(trigger: TimeTrigger, after: Instant, until: Instant) -> Iterator[Instant]:
    following = trigger.next_after(after, "n/a")
    while following is not None and following < until:
        yield following
        following = trigger.next_after(following, "n/a")


def back(trigger: TimeTrigger, before: Instant, floor: Instant) -> list[Instant]:
    found = list[Instant]()
    while (preceding := trigger.last_before(before, "n/a", Search(floor=floor))) is not None:
        found.append(preceding)
        before = preceding
    return found[::-1]


@pytest.mark.parametrize(
    ("trigger", "fires"),
    [
        pytest.param(cron("30 2 * * *", ROME, AT_HALF_PAST_TWO), ["28 02:30", "30 02:30"], id="its minute"),
        pytest.param(
            cron("30 2 * * *", ROME, {"type": "cron", "expression": "0 3 * * *"}),
            ["28 02:30", "29 03:00", "30 02:30"],
            id="the minute after the gap says nothing of it",
        ),
        pytest.param(
            cron("15,30 2 * * *", ROME, AT_HALF_PAST_TWO),
            ["28 02:15", "28 02:30", "29 03:00", "30 02:15", "30 02:30"],
            id="another one lands there",
        ),
        pytest.param(
            cron("30 2,3 * * *", ROME, AT_HALF_PAST_TWO),
            ["28 02:30", "28 03:30", "29 03:30", "30 02:30", "30 03:30"],
            id="what follows is no part of it",
        ),
        pytest.param(
            cron("0 2,3 * * *", ROME, {"type": "cron", "expression": "0 2 * * sun"}),
            ["28 02:00", "28 03:00", "29 03:00", "30 02:00", "30 03:00"],
            id="the instant after the gap is named itself",
        ),
        pytest.param(
            cron("0 2,3 * * *", ROME, {"type": "cron", "expression": "0 3 * * *"}),
            ["28 02:00", "29 03:00", "30 02:00"],
            id="it is left out itself",
        ),
        pytest.param(
            cron("30 23 * * *", NUUK, SUNDAY),
            ["27 23:30", "29 00:00", "30 23:30"],
            id="the day before is not left out",
        ),
        pytest.param(cron("30 23 * * *", NUUK, SATURDAY), ["27 23:30", "29 23:30", "30 23:30"], id="the day before is"),
        pytest.param(
            cron("30 2 * * *", ROME, {**AT_HALF_PAST_TWO, "zone": "Europe/Berlin"}),
            ["28 02:30", "30 02:30"],
            id="a clock that makes the same change",
        ),
        pytest.param(
            cron("30 2 * * *", ROME, {"type": "cron", "expression": "0 1 29 3 *", "zone": "UTC"}),
            ["28 02:30", "30 02:30"],
            id="a clock that makes none sees the instant",
        ),
        pytest.param(
            union(cron("30 2 * * *", ROME), exclude=[{**AT_HALF_PAST_TWO, "zone": ROME}]),
            ["28 02:30", "30 02:30"],
            id="beside specs",
        ),
        pytest.param(
            union(
                cron("15,30 2 * * *", ROME, AT_HALF_PAST_TWO),
                exclude=[{"type": "cron", "expression": "15 2 29 3 *", "zone": ROME}],
            ),
            ["28 02:15", "28 02:30", "30 02:15", "30 02:30"],
            id="the union leaves out what the spec does not",
        ),
        pytest.param(
            union(cron("30 2 * * *", ROME), cron("0 1 * * *", "UTC"), exclude=[{**AT_HALF_PAST_TWO, "zone": ROME}]),
            ["28 02:00", "28 02:30", "29 03:00", "30 02:30", "30 03:00"],
            id="another spec names the instant",
        ),
        pytest.param(
            union(cron("30 23 * * *", NUUK), exclude=[{**SUNDAY, "zone": NUUK}]),
            ["28 02:30", "29 03:00"],
            id="beside specs, the day before is not left out",
        ),
    ],
)
def test_given_an_exclusion_at_a_gap_then_it_is_about_the_local_time_that_was_named(
    trigger: dict[str, Any], fires: list[str]
) -> None:
    parsed: TimeTrigger = ANY.validate_python(trigger)
    zone = ROME if trigger["type"] == "times" else trigger["zone"]
    begin = parse_instant("2026-03-27T22:00:00Z")
    end = parse_instant("2026-03-31T01:59:00Z" if zone == NUUK else "2026-03-30T01:59:00Z")

    found = list(forth(parsed, begin, end))
    assert [local_text(instant, zone)[12:20] for instant in found] == fires
    assert back(parsed, end, begin) == found
    assert all(parsed.names(instant, "n/a") for instant in found)


@pytest.mark.parametrize(
    ("exclude", "told"),
    [
        pytest.param([], ("02:15", "02:45"), id="nothing"),
        pytest.param([SUNDAY], None, id="the day"),
        pytest.param([{"type": "cron", "expression": "0,15 2 * * *"}], ("02:30", "02:45"), id="the first"),
        pytest.param([{"type": "cron", "expression": "40-50 2 * * *"}], ("02:15", "02:30"), id="the last"),
        pytest.param([{"type": "cron", "expression": "0 3 * * *"}], ("02:15", "02:45"), id="the instant after the gap"),
    ],
)
def test_given_skipped_local_times_then_those_that_are_excluded_are_not_told(
    exclude: list[dict[str, Any]], told: tuple[str, str] | None
) -> None:
    """An excluded instant is no occurrence: nothing is written about it."""
    begin = parse_instant("2026-03-28T12:00:00Z")
    document = cron("15,30,45 2 * * *", ROME, *exclude, dst_gap="skip")
    beside = union(cron("15,30,45 2 * * *", ROME, dst_gap="skip"), exclude=[{**each, "zone": ROME} for each in exclude])
    for each in (document, union(document), beside):
        skips = ANY.validate_python(each).skips(begin, begin + 86_400_000, "n/a")
        found = [tuple(format_instant(wall * 1000)[11:16] for wall in (skip.first, skip.last)) for skip in skips]
        assert found == ([] if told is None else [told])


# -- against a walk over all minutes --------------------------------------------------------------------------------------


@cache
def local(zone: str, instant: datetime) -> datetime:
    return instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def names(expression: str, wall: datetime) -> bool:
    minutes, hours, days, _, _ = expression.split()
    fields = ((minutes, wall.minute), (hours, wall.hour), (days, wall.day))
    return all(text == "*" or value in map(int, text.split(",")) for text, value in fields)


def leaves_out(exclusion: dict[str, Any], wall: datetime) -> bool:
    if exclusion["type"] == "dates":
        return bool(exclusion["first"] <= f"{wall:%Y-%m-%d}" <= exclusion["last"])
    return names(exclusion["expression"], wall)


def occurrences(
    spec: dict[str, Any], beside: list[dict[str, Any]], begin: datetime, minutes: int
) -> Iterator[datetime]:
    """Yields each instant of a spec at fixed hours, once for each local time that it stands for and that is left."""
    zone, exclude = spec["zone"], [*(spec["exclude"] or []), *beside]
    for instant in (begin + timedelta(minutes=minute) for minute in range(minutes)):
        wall = local(zone, instant)
        is_shown_again = any(local(zone, instant - timedelta(minutes=ago)) == wall for ago in (30, 60))
        if names(spec["expression"], wall) and not is_shown_again:
            others = (leaves_out(each, local(each.get("zone", zone), instant)) for each in exclude)
            if not any(others):
                yield instant
        missing = wall - local(zone, instant - timedelta(minutes=1)) - timedelta(minutes=1)
        for behind in range(int(missing.total_seconds() // 60), 0, -1):
            lost = wall - timedelta(minutes=behind)
            clocks = ((each, each.get("zone", zone)) for each in exclude)
            walls = (
                (each, lost if GAPS[clock] == GAPS[zone] and local(clock, instant) == wall else local(clock, instant))
                for each, clock in clocks
            )
            if names(spec["expression"], lost) and not any(leaves_out(each, seen) for each, seen in walls):
                yield instant


HOURS = st.sampled_from(["0", "2", "2,3", "23", "0,23", "22,23,0", "1,2,3"])
MINUTES = st.sampled_from(["0", "30", "0,30", "15", "15,45", "*"])
EXCLUDED = st.one_of(
    st.builds(
        lambda minutes, hours, days: {"type": "cron", "expression": f"{minutes} {hours} {days} * *"},
        *(MINUTES, st.one_of(HOURS, st.just("*")), st.sampled_from(["*", "28", "29", "4", "3,29"])),
    ),
    st.builds(
        lambda first, days: {"type": "dates", "first": first, "last": f"{first[:-2]}{int(first[-2:]) + days:02}"},
        *(st.sampled_from(["2026-03-20", "2026-03-28", "2026-03-29", "2026-10-03", "2026-10-04"]), st.integers(0, 2)),
    ),
)
ZONES = st.sampled_from(sorted(GAPS))
SPEC = st.builds(
    lambda minutes, hours, zone, exclude: cron(f"{minutes} {hours} * * *", zone, *exclude),
    *(MINUTES, HOURS, ZONES, st.lists(EXCLUDED, max_size=2)),
)
BESIDE = st.lists(st.builds(lambda exclusion, zone: {**exclusion, "zone": zone}, EXCLUDED, ZONES), max_size=2)


@settings(max_examples=examples(80))
@given(
    specs=st.lists(SPEC, min_size=1, max_size=3), beside=BESIDE, at=st.sampled_from(sorted(filter(None, GAPS.values())))
)
def test_given_any_exclusions_around_a_gap_then_what_is_left_is_what_a_walk_over_all_minutes_finds(
    specs: list[dict[str, Any]], beside: list[dict[str, Any]], at: str
) -> None:
    begin = datetime.fromisoformat(at).astimezone(UTC) - timedelta(hours=12)
    minutes = 36 * 60
    expected = {int(each.timestamp()) * 1000 for spec in specs for each in occurrences(spec, beside, begin, minutes)}
    start = int(begin.timestamp()) * 1000
    until = start + minutes * 60_000
    # What leaves out all that it names would be searched to the end of time.
    ending = [{**spec, "end": format_instant(until)} for spec in specs]
    parsed: TimeTrigger = ANY.validate_python(union(*ending, exclude=beside or None))

    assert list(forth(parsed, start - 1, until)) == sorted(expected)
    assert back(parsed, until, start) == sorted(expected)
    if len(specs) == 1:
        alone: TimeTrigger = ANY.validate_python(
            {**ending[0], "exclude": [*(specs[0]["exclude"] or []), *beside] or None}
        )
        assert list(forth(alone, start - 1, until)) == sorted(expected)
        assert back(alone, until, start) == sorted(expected)
