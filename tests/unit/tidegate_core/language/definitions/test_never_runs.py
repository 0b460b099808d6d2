"""Who can only expire is warned of, and nobody else: told by the windows alone, and shown by the simulator."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import Doc
from tests.support.tier import examples
from tests.unit.tidegate_core.cpu_time import is_done_within
from tidegate_core.language.definitions.never_runs import never_runs_warning
from tidegate_core.language.definitions.schedule_validation import schedule_warnings
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.instants import parse_instant
from tidegate_simulator import simulate

NOW = parse_instant("2026-11-20T22:00:00Z")
"""A Friday."""
DAY = 86_400_000
DATA: Doc = {"type": "data_partitions", "dataset": "d"}


def cron(expression: str, **fields: Any) -> Doc:
    return {"type": "cron", "expression": expression, **fields}


def at(instant: str) -> Doc:
    return {"type": "at", "instant": instant}


def window(opens: str = "22:00", closes: str = "23:00", **fields: Any) -> Doc:
    return {"type": "time_window", "opens": opens, "closes": closes, **fields}


def a_document(trigger: Doc | str, *constraints: Doc, **fields: Any) -> Doc:
    named = {"kind": "schedule", "namespace": "n", "name": "a"}
    target = {"type": "program", "program": {"type": "python", "file": "a.py"}}
    read = cron(trigger) if isinstance(trigger, str) else trigger
    return {
        **named,
        "target": target,
        "trigger": read,
        "constraints": list(constraints),
        "pending_timeout": "1h",
        **fields,
    }


ABORTS = {"on_unmet": "abort"}
FORCED = {"pending_timeout_action": "force"}
NEVER_TOGETHER = (window(), window("08:00", "09:00"))


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(a_document("0 3 * * *", window()), id="as the issue has it"),
        pytest.param(a_document("0 3 * * *", window(zone="Asia/Tokyo")), id="of another zone"),
        pytest.param(a_document("*/5 9-17 * * *", window()), id="many a day"),
        pytest.param(a_document("0 22 * * mon-fri", window(days="sat,sun")), id="on other days"),
        pytest.param(a_document(at("2026-12-24T03:00:00Z"), window()), id="once"),
        pytest.param(a_document("0 3 1 1 *", window()), id="once a year"),
        pytest.param(a_document(cron("0 3 * * *", end="2026-12-01T00:00:00Z"), window()), id="ends"),
        pytest.param(a_document({"type": "every", "period": "8h"}, window("22:00", "23:30")), id="elapsed time"),
        pytest.param(
            a_document("0 22 * * *", window(), {"type": "delay", "after": "61m"}, pending_timeout="2h"), id="delay"
        ),
        pytest.param(a_document("0 3 * * *", window(**ABORTS), pending_timeout="24h"), id="aborts"),
        pytest.param(a_document("0 3 * * *", window(**ABORTS), pending_timeout_action="force"), id="aborts, forced"),
        pytest.param(
            a_document(cron("30 2 * * *", flexible="50m"), window(**ABORTS)), id="aborts in its flexible window"
        ),
        pytest.param(
            a_document("0 3 * * *", window("00:00", "03:10", **ABORTS), window("03:10", "22:00"), **FORCED),
            id="aborts before it is forced",
        ),
        pytest.param(
            # That of 10:00 would wait until 11:10; it is looked at, and ended, when that of 10:30 joins it.
            a_document(
                "0,30 10 * * *",
                {
                    "type": "time_window",
                    **ABORTS,
                    "windows": [{"opens": "10:00", "closes": "10:10"}, {"opens": "10:50", "closes": "11:20"}],
                },
                window("11:10", "12:00"),
            ),
            id="aborts as another one joins it",
        ),
        pytest.param(
            a_document("0 0,3 * * *", window("02:00", "03:10", **ABORTS), window("03:10", "22:00"), **FORCED),
            id="aborts at once, or before it is forced",
        ),
        pytest.param(
            a_document(
                "0 22 * * *", window(**ABORTS), {"type": "delay", "after": "2h"}, pending_timeout_action="alert"
            ),
            id="aborts behind its delay",
        ),
        pytest.param(
            a_document("0 22 * * *", window(), window("22:30", "06:00"), pending_timeout="20m"), id="together later"
        ),
        pytest.param(a_document("0 3 * * *", *NEVER_TOGETHER, pending_timeout="7d"), id="never together"),
        pytest.param(a_document(DATA, *NEVER_TOGETHER), id="never together, events"),
        pytest.param(a_document(DATA, *NEVER_TOGETHER, pending_timeout_action="alert"), id="never together, waits on"),
        pytest.param(a_document("0 3 * * *", {"type": "delay", "after": "1m"}, window()), id="the second constraint"),
    ],
)
def test_given_windows_that_no_job_can_meet_then_that_is_a_warning(document: Doc) -> None:
    spec = parse_schedule(document)
    (warning,) = schedule_warnings(spec, NOW)
    place = next(number for number, each in enumerate(document["constraints"]) if each["type"] == "time_window")
    assert warning.field == f"constraints[{place}]"
    assert "no job" in warning.problem
    assert warning.hint


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(a_document("0 3 * * *", window(), pending_timeout="24h"), id="waits as long"),
        pytest.param(a_document("0 21 * * *", window()), id="a little lateness lets it run"),
        pytest.param(a_document("59 22 * * *", window()), id="in its last minute"),
        pytest.param(a_document("*/5 * * * *", window(days="sun")), id="many a day, one day a week"),
        pytest.param(a_document("0 22 29 2 *", window(days="tue")), id="in some year"),
        pytest.param(a_document("0 3 * * *", window(), pending_timeout_action="alert"), id="waits on"),
        pytest.param(a_document("0 3 * * *", window(), pending_timeout_action="force"), id="is forced"),
        pytest.param(
            a_document("0 3 * * *", *NEVER_TOGETHER, pending_timeout_action="force"), id="never together, forced"
        ),
        pytest.param(
            a_document("0 9 * * *", window("00:00", "09:10", **ABORTS), window("10:30", "23:00"), **FORCED),
            id="is forced before anything looks at what would abort it",
        ),
        pytest.param(
            a_document("0 3 * * *", window("00:00", "03:10", **ABORTS), window("03:05", "03:10"), **FORCED),
            id="runs before it would be aborted",
        ),
        pytest.param(
            a_document(
                cron("0 3 * * *", flexible="50m"),
                window("00:00", "03:10", **ABORTS),
                window("03:10", "22:00"),
                **FORCED,
            ),
            id="may have its place in the flexible window where it is forced",
        ),
        pytest.param(a_document("0 3 * * *"), id="no window"),
        pytest.param(a_document(DATA, window()), id="events"),
        pytest.param(a_document(at("2026-11-20T21:00:00Z"), window()), id="has passed, and is made at once"),
        pytest.param(a_document(at("2026-11-21T21:30:00Z"), window()), id="once"),
        pytest.param(
            a_document(cron("30 21 * * *", flexible="50m"), window(**ABORTS)),
            id="aborts, but not in its flexible window",
        ),
        pytest.param(
            a_document(cron("0 3 * * *", start="2026-11-01T00:00:00Z"), window(), catchup={"on_create": "last"}),
            id="makes up for the past now",
        ),
    ],
)
def test_given_a_job_that_may_run_then_there_is_no_warning(document: Doc) -> None:
    assert never_runs_warning(parse_schedule(document), NOW) is None


def test_given_a_clock_change_that_lets_one_a_year_run_then_there_is_no_warning() -> None:
    """The window of Rome is at 21:30 UTC in winter, and at 20:30 in summer: by elapsed time only the latter is met."""
    document = a_document(
        {"type": "every", "period": "24h", "phase": "20h"}, window("22:30", "22:40", zone="Europe/Rome")
    )
    assert never_runs_warning(parse_schedule(document), NOW) is None
    winter = {**document, "trigger": {**document["trigger"], "end": "2027-03-28T00:00:00Z"}}
    assert never_runs_warning(parse_schedule(winter), NOW) is not None


def test_given_a_warning_then_it_says_what_was_looked_at_and_the_way_out() -> None:
    told = str(never_runs_warning(parse_schedule(a_document("0 3 * * *", window())), NOW))
    assert told.startswith("constraints[0]: no job of the trigger can run before 2028-")
    assert (
        "created at 2026-11-21T03:00:00Z and expires after pending_timeout, 1h; it opens at 2026-11-21T22:00:00Z"
        in told
    )
    assert "a longer pending_timeout" in told


def test_given_what_is_ended_after_a_wait_then_the_warning_says_when() -> None:
    document = a_document("0 3 * * *", window("00:00", "03:10", **ABORTS), window("03:10", "22:00"), **FORCED)
    assert (
        "created at 2026-11-21T03:00:00Z and aborted at 2026-11-21T03:10:00Z (on_unmet: abort), "
        "because it opens at 2026-11-22T00:00:00Z"
    ) in str(never_runs_warning(parse_schedule(document), NOW))


def test_given_what_is_ended_in_a_flexible_window_then_the_warning_says_so() -> None:
    document = a_document(cron("30 2 * * *", flexible="50m"), window(**ABORTS))
    assert (
        "created at 2026-11-21T02:30:00Z and aborted at its instant in the flexible window (on_unmet: abort), "
        "because it opens at 2026-11-21T22:00:00Z"
    ) in str(never_runs_warning(parse_schedule(document), NOW))


def test_given_more_windows_than_can_be_looked_at_then_nothing_is_said_soon() -> None:
    ten = [{"opens": f"{hour:02d}:10", "closes": f"{hour:02d}:20", "days": "mon"} for hour in range(8, 24)]
    for trigger in ("0 3 * * *", "0 */2 * * *"):
        spec = parse_schedule(
            a_document(trigger, *[{"type": "time_window", "windows": ten}] * 16, pending_timeout="5m")
        )
        told: list[object] = []
        assert is_done_within(100, lambda told=told, spec=spec: told.append(never_runs_warning(spec, NOW)))  # type: ignore[misc]
        assert set(told) == {None}


# -- against the decisions of production --------------------------------------------------------------------------------

TIMES = st.builds(lambda hour, ten: f"{hour:02d}:{ten}0", st.integers(0, 23), st.integers(0, 5))
DAYS = st.sampled_from(["mon-fri", "sat,sun", "wed", "fri,sun,mon"])
A_WINDOW = st.builds(
    lambda times, days, aborts: {
        **window(*times),
        **({"days": days} if days else {}),
        **(ABORTS if aborts else {}),
    },
    st.tuples(TIMES, TIMES).filter(lambda times: times[0] != times[1]),
    st.none() | DAYS,
    st.sampled_from([False, False, True]),
)
A_TRIGGER = st.builds(
    lambda ten, hours, days: f"{ten}0 {hours} * * {days or '*'}",
    st.integers(0, 5),
    st.sampled_from(["3", "21", "9,15", "*/6", "12-14"]),
    st.none() | DAYS,
)


def assert_agreement(
    trigger: str, windows: list[Doc], delay: str | None, patience: str, action: str, flexible: str | None
) -> None:
    """In UTC all weeks are alike, and no opening comes within a minute after a time-out: so both say the same.

    Where some are ended at once and others expire (the last of those that were told wrong once) nothing is said, though none may run: see `missed`. Nor where
    windows close or open within a flexible window: whose instants lie where in it is not looked at.
    """
    delays = [] if delay is None else [{"type": "delay", "after": delay}]
    fields = {"pending_timeout": patience, "pending_timeout_action": action, "overlap": "allow"}
    spread = cron(trigger) if flexible is None else cron(trigger, flexible=flexible)
    document = a_document(spread, *windows, *delays, **fields)
    report = simulate([document], NOW, NOW + 15 * DAY)
    runs = any(each.started_at is not None for each in report.occurrences)
    results = {each.result for each in report.occurrences}
    warning = never_runs_warning(parse_schedule(document), NOW)
    if warning is None:
        assert runs or len(results) > 1 or flexible is not None, report.tally()
    else:
        assert not runs, (warning, report.tally())


@settings(max_examples=examples(25))
@given(
    trigger=A_TRIGGER,
    windows=st.lists(A_WINDOW, min_size=1, max_size=2),
    delay=st.sampled_from([None, None, "20m"]),
    patience=st.sampled_from(["35m", "95m", "5h5m"]),
    action=st.sampled_from(["abort", "abort", "alert", "force"]),
    flexible=st.sampled_from([None, None, "30m"]),
)
def test_given_any_week_then_who_is_warned_of_never_runs_in_the_simulator_and_who_never_runs_for_one_reason_is_warned_of(
    trigger: str, windows: list[Doc], delay: str | None, patience: str, action: str, flexible: str | None
) -> None:
    assert_agreement(trigger, windows, delay, patience, action, flexible)


@pytest.mark.parametrize(
    ("trigger", "windows", "delay", "patience", "action", "flexible"),
    [
        ("00 3 * * *", [window()], None, "35m", "abort", None),
        ("00 3 * * *", [window(**ABORTS)], None, "35m", "force", None),
        ("00 3 * * *", [window("00:00", "00:10", **ABORTS), window("00:10", "00:00")], None, "35m", "force", None),
        ("00 3 * * *", [window("00:00", "03:10", **ABORTS), window("03:10", "00:00")], None, "35m", "force", None),
        ("00 9,15 * * *", [window("00:00", "09:10", **ABORTS), window("10:00", "00:00")], None, "35m", "force", None),
        ("00 12-14 * * *", [window("00:00", "13:00", **ABORTS), window("22:00", "00:00")], None, "95m", "force", None),
        ("40 9,15 * * *", [window("00:00", "10:00", **ABORTS)], "20m", "35m", "alert", None),
        ("00 3 * * *", [window("00:00", "03:10", days="wed"), window("00:10", "01:00")], None, "35m", "abort", None),
        ("00 12-14 * * *", [window("00:00", "00:10"), window("00:00", "14:10", **ABORTS)], None, "35m", "alert", None),
        (
            "00 12-14 * * *",
            [window("00:00", "00:10"), window("00:00", "14:10", **ABORTS)],
            "20m",
            "5h5m",
            "alert",
            None,
        ),
        ("00 12-14 * * *", [window("00:00", "14:00"), window("13:10", "00:00", **ABORTS)], None, "35m", "abort", None),
        ("30 2 * * *", [window("04:00", "05:00", **ABORTS)], None, "5h5m", "abort", "30m"),
        ("30 2 * * *", [window("04:00", "05:00", **ABORTS)], "20m", "5h5m", "alert", "30m"),
        (
            "00 3 * * *",
            [window(days="mon-fri", **ABORTS), window(days="sat,sun", **ABORTS)],
            None,
            "35m",
            "force",
            None,
        ),
    ],
)
def test_given_a_week_that_was_told_wrong_once_then_warning_and_simulator_agree(
    trigger: str, windows: list[Doc], delay: str | None, patience: str, action: str, flexible: str | None
) -> None:
    assert_agreement(trigger, windows, delay, patience, action, flexible)
