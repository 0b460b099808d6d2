"""What is urgent does not wait for what is not: the simulator shows it for each overlap policy and catch-up mode."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, at_most, every
from tests.unit.tidegate_simulator.simulated import BEGIN, a_schedule, clock, happenings, ran
from tidegate_core.language.values.instants import format_instant
from tidegate_simulator import Happening, Occurrence, Outage, PlannedRun, RunPlan

A_SHORT_OUTAGE = Outage(BEGIN + 19 * MINUTE, BEGIN + 21 * MINUTE)
BULK_RUN_MS = 5 * MINUTE
PLAN = RunPlan.of(
    [PlannedRun.read({"schedule": "flights/live", "duration": "10s"})], PlannedRun.read({"duration": "5m"})
)
IN_GROUP = {"constraints": [at_most(1, "group", group="g")]}


@cache
def hundred_files() -> tuple[Happening, ...]:
    """A file each second from 00:01 on."""
    files = [
        {"at": format_instant(BEGIN + MINUTE + number * SECOND), "type": "custom.file", "namespace": "flights"}
        | {"id": f"file-{number}"}
        for number in range(100)
    ]
    return tuple(happenings(*files, hours=1.5))


def live_schedule(**live: Any) -> dict[str, Any]:
    return a_schedule("live", every("10m"), **{"priority": "highest", **IN_GROUP, **live})


def live_runs(
    *requests: dict[str, Any], outages: tuple[Outage, ...] = (A_SHORT_OUTAGE,), **live: Any
) -> list[Occurrence]:
    """Runs of a schedule whose group a bulk of low jobs keeps busy for hours; without `live` it has priority `highest`."""
    trigger = {"type": "event", "name": "custom.file", "count": 1, "take": "exactly_n"}
    bulk = a_schedule("bulk", trigger, priority="low", overlap="allow", **IN_GROUP)
    asked = happenings(*requests, hours=1.5)
    report = ran(
        bulk, live_schedule(**live), hours=1.5, outages=outages, happenings=[*hundred_files(), *asked], runs=PLAN
    )
    assert all(answer.endswith("accepted") for answer in report.answers)
    return [each for each in report.occurrences if each.schedule == "flights/live"]


def asked_at(at: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"at": f"2026-01-01T{at}:00Z", "type": kind, "namespace": "flights", "name": "live", **more}


def late(runs: list[Occurrence], since: str = "00:00") -> list[str]:
    """The instants from this one on, but for the missed one, whose run began later than one bulk run after them."""
    return [
        clock(each.nominal)
        for each in runs
        if clock(each.nominal) >= since
        and clock(each.nominal) != "00:20"
        and (each.started_at is None or each.started_at > each.nominal + BULK_RUN_MS)
    ]


@pytest.mark.parametrize("catchup", ["all", "last", "coalesce", "none"])
@pytest.mark.parametrize("overlap", ["allow", "skip", "queue", "keep_latest", "cancel_running", "coalesce"])
def test_given_a_short_outage_then_an_urgent_schedule_waits_for_one_bulk_run_at_most(
    overlap: str, catchup: str
) -> None:
    assert late(live_runs(overlap=overlap, catchup={"mode": catchup})) == []


def test_given_no_outage_then_an_urgent_schedule_waits_for_one_bulk_run_at_most() -> None:
    assert late(live_runs(outages=())) == []


def test_given_a_run_by_hand_after_an_outage_then_it_waits_for_one_bulk_run_at_most() -> None:
    runs = live_runs(asked_at("00:23", "schedule.trigger"))
    assert [each.trigger for each in runs].count("manual") == 1
    assert late(runs) == []


def test_given_a_hold_amid_which_an_outage_lies_then_what_is_due_after_it_waits_for_one_bulk_run_at_most() -> None:
    hold = asked_at("00:15", "schedule.suspend", mode="hold")
    runs = live_runs(hold, asked_at("00:35", "schedule.resume", backlog="all"))
    assert [clock(each.nominal) for each in runs[:4]] == ["00:00", "00:10", "00:20", "00:30"]
    assert late(runs, since="00:40") == []


def test_given_a_time_out_that_forces_then_the_forced_job_holds_up_nothing_that_is_due() -> None:
    assert late(live_runs(pending_timeout="5m", pending_timeout_action="force")) == []


def test_given_an_update_to_a_higher_priority_then_jobs_that_may_finish_hold_up_none_of_the_new_version() -> None:
    urgent = {name: value for name, value in live_schedule().items() if name not in {"kind", "namespace", "name"}}
    update = asked_at("00:35", "schedule.apply", spec=urgent, on_update="finish_old")
    runs = live_runs(update, outages=(), priority="low")
    assert late(runs, since="00:00") != []
    assert late(runs, since="00:40") == []
