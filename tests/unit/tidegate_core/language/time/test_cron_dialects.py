"""One table of expressions in all dialects: what each means, or that it is refused and where."""

from __future__ import annotations

import pytest

from tidegate_core.language.time.cron_fields import parse_cron
from tidegate_core.language.time.cron_items import CronError, Dialect
from tidegate_core.language.time.wall_clock import next_fire
from tidegate_core.language.time.zones import zone_named
from tidegate_core.language.values.instants import format_instant, parse_instant

AFTER = parse_instant("2026-11-20T22:00:00Z")  # A Friday.


@pytest.mark.parametrize(
    ("expression", "dialect", "first"),
    [
        ("0 6 * * *", "unix5", "2026-11-21T06:00:00Z"),
        ("*/5 * * * *", "unix5", "2026-11-20T22:05:00Z"),
        ("30 4 1,15 * 5", "unix5", "2026-11-27T04:30:00Z"),
        ("30 4 1,15 * *", "unix5", "2026-12-01T04:30:00Z"),
        ("0 0 * * 0", "unix5", "2026-11-22T00:00:00Z"),
        ("0 0 * * 7", "unix5", "2026-11-22T00:00:00Z"),
        ("0 0 * * 1", "unix5", "2026-11-23T00:00:00Z"),
        ("0 22 * * 1-5", "unix5", "2026-11-23T22:00:00Z"),
        ("23 0-20/2 * * *", "unix5", "2026-11-21T00:23:00Z"),
        ("0 0 29 2 *", "unix5", "2028-02-29T00:00:00Z"),
        ("0 0 1 jan,jul *", "unix5", "2027-01-01T00:00:00Z"),
        ("@monthly", "unix5", "2026-12-01T00:00:00Z"),
        ("15 0 6 * * *", "unix6", "2026-11-21T06:00:15Z"),
        ("0 0 0 * * 1", "unix6", "2026-11-23T00:00:00Z"),
        ("0 0 0 ? * 1", "quartz", "2026-11-22T00:00:00Z"),
        ("0 0 0 ? * 2", "quartz", "2026-11-23T00:00:00Z"),
        ("0 15 10 * * ?", "quartz", "2026-11-21T10:15:00Z"),
        ("0 15 10 * * ? 2027", "quartz", "2027-01-01T10:15:00Z"),
        ("0 0-5 14 * * ?", "quartz", "2026-11-21T14:00:00Z"),
        ("0 10,44 14 ? 3 WED", "quartz", "2027-03-03T14:10:00Z"),
        ("0 15 10 L * ?", "quartz", "2026-11-30T10:15:00Z"),
        ("0 15 10 ? * 6L", "quartz", "2026-11-27T10:15:00Z"),
        ("0 15 10 ? * 6#3", "quartz", "2026-12-18T10:15:00Z"),
        ("0 11 11 11 11 ?", "quartz", "2027-11-11T11:11:00Z"),
    ],
)
def test_given_expression_then_its_first_fire_is_known(expression: str, dialect: Dialect, first: str) -> None:
    """CD-060: five fields, six with seconds, and Quartz; never guessed from their number."""
    found = next_fire(parse_cron(expression, dialect), zone_named("UTC"), AFTER)

    assert found is not None
    assert format_instant(found) == first


@pytest.mark.parametrize(
    ("expression", "dialect", "column"),
    [
        ("* * * *", "unix5", 0),
        ("0 0 0 ? * 2", "unix5", 0),
        ("* * * * * * *", "unix6", 0),
        ("0 0 * * *", "quartz", 0),
        ("0 60 * * * ?", "quartz", 3),
        ("0 6 * * monday", "unix5", 9),
        ("a b c d e", "unix5", 1),
        ("0 6 * * ?", "unix5", 9),
    ],
)
def test_given_a_wrong_count_or_garbage_then_it_is_refused_with_its_place(
    expression: str, dialect: Dialect, column: int
) -> None:
    """CD-060: other counts are refused, garbage with its position."""
    with pytest.raises(CronError) as caught:
        parse_cron(expression, dialect)

    assert caught.value.column == column
