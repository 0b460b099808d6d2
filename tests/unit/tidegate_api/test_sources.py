"""Sources over REST: requests to the owner of their home shard, reads of their one item."""

from __future__ import annotations

import json

from tests.unit.tidegate_api.conftest import SHARDS, TOPIC_PARTITIONS, Process
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.values.derived_ids import cluster_object_shard
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.source_list import Source, Sources, StoredSources
from tidegate_core.rows.store_operations import Put

SPEC = dict(SourceSpec.EXAMPLE)
PATH = "/api/v1/sources/flights/landed-files"


def put_sources(process: Process) -> None:
    body = SourceSpec.model_validate(SPEC).canonical_json()
    entries = (
        Source(namespace="orders", name="parcels", position="p", version=1, body=body),
        Source(namespace="flights", name="landed-files", position="p", version=3, body=body, vector="v"),
        Source(namespace="flights", name="gone", position="p", version=2),
    )
    item = to_item(StoredSources.of(Sources(version=5, entries=entries)), keys.SOURCES_KEY)
    process.store.write((Put(keys.SOURCES_KEY, item),))


def test_given_a_source_then_its_request_lies_in_the_topic_partition_of_their_home(process: Process) -> None:
    answer = process.http.put(PATH, json=SPEC, params={"expected_version": 0, "reason": "first"})
    assert (answer.status_code, answer.json()["status"]) == (200, "accepted")
    (order,) = process.bus.produced
    document = json.loads(order.value)
    assert order.topic_partition == cluster_object_shard("sources", SHARDS) % TOPIC_PARTITIONS
    assert (document["type"], document["expected_version"], document["reason"]) == ("source.apply", 0, "first")
    assert document["spec"]["topic"] == "lake.commits"


def test_given_a_delete_with_an_etag_then_it_names_the_version(process: Process) -> None:
    assert process.http.delete(PATH, headers={"If-Match": '"3"'}).status_code == 200
    document = json.loads(process.bus.produced[0].value)
    assert (document["type"], document["expected_version"]) == ("source.delete", 3)


def test_given_a_faulty_source_then_400_names_the_fields_and_nothing_is_sent(process: Process) -> None:
    event = {"dataset": "raw", "partition": {"pointer": "day"}}
    answer = process.http.put(PATH, json={**SPEC, "event": event, "topic": "a b"})
    assert answer.status_code == 400
    assert {each["field"] for each in answer.json()["errors"]} == {"topic", "event.partition.pointer"}
    assert process.bus.produced == []


def test_given_sources_then_those_that_are_there_are_listed_by_name(process: Process) -> None:
    put_sources(process)
    items = process.http.get("/api/v1/sources").json()["items"]
    assert [(each["namespace"], each["name"], each["status"]) for each in items] == [
        ("flights", "landed-files", "open"),
        ("orders", "parcels", "opening"),
    ]
    of_one = process.http.get("/api/v1/sources", params={"namespace": "orders"}).json()["items"]
    assert [each["name"] for each in of_one] == ["parcels"]


def test_given_no_sources_yet_then_there_are_none(process: Process) -> None:
    assert process.http.get("/api/v1/sources").json() == {"items": [], "next_page_token": ""}


def test_given_a_source_then_it_is_shown_with_its_version_as_etag(process: Process) -> None:
    put_sources(process)
    answer = process.http.get(PATH)
    assert (answer.headers["ETag"], answer.json()["topic"]) == ('"3"', "lake.commits")
    assert answer.json()["spec"]["event"]["partition"] == {"pointer": "/file/day"}


def test_given_none_of_this_name_then_404(process: Process) -> None:
    put_sources(process)
    for name in ("gone", "never"):
        assert process.http.get(f"/api/v1/sources/flights/{name}").status_code == 404
