from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date
from typing import Any, Protocol

import pytest

from tidegate_spark import NotInRun, OutputsTooLarge, ReportFailed, report_outputs, report_partition, set_output
from tidegate_spark.current_run import set_gate
from tidegate_spark.gate_client import Answer, GateClient
from tidegate_spark.reports import OUTPUTS_BYTES_MAX, _outputs, outputs_so_far
from tidegate_spark.run_identity import RunIdentity


class Request(Protocol):
    @property
    def body(self) -> dict[str, object]: ...


class Gate(Protocol):
    url: str

    def answers(self, action: str, *answers: tuple[int, str]) -> None: ...
    def first_answers(self, action: str, *answers: tuple[int, str]) -> None: ...
    def refuses(self, action: str, status: int, **words: str) -> None: ...
    def of(self, action: str) -> list[Request]: ...


@pytest.fixture
def run(gate: Gate) -> Iterator[Gate]:
    """This process as the main process of a run, whose gate is the stand-in."""
    identity = RunIdentity("run-1", 1, gate.url, "t", driver="d", report_wait_s=0)
    set_gate(GateClient(identity))
    yield gate
    set_gate(None)
    _outputs.clear()


def test_given_a_version_then_it_is_the_last_part_of_the_event_id(run: Gate) -> None:
    assert report_partition("flights.raw", "2013-01-01", version="7") == "run-1/flights.raw/2013-01-01/7"
    assert run.of("partitions")[0].body == {
        "attempt": 1,
        "driver": "d",
        "dataset": "flights.raw",
        "partition": "2013-01-01",
        "version": "7",
    }


def test_given_slashes_in_data_partition_and_version_then_the_ids_differ(run: Gate) -> None:
    assert report_partition("flights.raw", "a", version="b/1") == "run-1/flights.raw/a/b~11"
    assert report_partition("flights.raw", "a/b") == "run-1/flights.raw/a/b/1"


def test_given_a_refusal_then_error_says_what_was_refused_and_why(run: Gate) -> None:
    run.refuses("partitions", 400, detail="dataset: upper case is not allowed")
    with pytest.raises(ReportFailed, match=r"report_partition Flights 1: refused with 400: dataset: upper case"):
        report_partition("Flights", "1")


def test_given_an_api_that_stays_away_then_error_says_where_and_how_long(run: Gate) -> None:
    run.answers("partitions", (503, ""))
    with pytest.raises(ReportFailed, match=rf"{run.url} gave no answer within 0 s \(last: HTTP 503"):
        report_partition("flights.raw", "1")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"dataset": "", "partition": "1"}, "dataset"),
        ({"dataset": "d", "partition": ""}, "partition"),
        ({"dataset": "d", "partition": "1", "rows": -1}, "rows"),
        ({"dataset": "d", "partition": "1", "bytes": -1}, "bytes"),
        ({"dataset": "d", "partition": date(2013, 1, 1)}, "partition"),
        ({"dataset": "d", "partition": "1", "version": 3}, "version"),
        ({"dataset": "d", "partition": "1", "rows": "842"}, "rows"),
        ({"dataset": "d", "partition": "1", "rows": 1.5}, "rows"),
        ({"dataset": "d", "partition": "1", "bytes": float("nan")}, "bytes"),
    ],
)
def test_given_an_unusable_argument_then_it_is_named_and_nothing_is_sent(
    run: Gate, arguments: dict[str, object], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        report_partition(**arguments)  # type: ignore[arg-type] # that is the test
    assert run.of("partitions") == []


def test_given_a_number_of_another_library_then_it_is_sent_as_a_number(run: Gate) -> None:
    """The sum of a column is numpy's or pandas' own kind of whole number, which JSON does not know."""

    class Whole:
        def __index__(self) -> int:
            return 842

    report_partition("flights.raw", "1", rows=Whole(), bytes=0)  # type: ignore[arg-type] # as whoever checks no types calls it
    (sent,) = run.of("partitions")
    assert (sent.body["rows"], sent.body["bytes"]) == (842, 0)


def test_given_several_outputs_then_each_report_carries_all_of_them(run: Gate) -> None:
    set_output("rows", 1)
    report_outputs(path="/data", rows=2)
    assert [request.body["outputs"] for request in run.of("outputs")] == [{"rows": 1}, {"rows": 2, "path": "/data"}]
    assert outputs_so_far() == {"rows": 2, "path": "/data"}


def test_given_several_reports_of_outputs_then_their_numbers_grow_and_a_repeat_has_its_own_again(run: Gate) -> None:
    """By these the gate leaves a repeat alone that comes when a later report was acknowledged."""
    identity = RunIdentity("run-1", 1, run.url, "t", driver="d", report_wait_s=30)
    set_gate(GateClient(identity, pause=lambda _: None))
    run.first_answers("outputs", (503, ""))
    set_output("rows", 1)
    set_output("rows", 2)
    first, repeat, second = [request.body["seq"] for request in run.of("outputs")]
    assert isinstance(first, int)
    assert first >= 1
    assert (repeat, second) == (first, first + 1)


def test_given_texts_beyond_ascii_then_they_count_as_they_are_stored(run: Gate) -> None:
    set_output("a", "\u00e9" * (OUTPUTS_BYTES_MAX // 2 - 10))
    assert len(run.of("outputs")) == 1


def test_given_outputs_above_the_limit_then_none_is_sent_and_the_old_ones_stay(run: Gate) -> None:
    room = OUTPUTS_BYTES_MAX - len(json.dumps({"a": ""}))
    set_output("a", "x" * room)
    with pytest.raises(OutputsTooLarge, match=f"at most {OUTPUTS_BYTES_MAX} are kept"):
        set_output("b", 1)
    assert len(run.of("outputs")) == 1
    assert set(outputs_so_far()) == {"a"}


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}, os.fsdecode(b"\xff.parquet"), {"a": ["\ud800"]}])
def test_given_a_value_that_is_no_json_then_the_output_is_named(run: Gate, value: object) -> None:
    with pytest.raises(ValueError, match="outputs odd"):
        set_output("odd", value)
    assert run.of("outputs") == []


def test_given_an_output_that_is_nested_endlessly_then_it_is_named(run: Gate) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="outputs odd"):
        set_output("odd", deep)
    assert run.of("outputs") == []


def test_given_a_refused_output_then_it_is_not_repeated_at_the_end(run: Gate) -> None:
    run.refuses("outputs", 409, detail="the run has ended")
    with pytest.raises(ReportFailed, match="the run has ended"):
        set_output("rows", 1)
    assert outputs_so_far() == {}


def test_given_an_object_that_changes_after_its_report_then_what_was_acknowledged_stays(run: Gate) -> None:
    """The end repeats the outputs: what became of the object meanwhile was neither checked nor reported."""
    steps = ["read"]
    set_output("steps", steps)
    steps.append("x" * OUTPUTS_BYTES_MAX)
    set_output("rows", 1)
    assert [request.body["outputs"] for request in run.of("outputs")][-1] == {"steps": ["read"], "rows": 1}
    assert outputs_so_far() == {"steps": ["read"], "rows": 1}


def test_given_an_object_that_changes_while_it_is_reported_then_what_was_sent_stays(
    run: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = ["read"]
    post = GateClient.post

    def posts_and_changes(*arguments: Any) -> Answer:
        answer = post(*arguments)
        steps.append("joined")
        return answer

    monkeypatch.setattr(GateClient, "post", posts_and_changes)
    set_output("steps", steps)
    assert outputs_so_far() == {"steps": ["read"]}


def test_given_no_run_then_error_says_where_to_call_from() -> None:
    with pytest.raises(NotInRun, match="not the main program of a tidegate run"):
        report_partition("flights.raw", "1")
    with pytest.raises(NotInRun, match="outputs rows"):
        set_output("rows", 1)
