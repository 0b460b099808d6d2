"""The preview is what happens: the same instants, and what clock changes leave out between them."""

from __future__ import annotations

import pytest

from tests.oracles.calendar.brute_force_walker import changes_of
from tests.support.builders import a_definition, a_schedule, a_spec
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.firing.fire import FireSchedule
from tidegate_core.language.triggers import AtTrigger, CronTrigger, EveryTrigger, TimesTrigger
from tidegate_core.language.triggers.preview import preview
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.trigger_rows import TimerRow

ZONES = (
    *("Europe/Rome", "Europe/London", "Europe/Istanbul", "America/New_York", "America/Sao_Paulo", "America/Caracas"),
    *("America/Havana", "America/Scoresbysund", "Asia/Tehran", "Asia/Gaza", "Asia/Pyongyang", "Asia/Amman"),
    *("Africa/Casablanca", "Africa/Khartoum", "Australia/Lord_Howe", "Antarctica/Troll", "Antarctica/Casey"),
    *("Pacific/Norfolk", "Asia/Kolkata", "UTC"),
)
DAY_MS = 86_400_000


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("policy", [("shift", "last"), ("skip", "both")])
def test_given_clock_changes_then_what_fires_is_what_the_preview_said(zone: str, policy: tuple[str, str]) -> None:
    """DS-021: the preview equals what happens, in 20 zones and around their clock changes."""
    gap, overlap = policy
    trigger = {"type": "cron", "expression": "*/30 0,1,2,3 * * *", "zone": zone, "dst_gap": gap, "dst_overlap": overlap}
    ref = "flights/nightly"
    for change in (changes_of(zone, 2015, 2026) or [1_774_746_000])[-2:]:
        begin = change * 1000 - 12 * 3_600_000
        expected = preview(CronTrigger.model_validate(trigger), ref, begin, 18)
        first = next(each.instant for each in expected if each.result == "fires")
        desk = DecisionHarness(a_definition(a_spec(trigger=trigger)))
        desk.lay(a_schedule(next_nominal=first, activated_at=begin), TimerRow(at=first, kind="S", ref=ref))
        last = expected[-1].instant
        while (row := desk.records(TimerRow, "T#")[0]).at <= last:
            desk.decide(FireSchedule(row), row.at)
        made = [(job.nominal, "fires") for job in desk.records(Job, "J#")]
        told = [(each.nominal, f"{each.disposition}/{each.reason}") for each in desk.records(LedgerRow, "L#")]

        assert sorted(made + told) == sorted((each.instant, each.result) for each in expected)


def test_given_cron_then_local_times_are_shown_with_their_offset_and_notes() -> None:
    trigger = CronTrigger.model_validate({"type": "cron", "expression": "30 2 * * *", "zone": "Europe/Rome"})
    lines = preview(trigger, "n/a", parse_instant("2026-03-28T12:00:00Z"), 2)

    assert [line.local for line in lines] == ["Sun 2026-03-29 03:00:00+02:00", "Mon 2026-03-30 02:30:00+02:00"]
    assert [bool(line.note) for line in lines] == [True, False]


def test_given_several_times_then_each_is_shown_in_the_zone_of_its_spec() -> None:
    specs = [
        {"type": "cron", "expression": "0 6 * * *", "zone": "Asia/Tokyo"},
        {"type": "cron", "expression": "0 6 * * *", "zone": "America/New_York"},
    ]
    trigger = TimesTrigger.model_validate({"type": "times", "specs": specs})
    lines = preview(trigger, "n/a", parse_instant("2026-01-01T12:00:00Z"), 2)

    assert [line.local for line in lines] == ["Fri 2026-01-02 06:00:00+09:00", "Fri 2026-01-02 06:00:00-05:00"]


def test_given_a_trigger_that_ends_then_the_preview_does() -> None:
    once = AtTrigger.model_validate({"type": "at", "instant": "2026-01-02T00:00:00Z"})
    begin = parse_instant("2026-01-01T00:00:00Z")

    assert [format_instant(each.instant) for each in preview(once, "n/a", begin, 5)] == ["2026-01-02T00:00:00Z"]
    assert preview(once, "n/a", begin + 2 * DAY_MS, 5) == []


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"expression": "30 4 1,15 * 5"}, ["unix5", "either day field suffices (day_rule: or)"]),
        ({"expression": "30 4 */2 * 5"}, ["both day fields have to fit (day_rule: and)"]),
        ({"expression": "30 4 1,15 * 5", "day_rule": "and"}, ["day_rule: and"]),
        ({"expression": "0 * * * *"}, ["real cadence"]),
        ({"expression": "30 2 * * *", "dst_gap": "skip"}, ["dst_gap skip, dst_overlap first"]),
        ({"expression": "0 0 6 ? * 2", "dialect": "quartz"}, ["dialect quartz"]),
    ],
)
def test_given_cron_then_it_says_how_it_was_read(fields: dict[str, str], parts: list[str]) -> None:
    """The validation echo of SEMANTICS 1.2: people get the day rule wrong."""
    reading = CronTrigger.model_validate({"type": "cron", **fields}).reading()

    assert all(part in reading for part in parts)


def test_given_one_day_field_then_no_day_rule_is_told_and_elapsed_time_tells_nothing() -> None:
    assert "day" not in CronTrigger.model_validate({"type": "cron", "expression": "30 4 * * 5"}).reading()
    assert EveryTrigger.model_validate({"type": "every", "period": "90m"}).reading() == ""
