"""Nodes, shards and a stop of all firing over REST."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import NOW, SHARDS, TOPIC_PARTITIONS, Process
from tidegate_core.explain.watchdog.watchdog import LATE_MS
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows import keys, node_status
from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.rows.node_status import GONE_MS, SILENT_MS, DrainOrder, NodeStatus
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.scope_suspension import Scope, ScopeSuspensions, StoredSuspensions
from tidegate_core.rows.store_operations import Key, Put
from tidegate_core.shard.outages.outage_recorder import heartbeat_row

ONE, TWO = "1111aaaa-0000", "2222bbbb-0000"
HOUR = 3_600_000
TOPIC_ID = "0" * 32


def put_card(process: Process, owner: str, name: str, **fields: Any) -> None:
    given: dict[str, Any] = {"version": "0.1.0", "tzdata": "2025.2", "started_at": NOW - 5, "seen": NOW, "held": (1,)}
    written = NodeStatus(owner=owner, node=name, **{**given, **fields})
    key = keys.node_status(owner)
    process.store.write([Put(key, to_item(written, key))])


def put_item(process: Process, key: Key, **fields: Any) -> None:
    process.store.write([Put(key, {"pk": key.pk, "sk": key.sk, **fields})])


@pytest.fixture
def cluster(process: Process) -> Process:
    """Node one has all shards; node two has none."""
    put_item(
        process, MAP_KEY, version=1, n=TOPIC_PARTITIONS, shards=SHARDS, topic_id=TOPIC_ID, cluster_id="c", history=[]
    )
    put_card(process, ONE, "one", shards=SHARDS, clock_offset_ms=3)
    put_card(process, TWO, "two", held=(), unready=("it has not joined its group",))
    for shard in range(SHARDS):
        put_item(
            process, keys.lease(shard), epoch=4, map=1, tp_epoch=2, owner=ONE, controls=0, controls_done=0, served=1
        )
        put_item(process, keys.progress(shard), epoch=4, fired_slot=NOW - 9, fired_id="m")
    process.store.write([heartbeat_row(ONE, "one", NOW, dict.fromkeys(range(TOPIC_PARTITIONS), NOW - 1_000), 0)])
    return process


def by_id(process: Process) -> dict[str, str]:
    return {each["id"]: each["state"] for each in process.http.get("/api/v1/nodes").json()["items"]}


def states(process: Process) -> dict[str, str]:
    return {each["name"]: each["state"] for each in process.http.get("/api/v1/nodes").json()["items"]}


def test_given_nodes_then_each_says_how_it_stands(cluster: Process) -> None:
    assert states(cluster) == {"one": "ready", "two": "not_ready"}
    one = cluster.http.get("/api/v1/nodes/one").json()
    assert (one["topic_partitions"], one["shards"], one["clock_offset_ms"], one["tzdata"]) == ([1], SHARDS, 3, "2025.2")
    cluster.clock.now += SILENT_MS + 1
    assert set(states(cluster).values()) == {"silent"}


def test_given_a_process_that_was_replaced_or_is_gone_then_it_is_not_called_silent(cluster: Process) -> None:
    """Three names; of one of them the process was started again."""
    put_card(cluster, "3333cccc-0000", "one", seen=NOW - 10, started_at=NOW - HOUR)
    put_card(cluster, TWO, "two")
    cluster.clock.now += GONE_MS
    put_card(cluster, ONE, "one", seen=cluster.clock.now)
    assert by_id(cluster) == {ONE: "ready", TWO: "silent", "3333cccc-0000": "replaced"}
    cluster.clock.now += 1_000
    assert by_id(cluster) == {ONE: "ready", TWO: "gone", "3333cccc-0000": "replaced"}
    assert cluster.http.get("/api/v1/nodes/two").json()["state"] == "gone"

    lease = cluster.store.get([keys.lease(2)])[keys.lease(2)]
    put_item(cluster, keys.lease(2), **{**lease, "owner": TWO})
    assert by_id(cluster)[TWO] == "silent", "a shard of it has no other owner"


def test_given_a_card_of_the_day_before_then_it_is_not_listed(cluster: Process) -> None:
    """The store removes what has expired when it likes, a day or two later."""
    put_card(cluster, TWO, "two", seen=NOW - 25 * HOUR)
    assert set(by_id(cluster)) == {ONE}


def test_given_more_cards_than_a_page_then_all_are_listed(cluster: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_status, "NODES_MAX", 1)
    assert set(by_id(cluster)) == {ONE, TWO}
    assert {each["node"] for each in cluster.http.get("/api/v1/shards").json()["items"]} == {"one"}


def test_given_an_order_that_was_not_heard_yet_then_the_last_node_is_not_drained_behind_it(cluster: Process) -> None:
    """A node hears within 5 s, and says so on its card then."""
    put_card(cluster, TWO, "two")
    assert cluster.http.post("/api/v1/nodes/two/drain").status_code == 200
    assert cluster.http.post("/api/v1/nodes/one/drain").status_code == 409
    assert cluster.http.post("/api/v1/nodes/one/drain", json={"force": True}).status_code == 200


def test_given_two_that_drain_the_last_two_nodes_at_once_then_one_of_them_stays(
    cluster: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other API process has looked before, and writes its order just before this one's."""
    put_card(cluster, TWO, "two")
    write = cluster.store.write

    def together(actions: Any) -> Any:
        monkeypatch.setattr(cluster.store, "write", write)
        write([Put(keys.drain_order(TWO), to_item(DrainOrder(at=NOW), keys.drain_order(TWO)))])
        return write(actions)

    monkeypatch.setattr(cluster.store, "write", together)
    assert cluster.http.post("/api/v1/nodes/one/drain").status_code == 409
    assert states(cluster) == {"one": "ready", "two": "draining"}


def test_given_an_order_to_drain_then_it_is_drained_once_it_holds_nothing(cluster: Process) -> None:
    put_card(cluster, TWO, "two")
    answer = cluster.http.post("/api/v1/nodes/1111/drain", json={"reason": "new disk"})
    assert (answer.status_code, answer.json()["state"]) == (200, "draining")
    assert states(cluster)["one"] == "draining"
    put_card(cluster, ONE, "one", held=(), drained=True)
    assert states(cluster)["one"] == "drained"
    assert cluster.http.delete("/api/v1/nodes/one/drain").status_code == 200
    put_card(cluster, ONE, "one")
    assert states(cluster)["one"] == "ready"


def test_given_nobody_to_take_over_then_a_drain_has_to_be_meant(cluster: Process) -> None:
    put_card(cluster, TWO, "two", drained=True)
    answer = cluster.http.post("/api/v1/nodes/one/drain")
    assert (answer.status_code, "--force" in answer.json()["detail"]) == (409, True)
    assert states(cluster)["one"] == "ready"
    assert cluster.http.post("/api/v1/nodes/one/drain", json={"force": True}).json()["state"] == "draining"


def test_given_a_silent_node_then_it_takes_no_order(cluster: Process) -> None:
    put_card(cluster, TWO, "two", seen=NOW - SILENT_MS - 1)
    assert cluster.http.post("/api/v1/nodes/two/drain").status_code == 409


def test_given_a_name_of_several_then_the_one_that_lives_is_meant(cluster: Process) -> None:
    put_card(cluster, "3333cccc-0000", "one", seen=NOW - SILENT_MS - 1)
    assert cluster.http.get("/api/v1/nodes/one").json()["id"] == ONE
    put_card(cluster, "3333cccc-0000", "one")
    answer = cluster.http.get("/api/v1/nodes/one")
    assert (answer.status_code, "3333cccc-0000" in answer.json()["detail"]) == (409, True)
    for unknown in ("nobody", "111"):
        assert cluster.http.get(f"/api/v1/nodes/{unknown}").status_code == 404


def test_given_shards_then_each_says_whose_it_is_and_how_far(cluster: Process) -> None:
    put_item(cluster, keys.topic_position("c", TOPIC_ID, 1), epoch=1, next=90)
    shards = cluster.http.get("/api/v1/shards").json()["items"]
    assert [each["shard"] for each in shards] == list(range(SHARDS))
    # The log of the fake bus ends at 100 and 101, in two topic partitions.
    assert [each["requests_behind"] for each in shards[:4]] == [100, 11, 0, 0]
    first = shards[0]
    assert (first["node"], first["epoch"], first["topic_partition"]) == ("one", 4, 0)
    assert first["fired_through"] == format_instant(NOW - 9)
    assert (first["broken"], first["stopped"], first["controls_behind"]) == ([], False, False)
    assert cluster.http.get("/api/v1/shards", params={"node": "two"}).json()["items"] == []
    cluster.bus.is_down = True
    assert cluster.http.get("/api/v1/shards/1").json()["requests_behind"] is None


def test_given_a_broker_that_does_not_say_where_a_topic_ends_then_what_is_behind_is_unknown(
    cluster: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not 0, which says that all is read."""
    ends = cluster.bus.end_offsets

    async def not_of_requests(topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        return Unavailable("no leader") if topic.endswith(".requests") else await ends(topic)

    monkeypatch.setattr(cluster.bus, "end_offsets", not_of_requests)
    shard = cluster.http.get("/api/v1/shards/1").json()
    assert (shard["requests_behind"], shard["events_behind"]) == (None, 101)


def test_given_a_shard_that_stands_still_then_it_shows_what_this_process_and_living_nodes_see(cluster: Process) -> None:
    put_card(cluster, TWO, "two", findings=(f"3/messages_late/{NOW - 40_000}", "4/of_a_newer_version/1"))
    shards = cluster.http.get("/api/v1/shards").json()["items"]
    assert [[each["promise"] for each in shard["broken"]] for shard in shards[3:5]] == [["messages_late"], []]
    cluster.clock.now += LATE_MS
    put_card(cluster, TWO, "two", seen=NOW - 1, findings=(f"3/messages_late/{NOW}",))
    shards = cluster.http.get("/api/v1/shards").json()["items"]
    assert [each["promise"] for each in shards[3]["broken"]] == ["owner_silent"], "a silent node's word is old"


def test_given_a_shard_then_what_lies_in_it_is_counted(cluster: Process) -> None:
    for key in (
        keys.message_timer(2, NOW - 5, "m2", "v"),
        keys.message_timer(2, NOW - 20, "m0", "v"),
        keys.message_timer(2, NOW + 60_000, "m3", "v"),
        keys.timer(2, NOW - 1, "S", "flights/land"),
        keys.job(2, "0002-a"),
        keys.job(2, "0002-b"),
        keys.run(2, "0002-c"),
    ):
        put_item(cluster, key)
    for limit in (
        OwnLimit(namespace="flights", name="land", holders=("0002-c",)),
        OwnLimit(namespace="flights", name="idle"),
    ):
        cluster.store.write([Put(limit.key(2), to_item(limit, limit.key(2)))])
    shard = cluster.http.get("/api/v1/shards/2").json()
    counts = {name: shard[name] for name in ("backlog", "fires_due", "jobs", "runs", "inbox", "held")}
    assert counts == {"backlog": 1, "fires_due": 1, "jobs": 2, "runs": 1, "inbox": 0, "held": 0}
    assert shard["limits"] == [{"schedule": "flights/land", "in_use": 1}]
    assert shard["limits_left_out"] == 0
    assert cluster.http.get(f"/api/v1/shards/{SHARDS}").status_code == 404


def test_given_more_limits_in_use_than_are_asked_for_then_the_answer_says_how_many_are_left_out(
    cluster: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list was cut at 100, and at a page of the store, and nothing said so."""
    for number in range(5):
        limit = OwnLimit(namespace="flights", name=f"land-{number}", holders=("0002-c",))
        cluster.store.write([Put(limit.key(2), to_item(limit, limit.key(2)))])
    query = cluster.store.query
    monkeypatch.setattr(cluster.store, "query", lambda wanted: query(replace(wanted, limit=2)))
    shard = cluster.http.get("/api/v1/shards/2", params={"page_size": 3}).json()
    assert [each["schedule"] for each in shard["limits"]] == ["flights/land-0", "flights/land-1", "flights/land-2"]
    assert shard["limits_left_out"] == 2


def test_given_a_stop_then_it_is_the_request_on_the_whole_system(cluster: Process) -> None:
    assert cluster.http.post("/api/v1/firing/stop", json={"reason": "a drill"}).status_code == 200
    assert cluster.http.post("/api/v1/firing/start").status_code == 200
    sent = [json.loads(order.value) for order in cluster.bus.produced]
    assert [(each["type"], each["scope"]) for each in sent] == [
        ("control.suspend", "system"),
        ("control.resume", "system"),
    ]
    assert sent[0]["reason"] == "a drill"


def test_given_a_stopped_system_then_its_shards_say_so(cluster: Process) -> None:
    stopped = ScopeSuspensions(version=1, scopes=(Scope(namespace=None, position="p", spans=((1, None),)),))
    cluster.store.write([Put(keys.SUSPENSIONS_KEY, to_item(StoredSuspensions.of(stopped), keys.SUSPENSIONS_KEY))])
    shard = cluster.http.get("/api/v1/shards/0").json()
    assert (shard["stopped"], shard["controls_behind"]) == (True, True)
