"""Cron expressions: what is read, and how faults are told."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.time.cron_fields import parse_cron, smallest_gap_seconds
from tidegate_core.language.time.cron_items import MAX_EXPRESSION_CHARACTERS, CronError, Dialect

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
        ("*/0 * * * *", 3, "*/1 * * * *"),
        ("0 0 0 * *", 5, "0 0 1 * *"),
        ("0 0 * foo-dec *", 7, None),
        ("0 0 ? * *", 5, "0 0 * * *"),
        ("0 0 * * fri-mon", 9, "0 0 * * fri-sat,sun-mon"),
        ("0 0 * * SAT-1", 9, "0 0 * * SAT,sun-1"),
        ("0 0 31-1 * *", 5, "0 0 31,1 * *"),
        ("0 0 * nov-feb *", 7, "0 0 * nov-dec,jan-feb *"),
        ("0,,5 * * * *", 3, "0,5 * * * *"),
        (",0 * * * *", 1, "0 * * * *"),
        ("0 6, * * *", 5, "0 6 * * *"),
        ("*5 * * * *", 1, "*/5 * * * *"),
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


@pytest.mark.parametrize("expression", [", * * * *", "0,**,5 * * * *", "0 0 32 2 *", "0 0 0 4,6 *,x"])
def test_given_a_fault_whose_mended_form_is_none_either_or_means_everything_then_nothing_is_suggested(
    expression: str,
) -> None:
    """`0,,5` was answered with `0,*,5`, which is each minute, and 32 February with the 31st."""
    assert "nearest" not in refusal(expression).hint


@pytest.mark.parametrize(
    ("expression", "dialect", "nearest"),
    [
        ("0 6 * * *", "unix6", "0 0 6 * * *"),
        ("61 6 * * *", "unix6", "0 59 6 * * *"),
        ("0 6 * * *", "quartz", "0 0 6 * * ?"),
        ("0 6 * * mon", "quartz", "0 0 6 ? * mon"),
    ],
)
def test_given_a_field_too_few_then_the_form_with_seconds_is_one_that_is_taken(
    expression: str, dialect: Dialect, nearest: str
) -> None:
    assert f'nearest valid form: "{nearest}"' in refusal(expression, dialect).hint
    parse_cron(nearest, dialect)


@given(
    st.lists(
        st.text("0159,-/*?LW#H", min_size=1, max_size=6) | st.sampled_from(["mon", "feb", "32", "70", "*/0"]),
        min_size=4,
        max_size=7,
    ),
    st.sampled_from(["unix5", "unix6", "quartz"]),
)
def test_given_any_text_then_what_is_suggested_is_taken(words: list[str], dialect: Dialect) -> None:
    try:
        parse_cron(" ".join(words), dialect)
    except CronError as error:
        if error.hint.startswith("nearest valid form"):
            parse_cron(error.hint.split('"')[1], dialect)


@pytest.mark.parametrize(
    ("line", "dialect", "told"),
    [
        ("0 6 * * * root /usr/bin/backup --all", "unix5", '"0 6 * * *", "root" is the user column, and the command'),
        ("0 6 * * * /usr/bin/backup", "unix5", '"0 6 * * *", and the command belongs into target.program'),
        ("@daily www-data /usr/bin/backup", "unix5", '"@daily", "www-data" is the user column'),
        ("0 0 6 * * * root run", "unix6", '"0 0 6 * * *", "root" is the user column'),
        ("0 0 6 * * ? root run", "quartz", '"0 0 6 * * ?", "root" is the user column'),
    ],
)
def test_given_a_line_of_a_crontab_then_expression_user_and_command_are_named(
    line: str, dialect: Dialect, told: str
) -> None:
    """It was taken for seven fields of another dialect."""
    assert told in refusal(line, dialect).hint


def test_given_a_range_that_begins_beyond_its_field_then_no_form_is_near() -> None:
    error = refusal("70-10 * * * *")

    assert (error.column, error.hint) == (1, "")
    assert "70 is not in 0-59" in error.problem


@pytest.mark.parametrize(
    ("expression", "period"), [("*/90 * * * *", "90m"), ("0 */36 * * *", "36h"), ("0-30/75 * * * *", "75m")]
)
def test_given_a_step_beyond_its_field_then_a_period_is_what_was_meant(expression: str, period: str) -> None:
    assert refusal(expression).hint == f"for an elapsed time use a trigger of type every with period {period}"


@pytest.mark.parametrize("expression", ["0 0 * * * *", "0 0 0 ? * 2 2026"])
def test_given_more_fields_without_dialect_then_reason_is_quartzs_weekdays(expression: str) -> None:
    error = refusal(expression)

    assert "dialect has to be given" in error.problem
    assert "Quartz counts weekdays 1-7" in error.hint


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("0 0 L * *", "belongs to the Quartz dialect"),
        ("0 0 15W * *", "belongs to the Quartz dialect"),
        ("0 0 * * 5#3", "belongs to the Quartz dialect"),
        ("0 0 * * 5L", "belongs to the Quartz dialect"),
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


@pytest.mark.parametrize(
    ("expression", "first_day"),
    [
        pytest.param("0 0 29 2 *", date(1972, 2, 29), id="in leap years"),
        pytest.param("0 0 31 2 mon", date(1970, 2, 2), id="or on Mondays"),
        pytest.param("0 0 28-31 2 *", date(1970, 2, 28), id="the first of them"),
        pytest.param("0 0 31 */2 *", date(1970, 1, 31), id="in some of the months"),
    ],
)
def test_given_date_that_some_month_has_then_it_is_accepted(expression: str, first_day: date) -> None:
    wall = parse_cron(expression).next_wall(0)
    assert wall == (first_day - date(1970, 1, 1)) // timedelta(seconds=1)


def test_given_expression_above_its_limit_then_it_is_refused_unread() -> None:
    refusal("0," * MAX_EXPRESSION_CHARACTERS + "0 * * * *")
    assert parse_cron(",".join(["0"] * 100) + " * * * *").minutes[:2] == (0, 60)


FIELDS = st.sampled_from("* */2 0 7 31 5-9 9-5 1,3 60 mon jan".split()) | st.text("0123456789*/,-", max_size=4)


@given(st.text(max_size=40) | st.lists(FIELDS, min_size=5, max_size=5).map(" ".join))
def test_given_any_text_then_only_cron_errors_come_out(text: str) -> None:
    try:
        fields = parse_cron(text)
    except CronError:
        return
    assert {*fields.seconds} <= {*range(60)}
    assert {*fields.minutes} <= {*range(1_440)}
    assert fields.next_wall(0) is not None, "what is accepted names a time"


MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
WEEKDAYS = "sun mon tue wed thu fri sat".split()

Item: TypeAlias = tuple[str, frozenset[int]]
"""The text of a list item, and what it names: made together, so that no reading of the text is trusted."""


def items(low: int, high: int, names: dict[int, str] | None = None) -> st.SearchStrategy[list[Item]]:
    """Lists of stars, single values and ranges, all with or without a step; both ends of a range may be the same."""

    def written(value: int, as_name: bool) -> str:
        return names.get(value, str(value)) if names and as_name else str(value)

    def one(ends: tuple[int, int], step: int, form: str, as_name: bool) -> Item:
        first, last = sorted(ends)
        suffix = "" if step == 0 else f"/{step}"
        if form == "star":
            return f"*{suffix}", frozenset(range(low, high + 1, step or 1))
        if form == "value":
            return written(first, as_name), frozenset({first})
        return f"{written(first, as_name)}-{written(last, as_name)}{suffix}", frozenset(
            range(first, last + 1, step or 1)
        )

    value = st.integers(low, high)
    ends = st.one_of(st.tuples(value, value), value.map(lambda both: (both, both)))
    item = st.builds(one, ends, st.integers(0, high - low), st.sampled_from(["star", "value", "range"]), st.booleans())
    return st.lists(item, min_size=1, max_size=4)


def joined(parts: list[Item]) -> tuple[str, set[int]]:
    return ",".join(text for text, _ in parts), {value for _, values in parts for value in values}


@given(items(0, 59), items(0, 59), items(0, 23))
def test_given_items_of_seconds_minutes_and_hours_then_expansion_is_what_they_were_made_of(
    of_second: list[Item], of_minute: list[Item], of_hour: list[Item]
) -> None:
    (second, seconds), (minute, minutes), (hour, hours) = joined(of_second), joined(of_minute), joined(of_hour)

    fields = parse_cron(f"{second} {minute} {hour} * * *", "unix6")

    assert set(fields.seconds) == seconds
    assert set(fields.minutes) == {h * 60 + m for h in hours for m in minutes}


@given(
    items(1, 31),
    items(1, 12, dict(enumerate(MONTHS, start=1))),
    items(0, 6, dict(enumerate(WEEKDAYS))),
)
def test_given_items_of_days_and_months_then_expansion_is_what_they_were_made_of(
    of_day: list[Item], of_month: list[Item], of_week: list[Item]
) -> None:
    (day, days), (month, months), (week, weekdays) = joined(of_day), joined(of_month), joined(of_week)

    # Each alone: together they may name a date that no month has.
    assert parse_cron(f"0 0 {day} * *").days_of_month == days
    assert parse_cron(f"0 0 1 {month} *").months == months
    assert parse_cron(f"0 0 * * {week}").days_of_week == weekdays


@pytest.mark.parametrize(
    ("expression", "plain"),
    [
        ("0 6-6 * * *", "0 6 * * *"),
        ("0-0 6 * * *", "0 6 * * *"),
        ("0 6 1-1 * *", "0 6 1 * *"),
        ("0 6 * jan-jan *", "0 6 * 1 *"),
        ("0 6 * * mon-mon", "0 6 * * 1"),
        ("0 6-6,12 * * *", "0 6,12 * * *"),
        ("1-1/2 * * * *", "1 * * * *"),
        ("0 0 * * 7-7/2", "0 0 * * 0"),
    ],
)
def test_given_range_of_one_then_it_is_that_one_and_not_the_whole_field(expression: str, plain: str) -> None:
    assert parse_cron(expression) == parse_cron(plain)


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
