"""Schedules built in Python (row CD-088): the very documents that would stand in YAML, judged by the same parser."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate_client import (
    InvalidRequest,
    ScheduleBuilder,
    all_of,
    any_of,
    at,
    at_least,
    cron,
    every,
    on_data,
    on_event,
    on_run,
    on_size,
    pyspark,
    python,
    times,
)
from tidegate_client.schedule_builder import ConstrainedBuilder
from tidegate_client.spec_helpers import Part, written
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.problems import InvalidInput

PAGE = (Path(__file__).parents[3] / "docs" / "schedules.md").read_text(encoding="utf-8")
BASE = ScheduleBuilder("flights", "it").starts(python("/jobs/it.py")).triggered_by(on_data("raw"))
CONSTRAINTS: dict[str, tuple[Callable[[ScheduleBuilder], ConstrainedBuilder], str]] = {
    "runs": (lambda it: it.with_max_concurrent_runs(3), "{type: concurrency, max: 3}"),
    "runs of a program": (
        lambda it: it.with_max_concurrent_runs(3, scope="program"),
        "{type: concurrency, max: 3, scope: program}",
    ),
    "runs of a group": (
        lambda it: it.with_max_concurrent_runs(4, scope="group", group="warehouse"),
        "{type: concurrency, max: 4, scope: group, group: warehouse}",
    ),
    "delay": (lambda it: it.with_delay(timedelta(minutes=15)), "{type: delay, after: 15m}"),
    "window": (
        lambda it: it.with_time_window(time(22), "06:00", zone="Europe/Rome", days="mon-fri"),
        '{type: time_window, opens: "22:00", closes: "06:00", zone: Europe/Rome, days: mon-fri}',
    ),
    "since": (
        lambda it: it.with_duration_since_last_run("2h", of="success"),
        "{type: since_last_run, at_least: 2h, of: success}",
    ),
    "rate": (
        lambda it: it.with_rate(1, timedelta(days=1), window="calendar"),
        "{type: rate, max: 1, per: 1d, window: calendar}",
    ),
    "load": (
        lambda it: it.with_constraint("load", source="local", resource="cpu", below=0.85),
        "{type: load, source: local, resource: cpu, below: 0.85}",
    ),
}
TRIGGERS: dict[str, Part] = {
    '{type: cron, expression: "0 6 * * *", zone: Europe/Rome}': cron("0 6 * * *", zone="Europe/Rome"),
    '{type: cron, dialect: quartz, expression: "0 30 18 LW * ?"}': cron("0 30 18 LW * ?", dialect="quartz"),
    "{type: every, period: 90m, phase: 10m}": every(timedelta(minutes=90), phase="10m"),
    '{type: every, period: {weeks: 2}, at: "02:30", zone: Europe/Rome}': every(
        {"weeks": 2}, at=time(2, 30), zone="Europe/Rome"
    ),
    '{type: at, instant: "2026-12-24T18:00:00Z"}': at(datetime(2026, 12, 24, 18, tzinfo=UTC)),
    '{type: times, specs: [{type: cron, expression: "0 6 * * *"}, {type: every, period: 7h}], max_fires: 9}': times(
        cron("0 6 * * *"), every("7h"), max_fires=9
    ),
    "{type: data_partitions, dataset: raw, count: 3, settle: 30s}": on_data("raw", 3, settle=timedelta(seconds=30)),
    "{type: data_size, dataset: raw, bytes: 100GB, at_least_every: 4h}": on_size(
        "raw", bytes="100GB", at_least_every="4h"
    ),
    "{type: event, name: custom.truck, count: 2, where: {field: /data/n, above: 1}}": on_event(
        "custom.truck", 2, where={"field": "/data/n", "above": 1}
    ),
    "{type: run_status, schedule: up, states: [failed, killed], times: 2}": on_run(
        "up", states=("failed", "killed"), times=2
    ),
    """{type: all_of, timeout: 6h, triggers: [{type: data_partitions, dataset: a}, {type: any_of, triggers:
        [{type: data_partitions, dataset: b}, {type: at_least, k: 1, triggers: [{type: data_partitions, dataset: c},
        {type: data_partitions, dataset: d}]}]}]}""": all_of(
        on_data("a"), any_of(on_data("b"), at_least(1, on_data("c"), on_data("d"))), timeout=timedelta(hours=6)
    ),
}


def from_yaml(trigger: str, constraint: str | None = None) -> dict[str, Any]:
    document = f"""
        kind: schedule
        namespace: flights
        name: it
        target: {{type: program, program: {{type: python, file: /jobs/it.py}}}}
        trigger: {trigger}
    """
    found: dict[str, Any] = yaml.safe_load(document)
    return found if constraint is None else {**found, "constraints": [yaml.safe_load(constraint)]}


def assert_same(built: dict[str, Any], document: dict[str, Any]) -> None:
    assert built == document
    assert parse_schedule(built).spec_hash() == parse_schedule(document).spec_hash()


@pytest.mark.parametrize("word", [None, "wait", "abort"])
@pytest.mark.parametrize("which", CONSTRAINTS)
def test_given_a_constraint_then_it_is_the_one_of_yaml_and_says_what_follows_while_it_does_not_hold(
    which: str, word: str | None
) -> None:
    """CD-088: each of them with wait_until_met and with abort_if_not_met."""
    add, text = CONSTRAINTS[which]
    builder = add(BASE)
    said = {None: builder, "wait": builder.wait_until_met(), "abort": builder.abort_if_not_met()}[word]
    document = from_yaml("{type: data_partitions, dataset: raw}", text)
    if word is not None:
        document["constraints"][0]["on_unmet"] = word
    if (which, word) == ("delay", "abort"):
        with pytest.raises(InvalidRequest, match="would abort every job"):  # CD-080: jobs always wait for a delay.
            said.build()
        return
    assert_same(said.build(), document)


@pytest.mark.parametrize("text", TRIGGERS)
def test_given_a_trigger_then_it_is_the_one_of_yaml(text: str) -> None:
    assert_same(BASE.triggered_by(TRIGGERS[text]).build(), from_yaml(text))


def test_given_several_constraints_then_each_has_its_own_word_and_the_schedule_its_time_out() -> None:
    """CD-088: the time-out's setter, and words that go to the constraint that was said last."""
    built = (
        BASE.with_max_concurrent_runs(1)
        .abort_if_not_met()
        .with_delay("10m")
        .with_duration_since_last_run("1h")
        .wait_until_met()
        .with_timeout(timedelta(hours=12), "alert")
        .build()
    )
    assert [constraint.get("on_unmet") for constraint in built["constraints"]] == ["abort", None, "wait"]
    assert (built["pending_timeout"], built["pending_timeout_action"]) == ("12h", "alert")
    # A word needs a constraint before it: the type says so, and so does the object.
    assert not hasattr(BASE, "wait_until_met")


def test_given_policies_and_a_message_then_they_are_the_fields_of_the_schedule() -> None:
    policies = BASE.with_policies(
        overlap="coalesce", retry={"tries": 2, "backoff": timedelta(seconds=30)}, labels={"a": "b"}
    )
    spec = policies.triggered_by(every("1h")).with_policies(priority="high").build()
    assert (spec["overlap"], spec["retry"], spec["priority"]) == ("coalesce", {"tries": 2, "backoff": "30s"}, "high")
    message = ScheduleBuilder("orders", "report").sends("orders.reports", payload=None).triggered_by(cron("@daily"))
    assert message.build()["target"] == {"type": "message", "topic": "orders.reports", "payload": None}


def test_given_what_is_no_schedule_then_all_problems_are_told_as_for_yaml() -> None:
    wrong = BASE.triggered_by(cron("61 * * * *")).with_delay("10q").with_policies(overlapp="queue")  # type: ignore[call-arg]  # a slip
    document = {**from_yaml('{type: cron, expression: "61 * * * *"}', "{type: delay, after: 10q}"), "overlapp": "queue"}
    with pytest.raises(InvalidRequest, match="flights/it") as refused:
        wrong.build()
    with pytest.raises(InvalidInput) as judged:
        parse_schedule(document)
    assert [str(problem) for problem in refused.value.problems] == [str(each) for each in judged.value.problems]
    assert {problem.field for problem in refused.value.problems} == {
        "trigger.expression",
        "constraints[0].after",
        "overlapp",
    }


@pytest.mark.parametrize("builder", [ScheduleBuilder("flights", "it"), ScheduleBuilder("Flights", "it")])
def test_given_half_a_schedule_then_what_is_missing_is_named(builder: ScheduleBuilder) -> None:
    with pytest.raises(InvalidRequest) as refused:
        builder.build()
    assert {"target", "trigger"} <= {problem.field for problem in refused.value.problems}


def test_given_one_beginning_then_many_schedules_come_of_it_and_none_touches_another() -> None:
    night = BASE.with_time_window("22:00", "06:00")
    first, second = night.wait_until_met().build(), night.abort_if_not_met().with_delay("1m").build()
    assert [len(each["constraints"]) for each in (BASE.with_delay("1m").build(), first, second)] == [1, 1, 2]
    first["trigger"]["dataset"] = "other"
    first["constraints"].clear()
    assert night.build()["trigger"] == {"type": "data_partitions", "dataset": "raw"}
    assert len(night.build()["constraints"]) == 1


@pytest.mark.parametrize(
    "value",
    [
        timedelta(microseconds=1),
        timedelta(seconds=-1),
        datetime(2026, 1, 1),  # noqa: DTZ001  # no offset: that is the point
        time(22, tzinfo=UTC),
        time(22, 0, 0, 5),
    ],
)
def test_given_a_value_that_a_document_cannot_say_then_it_is_refused_at_once(value: Any) -> None:
    with pytest.raises(ValueError, match=r"duration|offset|time of day"):
        written(value)


@pytest.mark.parametrize("payload", [datetime(2026, 1, 1, tzinfo=UTC), b"raw", {"days": {1, 2}}])
def test_given_a_payload_that_json_cannot_hold_then_its_field_is_named(payload: Any) -> None:
    reminder = ScheduleBuilder("flights", "remind").triggered_by(every("1h"))
    with pytest.raises(InvalidRequest, match=r"target\.payload: contains what JSON cannot hold"):
        reminder.sends("reminders", payload=payload).build()


@pytest.mark.parametrize(
    "builder",
    [
        BASE.triggered_by(on_run("load", states={"succeeded"})),  # type: ignore[arg-type]  # no sequence: the point
        BASE.starts(python("/jobs/a.py", env={"SHARE": float("inf")})),  # type: ignore[dict-item]  # likewise
        BASE.starts(python("/jobs/a.py", args=["\udce9"])),
    ],
)
def test_given_what_could_not_be_sent_then_it_is_not_built(builder: ScheduleBuilder) -> None:
    with pytest.raises(InvalidRequest, match="cannot be sent as JSON"):
        builder.build()


def test_given_the_documentations_example_then_it_builds_the_schedule_above_it() -> None:
    """The page shows one schedule in YAML and in Python."""
    example = re.search(r"```python\n(from tidegate_client import [^`]*)```", PAGE)
    assert example is not None
    namespace: dict[str, Any] = {}
    exec(example[1], namespace)  # our own page
    first = re.search(r"```yaml\n(kind: schedule\n[^`]*)```", PAGE)
    assert first is not None
    assert_same(namespace["spec"], yaml.safe_load(first[1]))
    assert pyspark("a")["type"] == "pyspark"
