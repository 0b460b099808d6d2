"""Dry runs, which say what an apply would do, and warnings: both are judged as the owner will."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.builders import on_run_of
from tests.unit.tidegate_api.conftest import NOW, PUT_SCHEDULE, SHARDS, SPEC, TOPICS, Process, accepted, put_schedule
from tidegate_api.reads.apply_warnings import UPSTREAMS_READ_MAX
from tidegate_api.reads.schedules import ScheduleReads
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows import keys
from tidegate_core.rows.recurring_message import Interval, Recurring
from tidegate_core.rows.store_operations import Item, Put
from tidegate_core.shard.outages.outage_recorder import heartbeat_row


def test_given_a_shown_schedule_then_applying_its_spec_changes_nothing(process: Process) -> None:
    spec = runnable(process)
    put_schedule(process, {**spec, "constraints": [{"type": "concurrency", "max": 2}], "suspended": True})
    shown = process.http.get(PUT_SCHEDULE).json()["spec"]
    assert process.http.put(PUT_SCHEDULE, json=shown, params={"dry_run": "true"}).json()["would"] == "unchanged"


def runnable(process: Process) -> dict[str, Any]:
    """Returns the spec with a file that is there."""
    file = process.data / "land.py"
    file.write_text("")
    return {**SPEC, "target": {"type": "program", "program": {"type": "python", "file": str(file)}}}


@pytest.mark.parametrize("query", [{"dry_run": "true"}, {}])
def test_given_a_definition_that_is_too_large_to_be_kept_then_it_is_refused_with_413(
    process: Process, query: dict[str, str]
) -> None:
    """Found in review: a dry run said that it would be created, and the apply was a 400."""
    large = runnable(process)
    large["target"]["program"]["args"] = ["x" * 1_000] * 66
    answer = process.http.put(PUT_SCHEDULE, json=large, params=query)
    assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (413, ["spec"])
    assert "at most 65536 (64 KiB) are allowed" in answer.json()["detail"]
    assert process.bus.produced == []


def test_given_a_deploy_mode_that_no_launcher_takes_then_a_dry_run_refuses_it_as_the_apply_does(
    process: Process,
) -> None:
    spec = runnable(process)
    program = {**spec["target"]["program"], "type": "pyspark", "conf": {"spark.submit.deployMode": "cluster"}}
    spec = {**spec, "target": {"type": "program", "program": program}}
    answer = process.http.put(PUT_SCHEDULE, json=spec, params={"dry_run": "true"})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (400, "target.program")
    assert "client mode only" in error["problem"]


def test_given_dry_run_then_it_says_what_would_happen_and_sends_nothing(process: Process) -> None:
    spec = runnable(process)
    query = {"dry_run": "true"}
    assert process.http.put(PUT_SCHEDULE, json=spec, params=query).json()["would"] == "create"
    put_schedule(process, spec)
    assert process.http.put(PUT_SCHEDULE, json=spec, params=query).json()["would"] == "unchanged"
    changed = {**spec, "overlap": "allow"}
    answer = process.http.put(PUT_SCHEDULE, json=changed, params=query).json()
    assert (answer["would"], answer["changed"], answer["version"]) == ("replace", ["overlap"], 1)
    assert answer["warnings"] == []
    (warning,) = process.http.put(PUT_SCHEDULE, json={**spec, "overlap": "skip"}, params=query).json()["warnings"]
    assert warning.startswith('catchup.mode: "all" with overlap: skip')
    too_often = {**spec, "trigger": {"type": "every", "period": "2s"}}
    assert process.http.put(PUT_SCHEDULE, json=too_often, params=query).status_code == 400
    assert process.bus.produced == []


@pytest.mark.parametrize(("least", "status"), [(1_000, 200), (60_000, 400)])
def test_given_a_node_with_another_minimum_period_then_a_dry_run_judges_by_it(
    process: Process, least: int, status: int
) -> None:
    """It judged by the API's own setting, and refused what the owner takes, or the other way round."""
    lease = keys.lease(schedule_shard("flights", "land-day", SHARDS))
    sign = heartbeat_row("owner-1", "node-1", NOW, {}, NOW, minimum_period_ms=least)
    process.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, "owner": "owner-1"}), sign])
    often = {**runnable(process), "trigger": {"type": "every", "period": "5s" if status == 200 else "30s"}}
    assert process.http.put(PUT_SCHEDULE, json=often, params={"dry_run": "true"}).status_code == status


def circle(process: Process) -> dict[str, Any]:
    """Returns a schedule that closes a circle with two that are stored."""
    after = {name: {**SPEC, "name": name, "trigger": on_run_of(up)} for name, up in (("b", "c"), ("c", "land-day"))}
    for document in after.values():
        put_schedule(process, document)
    return {**runnable(process), "trigger": on_run_of("b")}


@pytest.mark.parametrize("query", [{"dry_run": "true"}, {}])
def test_given_an_apply_that_closes_a_circle_then_it_is_made_and_warned_of(
    process: Process, query: dict[str, str]
) -> None:
    """Docs said so, and no command: who applies the last of them learnt nothing."""
    answer = process.http.put(PUT_SCHEDULE, json=circle(process), params=query)
    assert answer.status_code == 200
    (warning,) = answer.json()["warnings"]
    assert "flights/land-day waits for flights/b waits for flights/c waits for flights/land-day" in warning


def test_given_an_unchanged_schedule_then_it_is_not_warned_of_again(process: Process) -> None:
    process.bus.owner = lambda document: accepted(document, status=ReceiptStatus.UNCHANGED, version=3)
    assert process.http.put(PUT_SCHEDULE, json=circle(process)).json()["warnings"] == []


def test_given_a_chain_that_is_long_then_only_so_much_of_it_is_read(process: Process) -> None:
    for number in range(UPSTREAMS_READ_MAX + 5):
        put_schedule(process, {**SPEC, "name": f"s-{number}", "trigger": on_run_of(f"s-{number + 1}")})
    put_schedule(process, {**SPEC, "name": f"s-{UPSTREAMS_READ_MAX + 5}", "trigger": on_run_of("land-day")})
    asked: list[str] = []
    specs = ScheduleReads.specs

    async def counted(reads: ScheduleReads, refs: Sequence[str]) -> dict[str, ScheduleSpec]:
        asked.extend(refs)
        return await specs(reads, refs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScheduleReads, "specs", counted)
        spec = {**runnable(process), "trigger": on_run_of("s-0")}
        assert process.http.put(PUT_SCHEDULE, json=spec).json()["warnings"] == []
    assert len(asked) == UPSTREAMS_READ_MAX


@pytest.mark.parametrize("own", [True, False])
def test_given_dry_run_of_an_update_that_cannot_keep_what_is_pending_then_it_is_refused_as_the_apply_would_be(
    process: Process, own: bool
) -> None:
    spec = runnable(process)
    put_schedule(process, spec)
    changed = {**spec, "trigger": {"type": "every", "period": "3h"}, **({"on_update": "carry"} if own else {})}
    query = {"dry_run": "true", **({} if own else {"on_update": "carry"})}
    answer = process.http.put(PUT_SCHEDULE, json=changed, params=query)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (400, "on_update")


@pytest.mark.parametrize("file", ["none.py", ""])
def test_given_dry_run_of_a_program_file_that_is_not_there_or_a_folder_then_it_is_refused_as_the_apply_would_be(
    process: Process, file: str
) -> None:
    path = str(process.data / file)
    spec = {**SPEC, "target": {"type": "program", "program": {"type": "python", "file": path}}}
    answer = process.http.put(PUT_SCHEDULE, json=spec, params={"dry_run": "true"})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (400, "target.program.file")
    assert error["problem"] == f"{path} does not exist on the API's host, or is no file"
    put_schedule(process, spec)  # Its owner does not look again at what changes nothing.
    assert process.http.put(PUT_SCHEDULE, json=spec, params={"dry_run": "true"}).json()["would"] == "unchanged"


@pytest.mark.parametrize(
    ("topic", "status"), [(TOPICS.requests, 400), (f"{TOPICS.runs}.dlq", 400), ("flights.due", 200)]
)
def test_given_dry_run_of_messages_to_a_topic_of_tidegates_own_then_it_is_refused_as_the_apply_would_be(
    process: Process, topic: str, status: int
) -> None:
    spec = {**SPEC, "target": {"type": "message", "topic": topic, "payload": "x"}}
    answer = process.http.put(PUT_SCHEDULE, json=spec, params={"dry_run": "true"})
    assert answer.status_code == status
    if status == 400:
        (error,) = answer.json()["errors"]
        assert (error["field"], error["problem"]) == (
            "spec.target.topic",
            f'"{topic}" is one of tidegate\'s own topics',
        )
        in_a_list = process.http.post("/api/v1/schedules", json=[spec])
        assert (in_a_list.status_code, process.bus.produced) == (400, [])
        assert in_a_list.json()["errors"][0]["field"] == "[0].spec.target.topic"


def test_given_dry_run_with_if_match_then_another_version_is_412_as_of_the_apply(process: Process) -> None:
    spec = runnable(process)
    put_schedule(process, spec, version=2)
    for etag, status in (('"2"', 200), ('"1"', 412)):
        answer = process.http.put(PUT_SCHEDULE, json=spec, params={"dry_run": "true"}, headers={"If-Match": etag})
        assert answer.status_code == status


@pytest.mark.parametrize(
    ("exists", "headers", "status"),
    [
        (True, {"If-None-Match": "*"}, 412),
        (False, {"If-None-Match": "*"}, 200),
        (True, {"If-Match": "*"}, 200),
        (False, {"If-Match": "*"}, 412),
    ],
)
def test_given_dry_run_of_an_apply_that_must_create_or_must_replace_then_412_where_it_would_not(
    process: Process, exists: bool, headers: dict[str, str], status: int
) -> None:
    spec = runnable(process)
    if exists:
        put_schedule(process, spec, version=2)
    answer = process.http.put(PUT_SCHEDULE, json=spec, params={"dry_run": "true"}, headers=headers)
    assert answer.status_code == status


def test_given_dry_run_that_expects_another_version_then_409_as_the_apply(process: Process) -> None:
    spec = runnable(process)
    put_schedule(process, spec, version=2)
    for expected, status in ((2, 200), (1, 409), (0, 409)):
        query = {"dry_run": "true", "expected_version": str(expected)}
        assert process.http.put(PUT_SCHEDULE, json=spec, params=query).status_code == status


def test_given_dry_run_of_an_unchanged_schedule_that_has_run_its_course_then_it_is_unchanged(process: Process) -> None:
    """As its owner answers: only what changes something is judged by the present."""
    spec = runnable(process)
    ended = {**spec, "trigger": {**SPEC["trigger"], "start": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00Z"}}
    put_schedule(process, ended, next_nominal=None)
    query = {"dry_run": "true"}
    assert process.http.put(PUT_SCHEDULE, json=ended, params=query).json()["would"] == "unchanged"
    changed = process.http.put(PUT_SCHEDULE, json={**ended, "overlap": "allow"}, params=query)
    assert (changed.status_code, changed.json()["errors"][0]["field"]) == (400, "trigger.end")


def test_given_a_carried_update_of_what_has_run_its_course_then_dry_run_and_list_take_it_as_the_apply_does(
    process: Process,
) -> None:
    """What waits of it goes on under other constraints: the owner takes that, a dry run and a list refused it."""
    spec = runnable(process)
    ended = {**spec, "trigger": {**SPEC["trigger"], "start": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00Z"}}
    put_schedule(process, ended, next_nominal=None)
    changed, query = {**ended, "priority": "high"}, {"dry_run": "true", "on_update": "carry"}
    answer = process.http.put(PUT_SCHEDULE, json=changed, params=query)
    assert (answer.status_code, answer.json().get("would")) == (200, "replace")
    in_a_list = process.http.post("/api/v1/schedules", json=[changed], params={"on_update": "carry"})
    assert in_a_list.status_code == 200


@pytest.mark.parametrize("sent", [False, True])
def test_given_dry_run_of_an_update_of_a_message_at_an_instant_that_has_passed_then_it_comes_again_only_if_it_was_not_sent(
    process: Process, sent: bool
) -> None:
    """Nothing is written when it is sent, so a dry run named its instant as what comes next, and the apply then sent nothing."""
    instant = NOW - 3_600_000
    trigger = {"type": "at", "instant": format_instant(instant)}
    spec = {**SPEC, "target": {"type": "message", "topic": "flights.due", "payload": "x"}, "trigger": trigger}
    state, shard = put_schedule(process, spec, next_nominal=None), schedule_shard("flights", "land-day", SHARDS)
    definition = ScheduleSpec.model_validate(spec)
    span = Interval(
        generation=state.generation,
        version=state.version,
        incarnation=state.incarnation,
        origin="",
        begin=NOW - 1_000,
        since=instant,
        trigger=definition.trigger.canonical_json(),
        size=1,
    )
    process.put(
        Recurring(namespace="flights", name="land-day").with_spans([span]),
        keys.recurring_far(shard, "flights", "land-day"),
    )
    progress = keys.progress(shard)
    tally = dict.fromkeys(("epoch", "delivered", "expired", "cancelled", "dead", "digest"), 0)
    slot = NOW if sent else NOW - 2_000
    item: Item = {"pk": progress.pk, "sk": progress.sk, **tally, "fired_slot": slot, "fired_id": ""}
    process.store.write([Put(progress, item)])
    changed = {**spec, "target": {**spec["target"], "payload": "y"}}
    answer = process.http.put(PUT_SCHEDULE, json=changed, params={"dry_run": "true"}).json()
    assert (answer["would"], answer["next"]) == ("replace", [] if sent else [trigger["instant"]])
