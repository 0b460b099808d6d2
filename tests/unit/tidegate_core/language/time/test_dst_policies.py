"""What a schedule may choose for local times that a clock change leaves out or repeats (SEMANTICS 2.1 to 2.3)."""

from __future__ import annotations

import pytest

from tidegate_core.language.time.cron_fields import parse_cron
from tidegate_core.language.time.wall_clock import DstPolicy, next_fire, note_on, previous_fire, skips_between
from tidegate_core.language.time.zones import zone_named
from tidegate_core.language.values.instants import format_instant, parse_instant

ROME = zone_named("Europe/Rome")
SPRING, AUTUMN = parse_instant("2026-03-28T12:00:00Z"), parse_instant("2026-10-24T12:00:00Z")
DAY_MS = 86_400_000


def fires(expression: str, after: int, count: int, policy: DstPolicy) -> list[str]:
    found = list[str]()
    for _ in range(count):
        following = next_fire(parse_cron(expression), ROME, after, policy)
        assert following is not None
        assert previous_fire(parse_cron(expression), ROME, following + 1, policy) == following
        found.append(format_instant(following)[5:16])
        after = following
    return found


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (DstPolicy(gap="shift"), ["03-29T01:00", "03-30T00:30"]),
        (DstPolicy(gap="skip"), ["03-30T00:30", "03-31T00:30"]),
    ],
)
def test_given_a_time_in_the_gap_then_policy_decides(policy: DstPolicy, expected: list[str]) -> None:
    assert fires("30 2 * * *", SPRING, 2, policy) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (DstPolicy(overlap="first"), ["10-25T00:30", "10-26T01:30"]),
        (DstPolicy(overlap="last"), ["10-25T01:30", "10-26T01:30"]),
        (DstPolicy(overlap="both"), ["10-25T00:30", "10-25T01:30", "10-26T01:30"]),
    ],
)
def test_given_a_repeated_time_then_policy_decides(policy: DstPolicy, expected: list[str]) -> None:
    assert fires("30 2 * * *", AUTUMN, len(expected), policy) == expected


@pytest.mark.parametrize("policy", [DstPolicy(gap="skip"), DstPolicy(overlap="last"), DstPolicy("skip", "both")])
def test_given_real_cadence_then_no_policy_changes_it(policy: DstPolicy) -> None:
    for after in (SPRING, AUTUMN):
        assert fires("30 * * * *", after, 30, policy) == fires("30 * * * *", after, 30, DstPolicy())


def test_given_policy_skip_then_what_the_gap_left_out_is_told_once() -> None:
    (skip,) = skips_between(parse_cron("*/15 2 * * *"), ROME, SPRING, SPRING + DAY_MS, DstPolicy(gap="skip"))

    assert (format_instant(skip.instant), skip.reason) == ("2026-03-29T01:00:00Z", "dst_gap")
    assert [format_instant(wall * 1000)[11:16] for wall in (skip.first, skip.last)] == ["02:00", "02:45"]


@pytest.mark.parametrize(
    ("expression", "after", "until"),
    [
        pytest.param("30 3 * * *", SPRING, SPRING + DAY_MS, id="not in the gap"),
        pytest.param("30 * * * *", SPRING, SPRING + DAY_MS, id="real cadence"),
        pytest.param("30 2 * * *", AUTUMN, AUTUMN + DAY_MS, id="a repeated hour is no gap"),
        pytest.param("30 2 * * *", SPRING, parse_instant("2026-03-29T00:59:59.999Z"), id="before its end"),
        pytest.param("30 2 * * *", parse_instant("2026-03-29T01:00:00Z"), SPRING + DAY_MS, id="after its end"),
    ],
)
def test_given_nothing_left_out_then_nothing_is_told(expression: str, after: int, until: int) -> None:
    assert not list(skips_between(parse_cron(expression), ROME, after, until, DstPolicy(gap="skip")))


@pytest.mark.parametrize("policy", [DstPolicy(gap="shift"), DstPolicy(gap="skip")])
def test_given_a_day_that_a_zone_left_out_then_each_policy_tells_a_zone_jump(policy: DstPolicy) -> None:
    """Samoa had no 30 December 2011."""
    begin = parse_instant("2011-12-29T12:00:00Z")
    (skip,) = skips_between(parse_cron("0 12 * * *"), zone_named("Pacific/Apia"), begin, begin + 2 * DAY_MS, policy)

    assert (format_instant(skip.instant), skip.reason) == ("2011-12-30T10:00:00Z", "zone_jump")


@pytest.mark.parametrize(
    ("instant", "part"),
    [
        ("2026-03-29T01:00:00Z", "skips the local time"),
        ("2026-10-25T00:30:00Z", "first pass"),
        ("2026-10-25T01:30:00Z", "second pass"),
        ("2026-10-26T01:30:00Z", ""),
    ],
)
def test_given_a_fire_then_a_note_says_what_the_clock_change_did(instant: str, part: str) -> None:
    note = note_on(parse_cron("30 2 * * *"), ROME, parse_instant(instant), DstPolicy(overlap="both"))

    assert part in note
    assert bool(note) is bool(part)
