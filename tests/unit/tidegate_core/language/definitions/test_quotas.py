"""What a namespace's schedules may ask for, where the definition alone tells."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate_core.language.definitions.quotas import NO_QUOTA, Quota, quota_of
from tidegate_core.language.definitions.schedule_validation import check_schedule
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.problems import Problem

NOW = 1_763_676_000_000
PYTHON = {"type": "program", "program": {"type": "python", "file": "a.py"}}
HOURLY = {"type": "every", "period": "1h"}
NIGHT = {"type": "time_window", "opens": "22:00", "closes": "06:00", "zone": "UTC"}


def told(quota: Quota, trigger: dict[str, Any] = HOURLY, **fields: Any) -> tuple[Problem, ...]:
    spec = parse_schedule({"namespace": "flights", "name": "a", "target": PYTHON, "trigger": trigger, **fields})
    return check_schedule(spec, now=NOW, quota=quota)


def test_given_quotas_then_a_namespaces_own_counts_and_no_mixture() -> None:
    own, others = Quota(minimum_period_ms=60_000), Quota(catch_up_runs_max=3)
    quotas = {"flights": own, "*": others}
    assert (quota_of(quotas, "flights"), quota_of(quotas, "orders")) == (own, others)
    assert quota_of({"flights": own}, "orders") == NO_QUOTA


@pytest.mark.parametrize(("period", "fits"), [("59s", False), ("60s", True)])
def test_given_a_shortest_period_then_a_shorter_one_is_refused_with_the_setting_that_says_so(
    period: str, fits: bool
) -> None:
    found = told(Quota(minimum_period_ms=60_000), {"type": "every", "period": period})
    assert [each.field for each in found] == ([] if fits else ["trigger.period"])
    assert all("TIDEGATE_QUOTAS (flights)" in each.hint for each in found)


@pytest.mark.parametrize(("every", "fits"), [("59m", False), ("1h", True)])
def test_given_a_shortest_period_then_reminders_are_not_a_way_round_it(every: str, fits: bool) -> None:
    counting = {"type": "data_partitions", "dataset": "raw", "count": 9, "at_least_every": every, "allow_empty": True}
    found = told(Quota(minimum_period_ms=3_600_000), counting)
    assert [each.field for each in found] == ([] if fits else ["trigger.at_least_every"])
    assert all("TIDEGATE_QUOTAS (flights)" in each.hint for each in found)
    assert told(NO_QUOTA, counting) == ()


def test_given_a_quota_below_everybodys_minimum_then_that_holds() -> None:
    (problem,) = told(Quota(minimum_period_ms=1_000), {"type": "every", "period": "5s"})
    assert "TIDEGATE_MINIMUM_PERIOD_MS" in problem.hint


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        pytest.param({"catchup": {"max_runs": 10}}, True, id="within"),
        pytest.param({"catchup": {"max_runs": 11}}, False, id="above"),
        pytest.param({}, False, id="the default is above"),
        pytest.param({"catchup": {"mode": "last"}}, True, id="one job stands for all"),
        pytest.param({"catchup": {"mode": "last", "after_pause": "all"}}, False, id="after a pause"),
        pytest.param(
            {"trigger": {"type": "data_partitions", "dataset": "raw", "count": 1}},
            True,
            id="events make up for nothing",
        ),
    ],
)
def test_given_a_most_of_catch_up_then_a_larger_one_is_refused(fields: dict[str, Any], fits: bool) -> None:
    found = told(Quota(catch_up_runs_max=10), **fields)
    assert [each.field for each in found] == ([] if fits else ["catchup.max_runs"])
    assert all("max_runs: 10" in each.hint for each in found)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        pytest.param({"max_pending": 5}, None, id="within"),
        pytest.param({"max_pending": 6}, "max_pending", id="above"),
        pytest.param({}, "max_pending", id="the default is above"),
        pytest.param({"overlap": "keep_latest"}, None, id="one waits"),
        pytest.param({"overlap": "allow"}, None, id="nothing to wait for"),
        pytest.param({"overlap": "allow", "constraints": [NIGHT]}, "overlap", id="any number may wait"),
        pytest.param(
            {"overlap": "allow", "trigger": {"type": "cron", "expression": "* * * * *", "flexible": "1h"}},
            "overlap",
            id="any number may wait for their place in a flexible window",
        ),
    ],
)
def test_given_a_most_of_what_waits_then_a_schedule_has_to_bound_it(fields: dict[str, Any], field: str | None) -> None:
    found = told(Quota(pending_max=5), **fields)
    assert [each.field for each in found] == ([] if field is None else [field])
    assert all("max_pending: 5" in each.hint for each in found)
    assert told(NO_QUOTA, **fields) == ()
