"""Cron expressions: what is read, and how faults are told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.time.cron_fields import parse_cron, smallest_gap_seconds
from tidegate_core.time.cron_text import MAX_EXPRESSION_CHARACTERS, CronError, Dialect

WHOLE_WEEK = frozenset(range(7))


def refusal(expression: str, dialect: Dialect = "unix5") -> CronError:
    with pytest.raises(CronError) as caught:
        parse_cron(expression, dialect)
    return caught.value


def test_given_seconds_first_then_unix6_reads_them_as_seconds() -> None:
    assert parse_cron("*/8 * * * * *", "unix6").seconds == (0, 8, 16, 24, 32, 40, 48, 56)


def test_given_five_fields_then_each_is_expanded() -> None:
    fields = parse_cron("0,30 6-8 1,15 jan-mar mon-fri")

    assert fields.seconds == (0,)
    assert fields.minutes == tuple(hour * 60 + minute for hour in (6, 7, 8) for minute in (0, 30))
    assert fields.days_of_month == {1, 15}
    assert fields.months == {1, 2, 3}
    assert fields.days_of_week == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("text", ["0", "7", "sun", "SUN", "7-7", "0,7", "07"])
def test_given_zero_or_seven_then_it_is_sunday(text: str) -> None:
    assert parse_cron(f"0 0 * * {text}").days_of_week == {0}


def test_given_range_to_seven_then_it_ends_on_sunday() -> None:
    assert parse_cron("0 0 * * 5-7").days_of_week == {5, 6, 0}
    assert parse_cron("0 0 * * 0-7").days_of_week == WHOLE_WEEK
    assert parse_cron("0 0 * * 1-7/2").days_of_week == {1, 3, 5, 0}


@pytest.mark.parametrize(
    ("expression", "either"),
    [
        pytest.param("0 0 1 * mon", True, id="both restricted: one suffices"),
        pytest.param("0 0 * * mon", False, id="a star restricts nothing"),
        pytest.param("0 0 1 * *", False, id="nor does it in the day of week"),
        pytest.param("0 0 */2 * mon", False, id="*/2 begins with a star: both have to fit"),
        pytest.param("0 0 1 * */2", False, id="also in the day of week"),
    ],
)
def test_given_two_day_fields_then_vixies_rule_decides(expression: str, either: bool) -> None:
    assert parse_cron(expression).either_day is either


def test_given_day_rule_then_it_overrides_vixies() -> None:
    assert parse_cron("0 0 13 * fri", day_rule="and").either_day is False
    assert parse_cron("0 0 */2 * mon", day_rule="or").either_day is True
    assert parse_cron("0 0 * * mon", day_rule="or").either_day is False


@pytest.mark.parametrize(
    ("macro", "meaning"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
    ],
)
def test_given_macro_then_it_stands_for_its_fields(macro: str, meaning: str) -> None:
    assert parse_cron(macro) == parse_cron(meaning)
    assert parse_cron(macro, "unix6") == parse_cron(f"0 {meaning}", "unix6")


@pytest.mark.parametrize(
    ("expression", "column", "nearest"),
    [
        ("0 24 * * *", 3, "0 23 * * *"),
        ("61 24 * * MOM", 1, "59 23 * * MON"),
        ("0 22-2 * * *", 3, "0 22-23,0-2 * * *"),
        ("5/15 * * * *", 1, "5-59/15 * * * *"),
        ("*/90 * * * *", 3, "*/59 * * * *"),
        ("*/0 * * * *", 3, "*/1 * * * *"),
        ("0 0 0 * *", 5, "0 0 1 * *"),
        ("0 0 * foo-dec *", 7, None),
        ("0 0 ? * *", 5, "0 0 * * *"),
        ("0 0 * * fri-mon", 9, "0 0 * * fri-6,0-mon"),
        ("1,,2 * * * *", 3, None),
        ("*-5 * * * *", 1, "* * * * *"),
    ],
)
def test_given_faulty_item_then_error_names_column_and_nearest_valid_form(
    expression: str, column: int, nearest: str | None
) -> None:
    error = refusal(expression)

    assert error.column == column
    if nearest is not None:
        assert error.hint == f'nearest valid form: "{nearest}"'
        parse_cron(nearest)


@pytest.mark.parametrize("expression", ["0 0 * * * *", "0 0 0 ? * 2 2026"])
def test_given_more_fields_without_dialect_then_reason_is_quartzs_weekdays(expression: str) -> None:
    error = refusal(expression)

    assert "dialect has to be given" in error.problem
    assert "Quartz counts weekdays 1-7" in error.hint


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("H 2 * * *", "planned for 0.3"),
        ("H/15 2 * * *", "planned for 0.3"),
        ("H(0-29) 2 * * *", "planned for 0.3"),
        ("0 0 L * *", "planned for 0.3"),
        ("0 0 15W * *", "planned for 0.3"),
        ("0 0 * * 5#3", "planned for 0.3"),
        ("0 0 * * 5L", "planned for 0.3"),
        ("R 2 * * *", "random"),
        ("R(0-9) 2 * * *", "random"),
        ("@reboot", "names no time"),
        ("@dayly", "is no macro"),
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
    ],
)
def test_given_what_is_not_spoken_then_it_is_refused_by_name(expression: str, part: str) -> None:
    assert part in refusal(expression).problem


@pytest.mark.parametrize("expression", ["0 0 31 2 *", "0 0 30,31 feb *", "0 0 31 4,6,9,11 *", "0 0 31 6 */2"])
def test_given_date_that_no_month_has_then_it_is_refused(expression: str) -> None:
    assert "impossible date" in refusal(expression).problem


@pytest.mark.parametrize("expression", ["0 0 29 2 *", "0 0 31 2 mon", "0 0 28-31 2 *", "0 0 31 */2 *"])
def test_given_date_that_some_month_has_then_it_is_accepted(expression: str) -> None:
    parse_cron(expression)


def test_given_expression_above_its_limit_then_it_is_refused_unread() -> None:
    refusal("0," * MAX_EXPRESSION_CHARACTERS + "0 * * * *")
    assert parse_cron(",".join(["0"] * 100) + " * * * *").minutes[:2] == (0, 60)


@given(st.text(max_size=40))
def test_given_any_text_then_only_cron_errors_come_out(text: str) -> None:
    try:
        parse_cron(text)
    except CronError:
        return


items = st.one_of(
    st.just("*"),
    st.integers(2, 30).map(lambda step: f"*/{step}"),
    st.integers(0, 59).map(str),
    st.tuples(st.integers(0, 29), st.integers(31, 59), st.integers(1, 20)).map(lambda t: f"{t[0]}-{t[1]}/{t[2]}"),
)


@given(st.lists(items, min_size=1, max_size=4))
def test_given_minute_items_then_expansion_equals_plain_arithmetic(parts: list[str]) -> None:
    """Croniter expands; this is the same from the definition of each item."""
    expected: set[int] = set()
    for part in parts:
        span, _, step = part.partition("/")
        low, _, high = ("0-59" if span == "*" else span).partition("-")
        expected.update(range(int(low), int(high or low) + 1, int(step or 1)))

    assert parse_cron(",".join(parts) + " 0 * * *").minutes == tuple(sorted(expected))


@pytest.mark.parametrize(
    ("expression", "dialect", "gap"),
    [
        ("*/8 * * * * *", "unix6", 4),  # 56 to the next minute's 0
        ("0,1 0 0 * * *", "unix6", 1),
        ("* * * * *", "unix5", 60),
        ("0 6 * * *", "unix5", 86_400),
        ("0 0,23 * * *", "unix5", 3_600),
        ("59,0 * * * *", "unix5", 60),
        ("0 0,23 1 * *", "unix5", 82_800),
        ("0 0 * * mon", "unix5", 86_400),
    ],
)
def test_given_fields_then_smallest_gap_is_known_without_walking(expression: str, dialect: Dialect, gap: int) -> None:
    assert smallest_gap_seconds(parse_cron(expression, dialect)) == gap


def test_given_walls_then_next_and_previous_are_inverse() -> None:
    fields = parse_cron("*/20 9-17 * * mon-fri")
    walls = [1_700_000_000]
    for _ in range(200):
        following = fields.next_wall(walls[-1])
        assert following is not None
        walls.append(following)

    assert walls == sorted(set(walls))
    assert [fields.previous_wall(wall) for wall in walls[2:]] == walls[1:-1]
