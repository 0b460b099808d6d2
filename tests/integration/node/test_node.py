"""What a node does on real bricks: it applies, fires, delivers, drains, and takes over from one that was killed."""

from __future__ import annotations

import json
import signal
import time
import uuid
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.node.conftest import guest_cluster
from tests.support.cluster.starved_process import Starved
from tests.support.machine_speed import slowness
from tests.support.servers.cluster_servers import as_guest
from tests.support.servers.servers import DynamoDbForTests
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.keys import MAP_KEY, topic_position
from tidegate_core.writes.fencing import whole
from tidegate_core.writes.partition_map import map_of
from tidegate_dynamo.client_factory import sdk_client
from tidegate_dynamo.settings import DynamoSettings
from tidegate_node.bootstrap import initialise
from tidegate_node.commands import init_command
from tidegate_node.startup_checks import EXIT_CONFIGURATION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.node.conftest import Cluster
    from tests.support.servers.servers import KafkaForTests
    from tidegate_bricks import DynamoDbBrick

RUNS_S = 180.0
"""Forty programs, one of each schedule at a time; the machine may be busy."""
DRAIN_S_MAX = 10.0
"""Far above the 2.5 s of a drain; a node that hangs takes longer. Times how slow the machine is."""


def _every_two_seconds(cluster: Cluster, name: str, **trigger: Any) -> dict[str, Any]:
    program = cluster.program("import tidegate_spark\ntidegate_spark.set_output('seen', 1)\n")
    return {
        "namespace": "tests",
        "name": name,
        "target": {"type": "program", "program": {"type": "python", "file": str(program), "args": ["${nominal}"]}},
        "trigger": {"type": "every", "period": "2s", **trigger},
    }


def _seldom(cluster: Cluster, name: str) -> dict[str, Any]:
    return _every_two_seconds(cluster, name) | {"trigger": {"type": "every", "period": "365d"}}


def _apply_for_all_between(cluster: Cluster, name: str, start: int, end: int) -> None:
    """Where it is applied late, what its trigger named since `start` is made up for."""
    spec = _every_two_seconds(cluster, name, start=_instant(start), end=_instant(end))
    receipt = cluster.apply({**spec, "catchup": {"on_create": "all"}})
    assert receipt["status"] == "accepted", receipt


def _instant(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000)) + f".{milliseconds % 1000:03d}Z"


def test_given_a_schedule_by_a_record_then_its_runs_succeed_on_time(serving: Cluster) -> None:
    (node,) = serving.nodes
    # It shall not fire beside the tests behind this one.
    end = time.time_ns() // 1_000_000 + 9_000

    receipt = serving.apply(_every_two_seconds(serving, "often", end=_instant(end)))

    assert receipt["status"] == "accepted", receipt
    runs = serving.until(lambda: (found := serving.runs("succeeded", "often"))[2:] and found, "three runs succeeded")
    nominals = sorted({run["nominal"] for run in runs})
    gaps = {parse_instant(later) - parse_instant(earlier) for earlier, later in pairwise(nominals)}
    assert gaps == {2_000}
    assert {json.dumps(run["outputs"]) for run in runs} == {'{"seen": 1}'}
    assert node.metric("tidegate_launches_total") >= 3
    assert node.metric("tidegate_actor_failures_total") == 0


def _message(request_id: str, at: int, sink: str) -> dict[str, Any]:
    return {
        "id": request_id,
        "type": "message.send",
        "namespace": "tests",
        "deliver_at": _instant(at),
        "topic": sink,
        "payload": {"id": request_id},
        "receipt": True,
    }


def test_given_a_message_then_it_is_delivered_at_its_time_and_never_before(serving: Cluster) -> None:
    (node,) = serving.nodes
    before = node.metric("tidegate_messages_delivered_total")
    sink = serving.make_topic("sink")
    at = time.time_ns() // 1_000_000 + 3_000
    request = {
        "id": str(uuid.uuid4()),
        "type": "message.send",
        "namespace": "tests",
        "deliver_at": _instant(at),
        "topic": sink,
        "payload": {"hello": "world"},
    }

    serving.send("requests", request)

    (sent,) = serving.until(lambda: serving.records(sink), "the message")
    assert sent.value == {"hello": "world"}
    assert parse_instant(sent.headers["tidegate-nominal"].decode()) == at
    assert sent.at >= at
    # A reader may see the record before the node has the broker's answer.
    serving.until(lambda: node.metric("tidegate_messages_delivered_total") > before, "the node counts it")
    assert node.metric("tidegate_messages_delivered_total") == before + 1


def test_given_a_node_that_begins_with_a_clock_ahead_then_it_fires_nothing_and_the_next_one_with_a_right_clock_does(
    cluster: Cluster,
) -> None:
    """It fired what was due within the hour, until its second heartbeat told it that it was wrong."""
    first = cluster.start_node()
    first.until_serving(cluster.shards)
    sink = cluster.make_topic("sink")
    for number in range(8):
        cluster.send("requests", _message(f"soon-{number}", time.time_ns() // 1_000_000 + 1_800_000, sink))
    cluster.until(lambda: len(cluster.records("receipts")) == 8, "all are accepted")
    assert first.end(signal.SIGTERM) == 0

    ahead = cluster.refused(cluster.start_node_ahead(3_600_000))
    assert ahead.ends() == 75
    (said,) = ahead.events("clock_off")
    assert 3_590_000 < said["offset_ms"] <= 3_600_000
    assert not ahead.events("assigned")
    assert cluster.records(sink) == []

    late = cluster.start_node_ahead(400)
    late.until_serving(cluster.shards)
    (agreed,) = late.events("clock_agreed")
    assert 0 <= agreed["offset_ms"] <= 400
    cluster.send("requests", _message("now", time.time_ns() // 1_000_000 + 1_000, sink))
    (sent,) = cluster.until(lambda: cluster.records(sink), "the message that is due")
    assert sent.value == {"id": "now"}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"{not json", id="malformed"),
        pytest.param(b'{"type": "schedule.unheard", "id": "q-1"}', id="unknown type"),
    ],
)
def test_given_a_record_that_cannot_be_used_then_it_is_a_dead_letter_and_the_next_one_goes_on(
    serving: Cluster, value: bytes
) -> None:
    before = len(serving.records("requests.dlq"))
    serving.send("requests", value)

    receipt = serving.apply(_seldom(serving, f"behind-{before}"))

    assert receipt["status"] == "accepted"
    (sent,) = serving.until(lambda: serving.records("requests.dlq")[before:], "the dead letter")
    assert any(name.startswith("tidegate.error.") for name in sent.headers)


def test_given_a_program_that_is_not_there_then_the_receipt_says_so(serving: Cluster) -> None:
    spec = _seldom(serving, "missing")
    spec["target"]["program"]["file"] = "/nowhere/program.py"

    receipt = serving.apply(spec)

    assert receipt["status"] == "rejected"
    assert [error["field"] for error in receipt["errors"]] == ["target.program.file"]


def test_given_sigterm_then_everything_is_drained_and_the_next_node_serves_at_once(cluster: Cluster) -> None:
    first = cluster.start_node()
    first.until_serving(cluster.shards)

    begun = time.monotonic()
    code = first.end(signal.SIGTERM)

    assert code == 0
    assert time.monotonic() - begun < DRAIN_S_MAX * slowness()
    assert len(first.events("drained")) == 4
    assert not first.events("kafka_drain_cut")
    second = cluster.start_node()
    second.until_serving(cluster.shards)


def test_given_logs_that_retention_emptied_before_any_node_came_then_reading_starts_where_they_begin(
    cluster: Cluster,
) -> None:
    for _ in range(40):
        cluster.send("requests", b"{nobody read this")
        cluster.send("events", b"{nor this")
    for topic in ("requests", "events"):
        cluster.remove_records(topic)

    node = cluster.start_node()
    node.until_serving(cluster.shards)

    assert cluster.apply(_every_two_seconds(cluster, "often"))["status"] == "accepted"
    assert cluster.records("requests.dlq") == []
    assert node.metric("tidegate_position_gone") == 0
    assert not node.events("reading_stands_still")


def test_given_retention_overtook_a_position_then_the_node_says_so_and_goes_on_once_an_operator_moved_it(
    cluster: Cluster,
) -> None:
    first = cluster.start_node()
    first.until_serving(cluster.shards)
    cluster.send("requests", b"{read", key="a")
    cluster.until(lambda: cluster.records("requests.dlq"), "it is a dead letter")
    cluster.until(lambda: sum(_positions(cluster)) == 1, "the position has moved")
    assert first.end(signal.SIGTERM) == 0
    for _ in range(3):
        cluster.send("requests", b"{not read", key="a")
    cluster.remove_records("requests")

    second = cluster.start_node()

    (told,) = cluster.until(lambda: second.events("reading_stands_still"), "the error")
    assert told["level"] == "error"
    assert (told["topic"], told["log_begin"] - told["position"]) == (cluster.settings.kafka.topic("requests"), 3)
    cluster.until(lambda: second.metric("tidegate_serving_shards") == cluster.shards, "all shards are served")
    assert second.metric("tidegate_position_gone") == 1
    status, page = second.ask("/readyz")
    assert status == 503
    assert f"topic partitions {told['topic_partition']} are stuck" in page
    assert second.end(signal.SIGTERM) == 0

    # docs/operations.md, "A position is gone", word by word.
    _move_position(cluster, str(told["item"]), seen=told["position"], begin=told["log_begin"])
    third = cluster.start_node()
    third.until_serving(cluster.shards)
    cluster.send("requests", b"{after", key="a")
    found = cluster.until(lambda: (found := cluster.records("requests.dlq"))[1:] and found, "what came after it")
    assert sorted(each.value["raw"] for each in found) == ["{after", "{read"]
    assert third.metric("tidegate_position_gone") == 0


def _positions(cluster: Cluster) -> list[int]:
    store = cluster.store()
    stored = map_of(store.get([MAP_KEY])[MAP_KEY])
    numbers = range(stored.topic_partitions)
    items = store.get([topic_position(stored.cluster_id, stored.topic_id, number) for number in numbers])
    return [whole(item, "next") for item in items.values()]


def _move_position(cluster: Cluster, item: str, *, seen: int, begin: int) -> None:
    section = cluster.settings.dynamodb
    client = sdk_client(DynamoSettings(endpoint_url=section.endpoint_url, table_prefix=section.table_prefix))
    client.update_item(
        TableName=f"{section.table_prefix}tidegate",
        Key={"pk": {"S": item}, "sk": {"S": "TP"}},
        UpdateExpression="SET #next = :begin, #page = :none",
        ConditionExpression="#next = :seen",
        ExpressionAttributeNames={"#next": "next", "#page": "page"},
        ExpressionAttributeValues={":begin": {"N": str(begin)}, ":seen": {"N": str(seen)}, ":none": {"S": "-"}},
    )


@pytest.mark.nightly  # `tests/cluster/test_kills.py` kills nodes in both tiers.
def test_given_two_nodes_when_one_is_killed_then_the_other_serves_all_and_no_instant_is_lost(cluster: Cluster) -> None:
    nodes = [cluster.start_node(), cluster.start_node()]
    cluster.until(
        lambda: all(0 < node.metric("tidegate_serving_shards") < cluster.shards for node in nodes), "both nodes serve"
    )
    start = time.time_ns() // 1_000_000 // 2_000 * 2_000 + 16_000
    end = start + 20_000
    for name in ("a", "b", "c", "d"):
        _apply_for_all_between(cluster, name, start, end)
    cluster.until(lambda: cluster.runs("succeeded"), "a first run")

    nodes[0].end(signal.SIGKILL)

    nodes[1].until_serving(cluster.shards)
    expected = {(name, at) for name in ("a", "b", "c", "d") for at in range(start, end, 2_000)}

    def open_ones() -> set[tuple[str, int]]:
        ended = {
            (run["schedule"], parse_instant(run["nominal"]))
            for state in ("succeeded", "failed", "killed", "lost")
            for run in cluster.runs(state)
        }
        assert ended <= expected
        return expected - ended

    cluster.until(lambda: not open_ones(), "every instant has a run", RUNS_S, open_ones)


def test_given_a_node_whose_machine_gives_it_no_time_then_it_hands_its_share_to_the_other_and_takes_one_again_later(
    cluster: Cluster,
) -> None:
    """DESIGN 3: it gives its partitions up when it is overloaded. Stopped most of the time it keeps its session and is late for all."""
    # A session that outlasts the stops, and a lag far above what the tests beside this one cause: others are at ease below 400 ms.
    # In more than one beat: for a few seconds the whole machine may stand still, and with it the other node.
    soon = {
        "TIDEGATE_OVERLOAD__LAG_MS": "4000",
        "TIDEGATE_OVERLOAD__AFTER_MS": "8000",
        "TIDEGATE_OVERLOAD__BACK_MS": "1000",
        "TIDEGATE_KAFKA__SESSION_MS": "30000",
        "TIDEGATE_KAFKA__POLL_GAP_MS_MAX": "60000",
    }
    starved, other = cluster.start_node(**soon), cluster.start_node(**soon)
    cluster.until(
        lambda: all(0 < node.metric("tidegate_serving_shards") < cluster.shards for node in (starved, other)), "both"
    )

    with Starved(starved.process.pid):
        cluster.until(lambda: starved.events("node_overloaded"), "it says so")
    cluster.until(lambda: other.metric("tidegate_serving_shards") == cluster.shards, "the other one serves all")
    assert not starved.events("lost")
    assert not other.events("node_overloaded")

    cluster.until(lambda: starved.events("node_at_ease"), "it is at ease")
    cluster.until(lambda: 0 < starved.metric("tidegate_serving_shards") < cluster.shards, "it serves again")
    cluster.until(lambda: starved.ask("/readyz")[0] == 200, "it is ready")


def test_given_no_map_or_no_secret_then_the_node_refuses_and_says_what_to_do(serving: Cluster) -> None:
    other = f"x{uuid.uuid4().hex[:8]}-"
    without_tables = serving.refused(serving.start_node(TIDEGATE_DYNAMODB__TABLE_PREFIX=other))
    without_secret = serving.refused(serving.start_node(TIDEGATE_GATE__SECRET_FILE="/nowhere/secret"))
    mistyped = serving.refused(serving.start_node(TIDEGATE_HELTH__PORT="1"))

    assert [node.ends() for node in (without_tables, without_secret, mistyped)] == [78] * 3
    (refusal,) = without_tables.events("node_refused")
    assert "tidegate init" in refusal["message"]
    (refusal,) = without_secret.events("node_refused")
    assert "secret_file" in refusal["message"]
    (refusal,) = mistyped.events("settings_refused")
    assert "did you mean TIDEGATE_HEALTH__PORT?" in refusal["message"]


def test_given_topics_that_a_node_of_other_tables_reads_then_init_makes_no_second_cluster_of_them(
    serving: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = serving.settings.dynamodb
    other = theirs.model_copy(update={"table_prefix": f"other-{theirs.table_prefix}"})

    assert init_command.run(settings=serving.settings.model_copy(update={"dynamodb": other})) == EXIT_CONFIGURATION

    assert "the nodes belong to another cluster" in capsys.readouterr().err
    assert init_command.run(settings=serving.settings) == 0


def test_given_bricks_that_do_not_answer_then_the_node_waits_and_then_gives_up_for_now(serving: Cluster) -> None:
    unreachable = serving.start_node(
        TIDEGATE_KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:1",
        TIDEGATE_KAFKA__ANSWER_MS_MAX="500",
        TIDEGATE_STARTUP_WAIT_S="8",  # A busy machine takes seconds for the first question alone.
    )
    node = serving.refused(unreachable)

    assert node.ends() == 75
    assert node.events("waiting_for")


@pytest.fixture
def on_pausable_store(kafka: KafkaForTests, pausable_dynamodb: DynamoDbBrick, tmp_path: Path) -> Iterator[Cluster]:
    store = DynamoDbForTests(pausable_dynamodb.endpoint, pausable_dynamodb)
    with guest_cluster(as_guest(kafka, store), tmp_path) as cluster:
        assert initialise(cluster.settings) == []
        yield cluster


@pytest.mark.nightly  # `tests/cluster/test_outages.py` takes the store away in both tiers.
def test_given_a_store_that_is_away_for_a_while_then_nothing_is_lost_or_doubled(
    on_pausable_store: Cluster, pausable_dynamodb: DynamoDbBrick
) -> None:
    cluster = on_pausable_store
    cluster.start_node().until_serving(cluster.shards)
    start = time.time_ns() // 1_000_000 // 2_000 * 2_000 + 6_000
    end = start + 16_000
    _apply_for_all_between(cluster, "a", start, end)
    cluster.until(lambda: cluster.runs("succeeded"), "a first run")

    pausable_dynamodb.pause()
    time.sleep(8)  # The outage itself; four instants are due in it.
    pausable_dynamodb.resume()

    expected = list(range(start, end, 2_000))

    def ended() -> list[int]:
        return sorted(parse_instant(run["nominal"]) for run in cluster.runs("succeeded"))

    cluster.until(lambda: len(set(ended())) == len(expected), "every instant", RUNS_S, ended)
    assert sorted(set(ended())) == expected
    programs = [each for each in (cluster.settings.data_dir / "runs").iterdir() if each.is_dir()]
    assert len(programs) == len(expected)
