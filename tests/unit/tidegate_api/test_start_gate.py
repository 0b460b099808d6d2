"""The start gate and the reports: who passes, who does not, and what the program is told."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import NOW, SECRET, TOPIC_PARTITIONS, TOPICS, Process, a_run, shard_of
from tidegate_api.routes.gate import run_token
from tidegate_api.start_gate import OUTPUTS_LEVELS_MAX, outputs_text
from tidegate_core.language.events.trigger_facts import RunFact
from tidegate_core.language.values.problems import InvalidInput
from tidegate_core.rows.effects import NotProduced
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.run import Run
from tidegate_core.runs.run_events import outbox_row
from tidegate_core.shard.events.outbox import event_of_row
from tidegate_spark.gate_client import Answer


@pytest.fixture
def run(process: Process) -> Run:
    run = a_run()
    process.put(run, run.key(shard_of(run)))
    return run


def stored(process: Process, run: Run) -> Run:
    item = process.store.peek(run.key(shard_of(run)))
    assert item is not None
    return from_item(Run, item)


def test_given_first_driver_then_it_passes_and_the_owner_is_poked(process: Process, run: Run) -> None:
    assert process.report(run, "start", host="h", pid=4).status_code == 200
    found = stored(process, run)
    assert (found.state, found.driver, found.started_at) == ("running", "d-1", NOW)
    process.http.get("/livez")  # The poke's task has had its turn by the time another request is answered.
    (poke,) = [order for order in process.bus.produced if order.topic == TOPICS.pokes]
    assert poke.value == f'{{"shard": {shard_of(run)}, "run": "{run.id}"}}'.encode()
    assert poke.topic_partition == shard_of(run) % TOPIC_PARTITIONS % 2


@pytest.mark.parametrize("host", [{}, {"launcher_host": "host-of-launcher"}], ids=["an older wrapper", "a present one"])
def test_given_a_driver_whose_launcher_is_known_then_the_run_names_its_host(
    process: Process, run: Run, host: dict[str, str]
) -> None:
    """Not the machine's own name, which an operator may have given the launcher another one for."""
    assert process.report(run, "start", host="h", **host).status_code == 200
    assert stored(process, run).driver_host == host.get("launcher_host")


def test_given_same_driver_again_then_it_passes_again(process: Process, run: Run) -> None:
    assert [process.report(run, "start").status_code for _ in range(2)] == [200, 200]


def test_given_many_drivers_at_once_then_exactly_one_passes(process: Process, run: Run) -> None:
    def start(number: int) -> int:
        status = process.report(run, "start", driver=f"d-{number}").status_code
        assert isinstance(status, int)
        return status

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(start, range(16))) == [200] + [409] * 15


@pytest.mark.parametrize(
    ("fields", "attempt", "reason"),
    [
        pytest.param({"state": "running", "driver": "other"}, 1, "duplicate", id="another driver has it"),
        pytest.param({"attempt": 2}, 1, "older_attempt", id="a further attempt exists"),
        pytest.param({"attempt": 1}, 2, "unknown_attempt", id="an attempt that was never made"),
        pytest.param(
            {"state": "closed", "ended_at": NOW, "outcome": "closed", "disposition": "cancelled/suspended"},
            1,
            "closed",
            id="closed before the gate",
        ),
        pytest.param(
            {"state": "running", "driver": "other", "ended_at": NOW, "outcome": "failed"}, 1, "ended", id="it has ended"
        ),
    ],
)
def test_given_it_must_not_run_then_409_says_why(
    process: Process, run: Run, fields: dict[str, Any], attempt: int, reason: str
) -> None:
    changed = replace(run, **fields)
    process.put(changed, changed.key(shard_of(run)))
    answer = process.report(run, "start", attempt=attempt)
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["reason"] == reason
    assert run.id in answer.json()["detail"]


def test_given_run_closed_and_gone_to_the_history_then_409(process: Process) -> None:
    run = a_run(state="closed", ended_at=NOW, outcome="closed", disposition="cancelled/schedule_deleted")
    process.put_ended(run)
    answer = process.report(run, "start")
    assert (answer.status_code, answer.json()["reason"]) == (409, "closed")
    assert "schedule_deleted" in answer.json()["detail"]


def test_given_unknown_run_then_404(process: Process) -> None:
    assert process.report(a_run("other"), "start").status_code == 404


def test_given_any_report_then_the_program_can_tell_that_the_api_itself_has_answered(
    process: Process, run: Run
) -> None:
    """Its wrapper takes an answer without these marks for a proxy's, and asks again."""
    reports: dict[str, dict[str, Any]] = {
        "start": {},
        "outputs": {"outputs": {"rows": 1}},
        "partitions": {"dataset": "flights.raw", "partition": "p"},
        "finished": {"outcome": "succeeded"},
    }
    accepted = [Answer(200, process.report(run, action, **fields).json()) for action, fields in reports.items()]
    assert [answer.is_of_the_api(run.id) for answer in accepted] == [True] * 4
    refused = [process.report(run, action, driver="d-2", **fields) for action, fields in reports.items()]
    refused += [process.report(a_run("other"), "start"), process.report(run, "start", attempt=0)]
    refused += [process.http.post(f"/api/v1/runs/{run.id}/start", json={"attempt": 1, "driver": "d-1"})]
    assert {answer.status_code for answer in refused} == {400, 401, 404, 409}
    assert all(Answer(answer.status_code, answer.json()).is_of_the_api(run.id) for answer in refused)


@pytest.mark.parametrize("header", [None, "Bearer ", "Bearer 0" * 8, "Basic abc"])
@pytest.mark.parametrize("action", ["start", "outputs", "finished", "partitions"])
def test_given_wrong_token_then_401_and_nothing_is_written(
    process: Process, run: Run, action: str, header: str | None
) -> None:
    body = {
        "attempt": 1,
        "driver": "d-1",
        "outputs": {},
        "outcome": "succeeded",
        "dataset": "flights.raw",
        "partition": "p",
    }
    headers = {} if header is None else {"Authorization": header}
    answer = process.http.post(f"/api/v1/runs/{run.id}/{action}", json=body, headers=headers)
    assert answer.status_code == 401
    assert stored(process, run) == run


def test_given_token_of_another_attempt_then_401(process: Process, run: Run) -> None:
    answer = process.report(run, "start", attempt=1)
    token = answer.request.headers["Authorization"]
    body = {"attempt": 2, "driver": "d-1"}
    again = process.http.post(f"/api/v1/runs/{run.id}/start", json=body, headers={"Authorization": token})
    assert again.status_code == 401


def test_given_finished_then_outcome_and_outputs_are_recorded_and_a_repeat_is_fine(process: Process, run: Run) -> None:
    process.report(run, "start")
    end = {
        "outcome": "failed",
        "reason": "what failed" + "x" * 2_000 + "the cause",
        "exit_code": 3,
        "outputs": {"rows": 1.5},
    }
    assert process.report(run, "finished", **end).status_code == 200
    found = stored(process, run)
    assert (found.outcome, found.exit_code, found.outputs, found.ended_at) == ("failed", 3, '{"rows":1.5}', NOW)
    assert found.reason is not None
    assert len(found.reason) == 1_024
    assert found.reason.startswith("what failed")
    assert found.reason.endswith("the cause")
    assert process.report(run, "finished", **end).status_code == 200
    assert process.report(run, "finished", driver="d-2", **end).status_code == 409


@pytest.mark.parametrize(
    "exit_code", [2**63, -(10**40) - 1, 10**400], ids=["beyond 64 bits", "41 digits", "401 digits"]
)
def test_given_an_exit_code_that_no_system_has_then_400_names_the_field(
    process: Process, run: Run, exit_code: int
) -> None:
    """What the store's numbers do not hold was an unforeseen error, which is repeated for five minutes."""
    process.report(run, "start")
    answer = process.report(run, "finished", outcome="failed", exit_code=exit_code)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "exit_code")


def test_given_finished_again_when_the_owner_has_moved_the_run_to_the_history_then_200(process: Process) -> None:
    run = a_run(state="succeeded", driver="d-1", ended_at=NOW, outcome="succeeded")
    process.put_ended(run)
    assert process.report(run, "finished", outcome="succeeded").status_code == 200


@pytest.mark.parametrize("in_history", [False, True])
def test_given_a_report_after_the_owner_settled_the_run_otherwise_then_409_says_what_was_recorded(
    process: Process, in_history: bool
) -> None:
    run = a_run(
        state="lost" if in_history else "running", driver="d-1", ended_at=NOW, outcome="lost", reason="host is gone"
    )
    if in_history:
        process.put_ended(run)
    else:
        process.put(run, run.key(shard_of(run)))
    answer = process.report(run, "finished", outcome="succeeded")
    assert (answer.status_code, answer.json()["reason"]) == (409, "ended")
    assert "the run has ended as lost (host is gone)" in answer.json()["detail"]


def test_given_finished_before_start_then_409(process: Process, run: Run) -> None:
    answer = process.report(run, "finished", outcome="succeeded")
    assert (answer.status_code, answer.json()["reason"]) == (409, "not_started")


def test_given_outputs_then_they_are_replaced_and_too_large_ones_refused(process: Process, run: Run) -> None:
    process.report(run, "start")
    assert process.report(run, "outputs", outputs={"a": 1}).status_code == 200
    assert process.report(run, "outputs", outputs={"b": "é"}).status_code == 200
    assert stored(process, run).outputs == '{"b":"é"}'
    answer = process.report(run, "outputs", outputs={"b": "x" * 65_536})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (413, "outputs")


def test_given_outputs_that_later_ones_have_overtaken_then_they_change_nothing_and_are_answered_as_taken(
    process: Process, run: Run
) -> None:
    """The program was told of the later ones already; whoever still waits for this answer has nothing to mend."""
    process.report(run, "start")
    told = [({"rows": 2}, 2), ({"rows": 1}, 1), ({"rows": 2}, 2)]
    answers = [process.report(run, "outputs", outputs=outputs, seq=seq) for outputs, seq in told]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert [answer.json()["run_id"] for answer in answers] == [run.id] * 3
    assert stored(process, run).outputs == '{"rows":2}'
    assert process.report(run, "outputs", driver="d-2", outputs={}, seq=1).status_code == 409
    process.report(run, "finished", outcome="succeeded")
    assert process.report(run, "outputs", outputs={}, seq=1).status_code == 409


@pytest.mark.parametrize("seq", [0, -1, 2**63, "one"])
def test_given_outputs_under_a_number_that_is_none_then_400_names_the_field(
    process: Process, run: Run, seq: Any
) -> None:
    process.report(run, "start")
    answer = process.report(run, "outputs", outputs={}, seq=seq)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "seq")


@pytest.mark.parametrize("outputs", [{"file": "\udcff.parquet"}, {"a": {"\ud800": 1}}])
def test_given_outputs_that_utf_8_cannot_hold_then_they_are_refused(outputs: dict[str, Any]) -> None:
    """Taken as they are they would stop the run's owner when the run ends."""
    with pytest.raises(InvalidInput, match="outputs: contain a lone surrogate"):
        outputs_text(outputs)


def nested(levels: int) -> dict[str, Any]:
    """Outputs of so many lists and mappings inside of each other."""
    inner: Any = {}
    for level in range(levels - 2):
        inner = [inner] if level % 2 else {"a": inner}
    return {"a": inner}


@pytest.mark.parametrize("levels", [OUTPUTS_LEVELS_MAX + 1, 260, 900])
@pytest.mark.parametrize("action", ["outputs", "finished"])
def test_given_outputs_that_are_too_deep_then_400_says_so_and_runs_can_still_be_listed(
    process: Process, run: Run, action: str, levels: int
) -> None:
    """Found in review: once stored they stopped the run's end, and every list with the run was an error."""
    process.report(run, "start")
    end = {"outcome": "succeeded"} if action == "finished" else {}
    answer = process.report(run, action, outputs=nested(levels), **end)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"], error["problem"]) == (400, "outputs", "are more than 100 levels deep")
    assert "report flat values" in error["hint"]
    assert stored(process, run).outputs is None
    assert process.http.get("/api/v1/runs").status_code == 200


def test_given_outputs_as_deep_as_they_may_be_then_the_end_is_told_on_and_listed(process: Process, run: Run) -> None:
    process.report(run, "start")
    outputs = nested(OUTPUTS_LEVELS_MAX)
    assert process.report(run, "finished", outcome="succeeded", outputs=outputs).status_code == 200
    fact = event_of_row(outbox_row(stored(process, run)))
    assert isinstance(fact, RunFact)
    assert fact.outputs == outputs
    (shown,) = process.http.get("/api/v1/runs").json()["items"]
    assert shown["outputs"] == outputs


def test_given_data_partition_of_the_running_driver_then_it_is_an_event(process: Process, run: Run) -> None:
    process.report(run, "start")
    answer = process.report(run, "partitions", dataset="flights.raw", partition="2013-01-01", rows=842)
    event_id = f"{run.id}/flights.raw/2013-01-01/1"
    assert (answer.status_code, answer.json()["event_id"]) == (200, event_id)
    (event,) = process.bus.on(TOPICS.events)
    assert event["id"] == event_id
    assert (event["namespace"], event["rows"], event["kind"]) == ("flights", 842, "created")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", "a\nb"),
        ("version", ""),
        ("version", "x" * 257),
        ("version", "\ud800"),
        ("partition", "\ud800"),
        ("bytes", 2**63),
        ("bytes", -1),
        ("rows", 2**63),
        ("rows", 1.5),
    ],
)
def test_given_data_partition_that_is_no_event_then_400_names_the_field(
    process: Process, run: Run, field: str, value: Any
) -> None:
    """Programs repeat a 500 for five minutes, a 400 not at all."""
    process.report(run, "start")
    body = {"attempt": 1, "driver": "d-1", "dataset": "d", "partition": "p", field: value}
    headers = {"Authorization": f"Bearer {run_token(SECRET, run.id, 1)}", "Content-Type": "application/json"}
    answer = process.http.post(f"/api/v1/runs/{run.id}/partitions", content=json.dumps(body), headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, field)


def test_given_data_partition_of_a_run_in_tidegates_own_namespace_then_the_program_is_told_that_no_event_may_be_of_it(
    process: Process,
) -> None:
    """It was told that all is well, and the nodes refused the event: a dead letter, of which no program hears."""
    run = a_run(namespace="tidegate")
    process.put(run, run.key(shard_of(run)))
    process.report(run, "start")
    answer = process.report(run, "partitions", dataset="flights.raw", partition="p")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "namespace")
    assert process.bus.on(TOPICS.events) == []


def test_given_a_reason_with_half_a_character_then_the_end_is_recorded_without_it(process: Process, run: Run) -> None:
    process.report(run, "start")
    body = {"attempt": 1, "driver": "d-1", "outcome": "failed", "reason": "no file \udcff.csv"}
    headers = {"Authorization": f"Bearer {run_token(SECRET, run.id, 1)}", "Content-Type": "application/json"}
    answer = process.http.post(f"/api/v1/runs/{run.id}/finished", content=json.dumps(body), headers=headers)
    assert answer.status_code == 200
    assert stored(process, run).reason == "no file ?.csv"


@pytest.mark.parametrize("state", [{}, {"state": "running", "driver": "other"}, {"attempt": 2}])
def test_given_data_partition_of_anybody_else_then_409_and_no_event(
    process: Process, run: Run, state: dict[str, Any]
) -> None:
    changed = replace(run, **state)
    process.put(changed, changed.key(shard_of(run)))
    answer = process.report(run, "partitions", dataset="flights.raw", partition="p")
    assert answer.status_code == 409
    assert process.bus.on(TOPICS.events) == []


def test_given_slashes_in_data_partition_and_version_then_each_event_has_an_id_of_its_own(
    process: Process, run: Run
) -> None:
    """`a/b` in version 1 and `a` in version `b/1` had one id, and of the two events the second did not count."""
    process.report(run, "start")
    named = [("a/b", "1"), ("a", "b/1"), ("a", "b~11"), ("a/b/1", "x"), ("a" * 256, "/" * 256)]
    for partition, version in named:
        answer = process.report(run, "partitions", dataset="flights.raw", partition=partition, version=version)
        assert answer.status_code == 200
    ids = [event["id"] for event in process.bus.on(TOPICS.events)]
    assert ids[:2] == [f"{run.id}/flights.raw/a/b/1", f"{run.id}/flights.raw/a/b~11"]
    assert len(set(ids)) == len(named)


def test_given_broker_is_down_then_data_partition_is_503_with_retry_after(process: Process, run: Run) -> None:
    process.report(run, "start")
    process.bus.failure = NotProduced("unavailable", "no broker")
    answer = process.report(run, "partitions", dataset="flights.raw", partition="p")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


def test_given_broker_is_down_then_the_gate_still_lets_pass(process: Process, run: Run) -> None:
    process.bus.failure = NotProduced("unavailable", "no broker")
    assert process.report(run, "start").status_code == 200


def test_given_impossible_dataset_then_400_names_it(process: Process, run: Run) -> None:
    process.report(run, "start")
    answer = process.report(run, "partitions", dataset="Flights/raw", partition="p")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "dataset")
