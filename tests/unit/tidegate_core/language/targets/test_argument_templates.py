"""Templates: checked against the trigger when applied, resolved in full when admitted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tidegate_core.language.targets.argument_templates import (
    MAX_RESOLVED_BYTES,
    RunValues,
    TemplateError,
    Unresolved,
    UpstreamValues,
    Variable,
    parse_template,
    resolve_program,
    template_problems,
)
from tidegate_core.language.targets.programs import Program, PythonProgram
from tidegate_core.language.triggers import Trigger
from tidegate_core.language.values.instants import parse_instant

TRIGGER: TypeAdapter[Any] = TypeAdapter(Trigger)
PROGRAM: TypeAdapter[Any] = TypeAdapter(Program)
CRON = {"type": "cron", "expression": "@daily"}
DATA = {"type": "data_partitions", "dataset": "d"}
RUN = {"type": "run_status", "schedule": "join-day"}
RUN_ID = "0042-mfrggzdfmztwq2lkn5wg63tqoe"
VALUES = RunValues(
    run_id=RUN_ID,
    attempt=2,
    nominal=parse_instant("2026-11-20T22:00:00Z"),
    interval=(parse_instant("2026-11-19T22:00:00Z"), parse_instant("2026-11-20T22:00:00Z")),
    correlation="2013-01-01",
    upstream=UpstreamValues(run_id="up", args=("--day", "x"), outputs={"rows": 842, "path": "/a", "all": {"b": [1]}}),
)


def python(*arguments: str, **fields: Any) -> PythonProgram:
    program = PROGRAM.validate_python({"type": "python", "file": "a.py", "args": list(arguments), **fields})
    assert isinstance(program, PythonProgram)
    return program


def resolved(text: str, values: RunValues = VALUES) -> str:
    return resolve_program(python(text), values).args[0]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("--day=${correlation}", "--day=2013-01-01"),
        ("${nominal}", "2026-11-20T22:00:00Z"),
        ("${interval_start}/${interval_end}", "2026-11-19T22:00:00Z/2026-11-20T22:00:00Z"),
        ("${run.id} ${attempt}", f"{RUN_ID} 2"),
        ("${upstream.run_id} ${upstream.args[1]}", "up x"),
        ("${upstream.outputs.rows} ${upstream.outputs.path} ${upstream.outputs.all}", '842 /a {"b":[1]}'),
        ("$${nominal} $${", "${nominal} ${"),
        ("$ {x} $5 {{ds}} }", "$ {x} $5 {{ds}} }"),
        ("", ""),
    ],
)
def test_given_template_then_it_is_resolved_in_full(text: str, result: str) -> None:
    assert resolved(text) == result


def test_given_templates_in_conf_and_env_then_they_are_resolved_too() -> None:
    document = {
        "type": "pyspark",
        "file": "a.py",
        "conf": {"spark.app.name": "j ${attempt}"},
        "env": {"D": "${nominal}"},
    }
    program = resolve_program(PROGRAM.validate_python(document), VALUES)

    assert program.conf == {"spark.app.name": "j 2"}
    assert program.env == {"D": "2026-11-20T22:00:00Z"}
    assert (program.file, program.args) == ("a.py", ())


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("${nomnal}", 1, "did you mean nominal?"),
        ("a ${intervall_start}", 3, "did you mean interval_start?"),
        ("${upstream.arg[0]}", 1, "did you mean upstream.args[n]?"),
        ("${upstream.args[x]}", 1, "did you mean upstream.args[n]?"),
        ("${upstream.output.rows}", 1, "upstream.outputs"),
        ("${}", 1, ""),
        ("${ nominal }", 1, "did you mean nominal?"),
        ("x ${nominal", 3, "$${"),
        ("${__import__('os')}", 1, ""),
    ],
)
def test_given_unknown_variable_then_place_and_nearest_are_told(text: str, column: int, hint: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template(text)
    assert f"(column {column})" in caught.value.problem
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("trigger", "good", "bad"),
    [
        (CRON, ["nominal", "interval_start", "run.id"], ["correlation", "upstream.run_id"]),
        ({"type": "every", "period": "1h"}, ["interval_end"], ["correlation"]),
        (DATA, ["nominal", "attempt"], ["interval_start", "correlation", "upstream.args[0]"]),
        (RUN, ["correlation", "upstream.run_id", "upstream.outputs.x"], ["interval_start"]),
        ({"type": "all_of", "triggers": [DATA, RUN]}, ["upstream.run_id"], ["correlation", "interval_end"]),
        ({"type": "all_of", "triggers": [DATA, RUN], "correlate": "data_partition"}, ["correlation"], []),
        ({"type": "all_of", "triggers": [DATA, DATA]}, ["nominal"], ["upstream.run_id"]),
        ({"type": "all_of", "triggers": [RUN, {**RUN, "schedule": "b"}]}, ["nominal"], ["upstream.run_id"]),
    ],
)
def test_given_trigger_then_only_what_it_can_fill_in_is_accepted(
    trigger: dict[str, Any], good: list[str], bad: list[str]
) -> None:
    program = python(*(f"${{{name}}}" for name in [*good, *bad]))
    problems = template_problems(TRIGGER.validate_python(trigger), program)

    assert [problem.field for problem in problems] == [
        f"target.program.args[{len(good) + number}]" for number in range(len(bad))
    ]
    assert all("has no value here" in problem.problem and problem.hint for problem in problems)


def test_given_faults_in_env_then_their_place_is_told() -> None:
    (problem,) = template_problems(TRIGGER.validate_python(CRON), python(env={"A": "${x}"}))

    assert problem.field == "target.program.env.A"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${upstream.outputs.none}", "reported these outputs: all, path, rows"),
        ("${upstream.args[2]}", "has 2 arguments"),
    ],
)
def test_given_upstream_without_it_then_this_run_fails_with_the_reason(text: str, reason: str) -> None:
    """CD-105: the run fails, with the reason."""
    with pytest.raises(Unresolved, match=reason) as caught:
        resolved(text)
    assert caught.value.field == "target.program.args[0]"


@pytest.mark.parametrize("name", ["interval_start", "interval_end", "correlation", "upstream.run_id"])
def test_given_manual_run_without_it_then_this_run_fails_with_the_reason(name: str) -> None:
    with pytest.raises(Unresolved, match="has no value"):
        resolved(f"${{{name}}}", RunValues(run_id="r", attempt=1, nominal=0))


def with_output(value: str) -> RunValues:
    return RunValues(run_id="r", attempt=1, nominal=0, upstream=UpstreamValues("u", outputs={"x": value}))


@pytest.mark.parametrize(
    ("character", "size"),
    [
        pytest.param("y", 1, id="ascii"),
        pytest.param("é", 2, id="two bytes"),
        pytest.param("数", 3, id="three bytes"),
        pytest.param("🚀", 4, id="four bytes"),
        pytest.param('"', 2, id="escaped in JSON"),
        pytest.param("\x01", 6, id="escaped as a code"),
    ],
)
def test_given_any_characters_then_the_limit_is_what_the_runs_item_stores(character: str, size: int) -> None:
    quotes = 2
    longest = character * ((MAX_RESOLVED_BYTES - quotes) // size)

    assert resolved("${upstream.outputs.x}", with_output(longest)) == longest
    with pytest.raises(Unresolved, match="bytes when resolved") as caught:
        resolved("${upstream.outputs.x}!", with_output(longest + character))
    assert caught.value.field == "target.program.args[0]"


def test_given_one_large_output_in_many_arguments_then_they_are_counted_together() -> None:
    with pytest.raises(Unresolved, match=f"at most {MAX_RESOLVED_BYTES}"):
        resolve_program(python(*["${upstream.outputs.x}"] * 6), with_output("数" * 21_000))
    with pytest.raises(Unresolved, match=f"at most {MAX_RESOLVED_BYTES}"):
        resolve_program(python(*["${upstream.outputs.x}"] * 6), with_output("数" * 4_000))


@pytest.mark.parametrize("value", ["\udcff.csv", "a\x00b"])
def test_given_stored_output_that_no_command_line_carries_then_this_run_fails_with_the_reason(value: str) -> None:
    with pytest.raises(Unresolved, match="contains"):
        resolved("${upstream.outputs.x}", with_output(value))


@given(st.text(max_size=60))
def test_given_any_text_then_it_is_a_template_or_a_told_fault(text: str) -> None:
    try:
        parts = parse_template(text)
    except TemplateError:
        assert "${" in text
    else:
        assert all(isinstance(part, str | Variable) for part in parts)


@given(st.text(max_size=60))
def test_given_any_text_then_escaping_gives_it_back(text: str) -> None:
    assert resolved(text.replace("\x00", "").replace("${", "$${")) == text.replace("\x00", "")
