"""From a schedule's document to its model, and how each fault is told."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from tests.unit.tidegate_core.language.schedule_documents import NIGHTLY, PYTHON, document, only_problem, problems
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.validation_errors import MAX_EXPLAINED, problems_of


def test_given_the_documented_example_then_it_is_read_and_stored_in_one_form() -> None:
    spec = parse_schedule(ScheduleSpec.EXAMPLE)

    assert ScheduleSpec.from_canonical(spec.canonical_json()) == spec
    assert spec.spec_hash() == ScheduleSpec.from_canonical(spec.canonical_json()).spec_hash()


def test_given_little_then_defaults_fill_in() -> None:
    spec = parse_schedule(document())

    assert (spec.kind, spec.overlap, spec.priority, spec.suspended) == ("schedule", "queue", "medium", False)
    assert (spec.pending_timeout, spec.retry.tries, spec.constraints) == (86_400_000, 0, ())


def test_given_other_order_and_units_then_the_hash_is_equal() -> None:
    one = parse_schedule(document(pending_timeout="24h", labels={"a": "1", "b": "2"}))
    other = parse_schedule(dict(reversed(document(pending_timeout="P1D", labels={"b": 2, "a": 1}).items())))

    assert one.spec_hash() == other.spec_hash()
    assert one.spec_hash() != parse_schedule(document(pending_timeout="23h")).spec_hash()


def test_given_several_faults_then_all_are_told_at_once_with_their_paths() -> None:
    faulty = copy.deepcopy(dict(ScheduleSpec.EXAMPLE))
    faulty["trigger"]["triggers"][0] |= {"count": 0, "cuont": 3}
    faulty["constraints"][1]["zone"] = "Europe/Berlim"
    faulty["target"]["program"]["type"] = "pyspak"
    faulty["namespace"] = "Flights"
    faulty["retry"]["tries"] = 200

    told = {problem.field: problem for problem in problems(faulty)}

    assert set(told) == {
        "namespace",
        "target.program.type",
        "trigger.triggers[0].count",
        "trigger.triggers[0].cuont",
        "constraints[1].zone",
        "retry.tries",
    }
    assert told["trigger.triggers[0].cuont"].hint == "did you mean count?"
    assert told["constraints[1].zone"].hint == "did you mean Europe/Berlin?"
    assert told["target.program.type"].hint == "did you mean pyspark?"
    assert told["namespace"].problem.startswith('"Flights" is not a name')


@pytest.mark.parametrize(
    ("trigger", "field", "problem", "hint"),
    [
        ({"type": "cronn"}, "trigger.type", '"cronn" is unknown', "did you mean cron?"),
        ({"expression": "@daily"}, "trigger.type", "is missing", "one of: cron"),
        ("@daily", "trigger", "not a mapping", ""),
        ({"type": "cron", "expression": "0 24 * * *"}, "trigger.expression", "(column 3)", '"0 23 * * *"'),
        ({"type": "cron", "expression": "0 0 31 2 *"}, "trigger.expression", "impossible date", "29"),
        ({"type": "cron", "expression": "0 0 * * * *"}, "trigger.expression", "has 6 fields", "Quartz counts weekdays"),
        ({"type": "cron", "expression": "0 " * 200}, "trigger.expression", "at most 256", ""),
        ({"type": "cron", "expression": "@every 90m", "zone": "Nowhere/Land"}, "trigger.zone", "is unknown", ""),
        ({"type": "cron", "expression": "@every 90m", "dialect": "banana"}, "trigger.dialect", "not one of", ""),
        ({"type": "cron", "expression": "@every 90m", "day_rule": "xor"}, "trigger.day_rule", "not one of", "or"),
        ({"type": "cron", "expression": "@every ninety"}, "trigger.expression", "not a duration", ""),
        ({"type": "cron", "expression": "@every 1ms"}, "trigger.expression", "shorter than 1s", ""),
        ({"type": "cron", "expression": 6}, "trigger.expression", "is not a text", "quotes"),
        ({"type": "cron", "expression": ["0 6 * * *"]}, "trigger.expression", "is not a text", ""),
        ({"type": "cron", "expression": "@daily", "zone": 600}, "trigger.zone", "is not a text", "quotes"),
        ({"type": "cron", "expression": "@daily", "zone": "EST"}, "trigger.zone", "abbreviation", "America/New_York"),
        ({"type": "cron", "expression": "@daily", "tz": "UTC"}, "trigger.tz", "not a field", "called zone"),
        ({"type": "cron", "expression": "@daily", "expresion": ""}, "trigger.expresion", "not a field", "expression?"),
        ({"type": "every", "period": 90}, "trigger.period", "not a duration", "90s"),
        ({"type": "every", "period": "1 hour"}, "trigger.period", "not a duration", ""),
        ({"type": "at", "instant": "2026-11-20T22:00:00"}, "trigger.instant", "no offset", ""),
        (
            {"type": "run_status", "schedule": "b", "states": ["suceeded"]},
            "trigger.states[0]",
            "not one of",
            "succeeded?",
        ),
        ({"type": "run_status", "schedule": "a"}, "trigger.schedule", "is the schedule itself", "another"),
        ({"type": "run_status", "schedule": "flights/a"}, "trigger.schedule", "is the schedule itself", "another"),
        (
            {"type": "all_of", "triggers": [{"type": "run_status", "schedule": "b"}]},
            "trigger.triggers",
            "at least 2",
            "",
        ),
    ],
)
def test_given_faulty_trigger_then_field_problem_and_hint_are_told(
    trigger: Any, field: str, problem: str, hint: str
) -> None:
    told = only_problem(trigger=trigger)

    assert told.field == field
    assert problem in told.problem
    assert hint in told.hint


@pytest.mark.parametrize(
    ("fields", "field", "version"),
    [
        ({"trigger": {**NIGHTLY, "exclude": [{"type": "calendar"}]}}, "trigger.exclude[0].type", "0.5"),
        ({"trigger": {"type": "then", "triggers": []}}, "trigger.type", "0.5"),
        ({"trigger": {"type": "absent", "k": 2}}, "trigger.type", "0.5"),
        ({"trigger": {"type": "data_partitions", "dataset": "d", "late": "rerun"}}, "trigger.late", "0.5"),
        ({"trigger": {"type": "data_partitions", "dataset": "d", "prefer": []}}, "trigger.prefer", "0.5"),
        ({"target": {"type": "message", "topic": "t", "payload": "${nominal}"}}, "target.payload", "0.3"),
        (
            {"target": {"type": "message", "topic": "t", "payload": 1, "headers": {"k": "${x}"}}},
            "target.headers.k",
            "0.3",
        ),
        ({"target": {"type": "workflow", "nodes": []}}, "target.type", "0.5"),
        ({"target": {"program": {"type": "spark_connect", "url": "x"}}}, "target.program.type", "0.5"),
        *(({"overlap": word}, "overlap", "0.5") for word in ("keep_first", "kill_running", "strict")),
        ({"retry": {"tries": 2, "workflow": 1}}, "retry.workflow", "0.5"),
        ({"retry": {"multiplier": 3}}, "retry.multiplier", "0.5"),
        ({"constraints": [{"type": "concurrency", "max": 17}]}, "constraints[0].max", "0.5"),
        ({"catchup": {"order": "newest"}}, "catchup.order", "0.5"),
        ({"constraints": [{"type": "calendar", "name": "x"}]}, "constraints[0].type", "0.5"),
        ({"constraints": [{"type": "pool", "max": 8}]}, "constraints[0].type", "0.5"),
        ({"constraints": [{"type": "concurrency", "max": 1, "scope": "limit"}]}, "constraints[0].scope", "0.5"),
        *(({"kind": kind, "x": 1}, "kind", "0.5") for kind in ("program", "limit", "namespace", "app", "workflow")),
    ],
)
def test_given_word_of_a_later_version_then_it_alone_is_refused_with_that_version(
    fields: dict[str, Any], field: str, version: str
) -> None:
    """CD-004: what can be scheduled is an explicit list."""
    told = only_problem(**fields)

    assert told.field == field
    assert f"planned for {version}" in told.problem


@pytest.mark.parametrize(
    ("field", "fitting", "other"), [("suspend_mode", "drop", "HOLD"), ("on_update", "restart", "Carry")]
)
def test_given_mode_of_suspends_and_updates_then_programs_have_all_and_messages_one(
    field: str, fitting: str, other: str
) -> None:
    message = {"target": {"type": "message", "topic": "t", "payload": 1}}

    assert getattr(parse_schedule(document(**{field: other})), field) == other.lower()
    assert (
        getattr(parse_schedule(document(**message, **{field: fitting}, constraints=[], trigger=NIGHTLY)), field)
        == fitting
    )
    assert only_problem(**message, **{field: other}, constraints=[], trigger=NIGHTLY).field == field
    assert only_problem(**{field: "perhaps"}).field == field


def test_given_a_leaf_of_a_later_version_in_all_of_then_it_is_planned_and_its_fields_are_not_judged() -> None:
    both = [{"type": "run_status", "schedule": "b"}, {"type": "absent", "cron": "?"}]

    told = only_problem(trigger={"type": "all_of", "triggers": both})

    assert told.field == "trigger.triggers[1].type"
    assert "planned for 0.5" in told.problem


@pytest.mark.parametrize(
    ("program", "field"),
    [
        ({"type": "python", "file": "a.py", "conf": {}}, "target.program.conf"),
        ({"type": "python", "file": ""}, "target.program.file"),
        ({"type": "python"}, "target.program.file"),
        ({"type": "pyspark", "file": "a.py", "conf": {"sql.x": 1}}, "target.program.conf"),
        ({"type": "pyspark", "file": "a.py", "conf": {"spark.tidegate.x": 1}}, "target.program.conf"),
        ({"type": "python", "file": "a.py", "env": {"TIDEGATE_RUN": "1"}}, "target.program.env"),
        ({"type": "python", "file": "a.py", "env": {"A B": "1"}}, "target.program.env"),
        ({"type": "python", "file": "a.py", "properties": {"tidegate.x": "1"}}, "target.program.properties"),
        ({"type": "python", "file": "a.py", "args": ["a\x00b"]}, "target.program.args[0]"),
        ({"type": "python", "file": "a.py", "args": ["x", {}]}, "target.program.args[1]"),
        ({"type": "python", "file": "a.py", "args": ["x"] * 257}, "target.program.args"),
        ({"type": "python", "file": "a.py", "args": ["x" * 8193]}, "target.program.args[0]"),
        ({"type": "python", "file": "a.py", "args": ["${nomnal}"]}, "target.program.args[0]"),
    ],
)
def test_given_faulty_program_then_its_field_is_told(program: dict[str, Any], field: str) -> None:
    assert only_problem(target={"type": "program", "program": program}).field == field


def test_given_numbers_and_booleans_in_texts_then_they_are_spelt_as_spark_does() -> None:
    program = {"type": "pyspark", "file": "a.py", "conf": {"spark.a": 8, "spark.b": True}, "args": [1, 2.5, False]}
    spec = parse_schedule(document(target={"type": "program", "program": program}))

    assert spec.program.args == ("1", "2.5", "false")
    assert spec.program.model_dump()["conf"] == {"spark.a": "8", "spark.b": "true"}


def test_given_one_scope_limited_twice_then_it_is_refused() -> None:
    """A job would hold the one permit and wait for the other for ever."""
    told = only_problem(constraints=[{"type": "concurrency", "max": 1}, {"type": "concurrency", "max": 2}])

    assert told.field == "constraints[1]"
    assert (
        len(
            parse_schedule(
                document(constraints=[{"type": "concurrency", "max": 1, "scope": s} for s in ("schedule", "program")])
            ).constraints
        )
        == 2
    )


def test_given_names_around_then_they_fill_in_and_may_not_contradict() -> None:
    bare = {"target": PYTHON, "trigger": NIGHTLY}

    assert parse_schedule(bare, namespace="flights", name="b").name == "b"
    assert [problem.field for problem in problems(document(), namespace="other", name="a")] == ["namespace"]
    assert {problem.field for problem in problems(bare)} == {"namespace", "name"}


def test_given_yamls_sexagesimal_number_then_quotes_are_asked_for() -> None:
    told = only_problem(constraints=[{"type": "time_window", "opens": 1320, "closes": "06:00"}])

    assert told.field == "constraints[0].opens"
    assert "quotes" in told.hint


LEAF = {"type": "data_partitions", "dataset": "d"}


def pyspark(**fields: Any) -> dict[str, Any]:
    return {"target": {"type": "program", "program": {"type": "pyspark", "file": "a.py", **fields}}}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (pyspark(args=[[]] * 10_000), "target.program.args"),
        (pyspark(env={f"e{n}": [] for n in range(10_000)}), "target.program.env"),
        (pyspark(conf={f"spark.{n}": [] for n in range(10_000)}), "target.program.conf"),
        (pyspark(properties={f"p{n}": [] for n in range(10_000)}), "target.program.properties"),
        (pyspark(**{f"unknown{n}": 1 for n in range(10_000)}), "target.program"),
        ({"constraints": [{}] * 10_000}, "constraints"),
        ({"labels": {f"l{n}": [] for n in range(10_000)}}, "labels"),
        ({"retry": {f"unknown{n}": 1 for n in range(10_000)}}, "retry"),
        ({"trigger": {"type": "all_of", "triggers": [[]] * 10_000}}, "trigger.triggers"),
        ({"trigger": {**LEAF, **{f"unknown{n}": 1 for n in range(10_000)}}}, "trigger"),
        ({"trigger": {"type": "run_status", "schedule": "b", "states": ["x"] * 10_000}}, "trigger.states"),
        ({f"unknown{n}": 1 for n in range(10_000)}, ""),
    ],
)
def test_given_far_too_many_entries_then_that_is_told_and_none_of_them_is_looked_at(
    fields: dict[str, Any], field: str
) -> None:
    told = only_problem(**fields)

    assert told.field == field
    assert "are allowed" in told.problem


def test_given_many_faults_within_all_limits_then_only_so_many_are_put_into_words() -> None:
    leaves = [{**LEAF, **{f"unknown{n}": 1 for n in range(60)}} for _ in range(50)]
    with pytest.raises(ValidationError) as caught:
        ScheduleSpec.model_validate(document(trigger={"type": "all_of", "triggers": leaves}))

    assert caught.value.error_count() > MAX_EXPLAINED
    assert len(problems_of(caught.value, ScheduleSpec)) == MAX_EXPLAINED


@pytest.mark.parametrize(
    "fields",
    [
        {"x" * 900_000: 1},
        {"labels": {"x" * 600_000: []}},
        pyspark(env={"x" * 600_000: "${no}"}),
        pyspark(conf={"spark." + "x" * 600_000: "${no}"}),
        {"trigger": {"type": "x" * 600_000}},
        {"overlap": "x" * 600_000},
    ],
    ids=["field", "label", "environment", "conf", "type", "value"],
)
def test_given_a_name_of_any_length_then_what_is_told_stays_short(fields: dict[str, Any]) -> None:
    assert sum(len(str(problem)) for problem in problems(document(**fields))) < 1_000


def test_given_parsed_document_then_it_is_left_as_it_was() -> None:
    given = document()
    before = copy.deepcopy(given)
    parse_schedule(given, namespace="flights")

    assert given == before


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"suspended": "yes"},
            "suspended: is neither true nor false; write true or false; yes, no, on and off are texts",
        ),
        (
            {"constraints": {"type": "concurrency"}},
            "constraints: is not a list; write it in brackets, also a single entry: [...]",
        ),
        (
            {"constraints": [{"type": "concurrency", "max": "2"}]},
            "constraints[0].max: is not a whole number; write it without quotes",
        ),
        ({"constraints": [{"type": "concurrency", "max": 0}]}, "constraints[0].max: has to be at least 1"),
        ({"labels": {"": "x"}}, "labels: has a name that is empty; write something, or leave it out"),
        ({"labels": {"a": "x" * 300}}, "labels.a: has 300 characters, at most 256 are allowed"),
        (
            {"spec": {}},
            "spec: is not a field here; its fields belong here; tidegate schedule get --spec prints them in this form",
        ),
    ],
)
def test_given_a_value_of_another_kind_then_it_is_said_in_plain_words(fields: dict[str, Any], told: str) -> None:
    assert [str(problem) for problem in problems(document(**fields))] == [told]
