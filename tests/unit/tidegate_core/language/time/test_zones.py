"""Zones: names, offsets, and stretches of constant offset against the zone files themselves."""

from __future__ import annotations

import itertools
import struct
from datetime import datetime, timedelta
from importlib import metadata, resources
from zoneinfo import ZoneInfo

import pytest

from tests.support.tier import at_night
from tidegate_core.language.time.zones import TZDATA_VERSION, Segment, iana_names, zone_hint, zone_named

FIRST, LAST = 1_420_070_400, 2_145_916_800  # 2015 to 2037


def changes_in_file(name: str) -> list[tuple[int, int]]:
    """(second, offset from then on) of each real change that a zone's file lists."""
    raw = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    skip = _block_size(raw[:44], 4)
    header = raw[44 + skip : 88 + skip]
    count, kinds = struct.unpack(">6L", header[20:44])[3:5]
    body = raw[88 + skip :]
    seconds = struct.unpack(f">{count}q", body[: 8 * count])
    indexes = body[8 * count : 9 * count]
    offsets = [struct.unpack(">l", body[9 * count + 6 * n : 9 * count + 6 * n + 4])[0] for n in range(kinds)]
    found, before = [], None
    for second, index in zip(seconds, indexes, strict=True):
        if offsets[index] != before and before is not None and FIRST <= second < LAST:
            found.append((second, offsets[index]))
        before = offsets[index]
    return found


def _block_size(header: bytes, width: int) -> int:
    utc, standard, leaps, times, kinds, characters = map(int, struct.unpack(">6L", header[20:44]))
    return times * width + times + kinds * 6 + characters + leaps * (width + 4) + standard + utc


def segments(name: str) -> list[Segment]:
    zone, found = zone_named(name), []
    second = FIRST
    while second < LAST:
        found.append(zone.segment_at(second))
        second = found[-1].end
    return found


def offset_by_zoneinfo(name: str, second: int) -> int:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        rules = ZoneInfo.from_file(file, name)
    offset = datetime.fromtimestamp(second, rules).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


def test_given_each_zone_then_changes_are_those_of_its_file() -> None:
    """Also proves that no zone changes twice within the span between two probes. The quick tier looks at each tenth zone."""
    compared = 0
    step = at_night(1, else_=10)
    for name in sorted(iana_names())[::step]:
        listed = changes_in_file(name)
        compared += len(listed)
        last_listed = listed[-1][0] if listed else FIRST
        found = [
            (segment.start, segment.offset)
            for segment in segments(name)
            if segment.offset != segment.offset_before and segment.start >= FIRST
        ]
        assert [change for change in found if change[0] <= last_listed] == listed, name
    assert compared > 500 // step, (
        "files list changes up to where their closing rule begins; some zones have no such rule"
    )


def test_given_segments_then_they_join_and_offsets_are_zoneinfos() -> None:
    for name in ("Europe/Rome", "Africa/Casablanca", "Antarctica/Troll", "Australia/Lord_Howe"):
        stretches = segments(name)
        assert all(a.end == b.start and a.offset == b.offset_before for a, b in itertools.pairwise(stretches))
        assert {each.offset - each.offset_before for each in stretches} != {0}, (
            "a zone that changes, or nothing is compared"
        )
        for each in stretches:
            for second in (each.start, (each.start + each.end) // 2, each.end - 1):
                assert offset_by_zoneinfo(name, second) == each.offset, (name, second)


def test_given_a_change_back_then_repeated_times_are_marked() -> None:
    second_pass = zone_named("Europe/Rome").segment_at(1_792_890_000 + 60)  # 2026-10-25T01:01Z

    assert second_pass.offset - second_pass.offset_before == -3600
    assert second_pass.fresh_wall - (second_pass.start + second_pass.offset) == 3600


@pytest.mark.parametrize(
    "name", ["UTC", "Europe/Rome", "America/Argentina/Buenos_Aires", "+05:30", "-03:00", "Etc/GMT+5"]
)
def test_given_iana_name_or_offset_then_it_is_accepted(name: str) -> None:
    assert zone_named(name).name == name


@pytest.mark.parametrize("name", ["EST", "CET", "MST", "EST5EDT", "GMT", "PST8PDT", "IST"])
def test_given_abbreviation_then_it_is_refused_with_a_city(name: str) -> None:
    with pytest.raises(ValueError, match="abbreviation"):
        zone_named(name)
    assert "use an IANA name" in zone_hint(name) or "did you mean" in zone_hint(name)


@pytest.mark.parametrize(
    ("name", "meant"), [("GMT+2", "+02:00"), ("UTC-0330", "-03:30"), ("utc+5:30", "+05:30"), ("+2", "+02:00")]
)
def test_given_an_offset_as_people_write_it_then_the_offset_is_named_and_not_a_zone_of_the_other_sign(
    name: str, meant: str
) -> None:
    """`GMT+2` was answered with Etc/GMT+2, which is two hours behind."""
    with pytest.raises(ValueError, match="unknown"):
        zone_named(name)
    assert zone_hint(name) == f"write the offset alone: {meant}"
    assert zone_named(meant).name == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [("Europe/Berlim", "Europe/Berlin"), ("europe/rome", "Europe/Rome"), ("America/NewYork", "America/New_York")],
)
def test_given_misspelt_zone_then_the_nearest_is_named(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match="unknown"):
        zone_named(name)
    assert meant in zone_hint(name)


@pytest.mark.parametrize(
    "name", ["+15:00", "+5:30", "+05:99", "", "../etc/passwd", "Europe", "posix/Europe/Rome", "Factory"]
)
def test_given_anything_else_then_it_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"unknown|offset"):
        zone_named(name)


def test_given_tzdata_then_its_version_is_known() -> None:
    assert metadata.version("tzdata") == TZDATA_VERSION
