"""A simulation has one hash: the same for the same, wherever it is computed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.builders import HOUR, all_of, at_most, every, on_data, on_run_of
from tests.support.tier import at_night
from tests.unit.tidegate_simulator.simulated import BEGIN, a_partition, a_schedule, happenings, ran
from tidegate_simulator import Outage, PlannedRun, Report, RunPlan

PROGRAM = """
import sys
from tests.unit.tidegate_simulator.test_report_hash import mixed
sys.stdout.write(mixed().digest)
"""


HOURS = at_night(24, else_=6)
HOURS_WITH_ROUTINE = at_night(8, else_=1)


def mixed(hours: int = HOURS) -> Report:
    """Returns a world with something of everything; after half of its time nobody serves it for a quarter."""
    one = at_most(1, "program")
    both = all_of(on_data("flights"), on_data("weather"), correlate="data_partition")
    schedules = [
        a_schedule("a", constraints=[one], priority="high", overlap="allow"),
        a_schedule("b", every("40m"), constraints=[{"type": "rate", "max": 3, "per": "3h"}], overlap="coalesce"),
        a_schedule("c", both, constraints=[one], overlap="allow"),
        a_schedule("d", on_run_of("a", "succeeded", "failed"), overlap="allow"),
        a_schedule("e", {"type": "cron", "expression": "H H * * *", "zone": "Asia/Kolkata"}),
    ]
    lines = [
        {**a_partition("00:10", "p-${number}", dataset), "every": period}
        for dataset, period in (("flights", "25m"), ("weather", "35m"))
    ]
    runs = RunPlan.of([PlannedRun.read({"duration": "5m..50m"})])
    away = Outage(BEGIN + hours * HOUR // 2, BEGIN + hours * HOUR * 3 // 4)
    return ran(*schedules, hours=hours, happenings=happenings(*lines, hours=hours), runs=runs, outages=[away])


def digest_in(**environment: str) -> str:
    """Returns the hash that another process comes to."""
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=given, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        pytest.param({"PYTHONHASHSEED": "2", "TZ": "America/New_York", "LC_ALL": "C.UTF-8"}, marks=pytest.mark.nightly),
    ],
)
def test_given_another_hash_seed_zone_and_locale_then_the_hash_is_the_same(environment: dict[str, str]) -> None:
    assert digest_in(**environment) == mixed().digest


def test_given_the_routine_is_not_passed_over_then_the_same_runs_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Alarms that look for what got lost find nothing where nothing gets lost. Only words may differ: at which of the
    decisions of one instant a job was told what stands in its way.
    """

    def outcome() -> list[tuple[object, ...]]:
        return [
            (each.schedule, each.nominal, each.result, each.covered, each.made_at, each.started_at, each.ended_at)
            for each in mixed(HOURS_WITH_ROUTINE).occurrences
        ]

    expected = outcome()
    monkeypatch.setattr("tidegate_simulator.virtual_cluster.SKIPS_ROUTINE", False)
    assert outcome() == expected


def test_given_a_report_then_its_hash_is_that_of_its_document() -> None:
    report = ran(a_schedule(), hours=2)
    assert json.loads(json.dumps(report.document())) == report.document()
    assert report.digest == ran(a_schedule(), hours=2).digest
    assert report.digest != ran(a_schedule(), hours=3).digest
