"""A stop behind an open transaction: the API writes its row to its shard, and no other request's (decision 38)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import (
    NOW,
    PATIENT,
    PUT_SCHEDULE,
    SHARDS,
    SPEC,
    TOPIC_PARTITIONS,
    TOPICS,
    Process,
    accepted,
)
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.values.derived_ids import cluster_object_shard, run_id, schedule_shard
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows import keys
from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.receipt import StoredReceipt, expiry, subject_of
from tidegate_core.rows.store_operations import Item, Put
from tidegate_core.writes.partition_map import ClusterMap, put_first_map
from tidegate_ports.bus import Topic
from tidegate_ports.store import StoreUnavailable

TOPIC_ID = "0" * 32
OFFSET = 7
SHARD = schedule_shard("flights", "land-day", SHARDS)
RUN, JOB = (run_id(shard, "0" * 26, "cron", (str(NOW),)) for shard in (3, 5))
NO_BODY: dict[str, Any] = {}


@pytest.fixture
def blocked(process: Process) -> Process:
    """A transaction has been open since offset 4 in each topic partition of the requests, and no owner reads behind it."""
    first = ClusterMap.first(SHARDS, Topic(TOPICS.requests, TOPIC_ID, TOPIC_PARTITIONS), "cluster")
    action = put_first_map(first, "token").actions[0]
    assert isinstance(action, Put)
    assert action.key == keys.MAP_KEY
    process.store.write([Put(action.key, action.item)])
    process.bus.owner = lambda _: None
    process.bus.place = OFFSET
    process.bus.stable = stable(4)
    return process


def stable(offset: int, topic_id: str = TOPIC_ID) -> EndOffsets:
    return EndOffsets({f"{topic_id}/{number}": offset for number in range(TOPIC_PARTITIONS)})


def inbox(process: Process) -> list[Item]:
    return [item for item in process.store.items() if str(item["sk"]).startswith("I#")]


@pytest.mark.parametrize(
    ("method", "path", "shard"),
    [
        pytest.param("POST", f"{PUT_SCHEDULE}/suspend", SHARD, id="suspend"),
        pytest.param("DELETE", PUT_SCHEDULE, SHARD, id="delete"),
        pytest.param("POST", f"/api/v1/runs/{RUN}/cancel", 3, id="run"),
        pytest.param("POST", f"/api/v1/jobs/{JOB}/cancel", 5, id="job"),
        pytest.param("POST", "/api/v1/firing/stop", cluster_object_shard("controls", SHARDS), id="stop of all"),
    ],
)
def test_given_a_stop_behind_an_open_transaction_then_its_row_lies_in_its_shard_and_the_owner_is_poked(
    blocked: Process, method: str, path: str, shard: int
) -> None:
    """Each waited until the transaction was over, for up to 15 minutes."""
    answer = blocked.http.request(method, path, json=None if method == "DELETE" else NO_BODY)
    assert answer.status_code == 202
    (item,) = inbox(blocked)
    row = from_item(InboxRow, item)
    assert item["pk"] == keys.shard_pk(shard)
    assert row.origin == Position(NOW - 5, TOPIC_ID, shard % TOPIC_PARTITIONS, OFFSET).text()
    assert parse_request(row.body.encode()).id == answer.json()["request_id"], "it was applied twice"
    assert blocked.bus.on(TOPICS.pokes) == [{"shard": shard}]
    assert [name for name, _ in blocked.notices] == ["stop_handed_over", "api_request"]


@pytest.mark.parametrize("timing", [PATIENT])
def test_given_a_stop_that_was_handed_over_then_the_owners_stored_answer_is_the_answer(blocked: Process) -> None:
    write = blocked.store.write

    def applied(actions: Any) -> Any:
        """The owner applies an inbox row at once; nobody reads the receipts."""
        left = write(actions)
        for action in actions:
            if action.key.sk.startswith("I#"):
                request = parse_request(from_item(InboxRow, action.item).body.encode())
                receipt = accepted(json.loads(request.to_json()), version=9)
                stored = StoredReceipt(
                    request_id=receipt.request_id,
                    namespace=receipt.namespace,
                    subject=subject_of(request),
                    body=receipt.to_json().decode(),
                    expires_at=expiry(NOW, 1),
                )
                blocked.put(stored, stored.key(SHARD))
        return left

    blocked.store.write = applied  # type: ignore[method-assign]
    answer = blocked.http.post(f"{PUT_SCHEDULE}/suspend", json=NO_BODY)
    assert (answer.status_code, answer.json()["version"]) == (200, 9)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("PUT", PUT_SCHEDULE, SPEC, id="apply"),
        pytest.param("POST", f"{PUT_SCHEDULE}/trigger", NO_BODY, id="trigger"),
    ],
)
def test_given_a_request_that_makes_something_then_it_waits_its_turn_in_the_log(
    blocked: Process, method: str, path: str, body: object
) -> None:
    assert blocked.http.request(method, path, json=body).status_code == 202
    assert inbox(blocked) == []


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param(stable(OFFSET + 1), id="no transaction is open before it"),
        pytest.param(stable(4, "f" * 32), id="the topic is another one by now"),
    ],
)
def test_given_a_stop_that_can_be_read_then_it_overtakes_nothing(blocked: Process, ends: EndOffsets) -> None:
    """An owner that is late, for a take-over say, applies requests in their order: an apply before the stop would be superseded by it."""
    blocked.bus.stable = ends
    assert blocked.http.post(f"{PUT_SCHEDULE}/suspend", json=NO_BODY).status_code == 202
    assert inbox(blocked) == []


@pytest.mark.parametrize("timing", [PATIENT])
def test_given_brokers_and_a_store_that_do_not_answer_at_first_then_it_is_handed_over_when_they_do(
    blocked: Process,
) -> None:
    write, asked = blocked.store.write, blocked.bus.stable
    blocked.bus.stable = Unavailable("brokers")
    calls: list[str] = []

    async def told(_: str) -> Any:
        calls.append("ends")
        return Unavailable("brokers") if len(calls) == 1 else asked

    def written(actions: Any) -> Any:
        calls.append("write")
        if calls.count("write") == 1:
            raise StoreUnavailable("away")
        blocked.bus.announce(accepted(blocked.bus.on(TOPICS.requests)[0]))
        return write(actions)

    blocked.bus.stable_ends = told  # type: ignore[method-assign,assignment]
    blocked.store.write = written  # type: ignore[method-assign]
    assert blocked.http.post(f"{PUT_SCHEDULE}/suspend", json=NO_BODY).status_code == 200
    assert calls == ["ends", "ends", "write", "ends", "write"]
    assert len(inbox(blocked)) == 1


def test_given_a_clock_of_the_brokers_that_stepped_back_then_the_stop_is_not_older_than_what_was_read(
    blocked: Process,
) -> None:
    """It would be superseded by the very apply that it is to stop; the ingest makes append times monotone as well."""
    key = keys.topic_position("cluster", TOPIC_ID, SHARD % TOPIC_PARTITIONS)
    blocked.store.write([Put(key, {"pk": key.pk, "sk": key.sk, "next": 4, "last_append_time": NOW + 60_000})])
    blocked.http.post(f"{PUT_SCHEDULE}/suspend", json=NO_BODY)
    (item,) = inbox(blocked)
    assert Position.parse(str(item["origin"])).append_time == NOW + 60_000
