"""The plan of topics and what counts as a difference."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Uuid

from tidegate_kafka.admin.topic_metadata import hex_id
from tidegate_kafka.admin.topic_provisioning import Difference, TopicPlan, _Heard, differences, in_sync, plan
from tidegate_kafka.clients.settings import KafkaSettings

MIB = 1024 * 1024


def test_given_defaults_then_the_plan_is_the_documented_one() -> None:
    topics = {topic.name: topic for topic in plan(KafkaSettings(allow_plaintext=True))}
    assert set(topics) == {
        f"tidegate.{name}"
        for name in ("requests", "events", "receipts", "runs", "pokes", "requests.dlq", "events.dlq", "runs.dlq")
    }
    assert {topic.topic_partitions for topic in topics.values()} == {8}
    assert {topic.config["message.timestamp.type"] for topic in topics.values()} == {"LogAppendTime"}
    assert {topic.config["retention.ms"] for topic in topics.values()} == {"604800000"}
    sizes = {name: topic.config.get("max.message.bytes") for name, topic in topics.items()}
    assert sizes["tidegate.requests"] == sizes["tidegate.events"] == str(4 * MIB)
    assert sizes["tidegate.requests.dlq"] == sizes["tidegate.events.dlq"] == str(5 * MIB)
    assert sizes["tidegate.runs"] is None


@pytest.mark.parametrize(
    ("found", "what", "unsafe"),
    [
        pytest.param({}, None, False, id="as planned"),
        pytest.param({"retention.ms": "9999999999"}, None, False, id="kept longer"),
        pytest.param({"retention.ms": "-1"}, None, False, id="kept for ever"),
        pytest.param({"max.message.bytes": "8388608"}, None, False, id="takes larger records"),
        pytest.param({"segment.bytes": "1"}, None, False, id="not our affair"),
        pytest.param({"retention.ms": "1000"}, "retention.ms", False, id="kept too short"),
        pytest.param({"max.message.bytes": "1000"}, "max.message.bytes", False, id="takes too small records"),
        pytest.param({"cleanup.policy": "compact"}, "cleanup.policy", False, id="compacted"),
        pytest.param({"message.timestamp.type": "CreateTime"}, "message.timestamp.type", True, id="clients' clocks"),
    ],
)
def test_given_config_of_a_topic_then_its_differences_are(
    found: dict[str, str], what: str | None, unsafe: bool
) -> None:
    wanted = plan(KafkaSettings(allow_plaintext=True))[0]
    differing = differences(wanted, [1] * 8, dict(wanted.config) | found)
    assert [(each.what, each.unsafe) for each in differing] == ([(what, unsafe)] if what is not None else [])


@pytest.mark.parametrize(
    ("replicas", "in_sync", "said"),
    [
        pytest.param(3, "1", ["topic t: min.insync.replicas is 1, wanted 2"], id="the leader's word alone"),
        pytest.param(3, "2", [], id="one may be missing"),
        pytest.param(5, "3", [], id="more than wanted"),
        pytest.param(2, "1", [], id="with two, both would have to be there"),
        pytest.param(1, "1", [], id="a broker of one's own"),
    ],
)
def test_given_replicas_of_a_topic_that_exists_then_two_are_to_acknowledge_where_there_are_three(
    replicas: int, in_sync: str, said: list[str]
) -> None:
    differing = differences(TopicPlan("t", 2, -1, {}), [replicas] * 2, {"min.insync.replicas": in_sync})

    assert [str(each) for each in differing] == said
    assert not any(each.unsafe for each in differing)


@pytest.mark.parametrize(("factor", "config"), [(-1, {}), (1, {}), (2, {}), (3, {"min.insync.replicas": "2"})])
def test_given_replication_factor_then_a_topic_that_is_made_with_it_gets(factor: int, config: dict[str, str]) -> None:
    assert in_sync(factor) == config


def test_given_other_count_of_topic_partitions_then_it_says_both() -> None:
    wanted = TopicPlan("t", 8, -1, {})
    (found,) = differences(wanted, [1] * 4, {})
    assert found == Difference("t", "topic partitions", "8", "4")
    assert str(found) == "topic t: topic partitions is 4, wanted 8"


def test_given_topic_id_then_its_hex_has_32_digits_and_no_separator() -> None:
    assert hex_id(Uuid(1, 2)) == "00000000000000010000000000000002"
    assert hex_id(Uuid(-1, -2)) == "fffffffffffffffffffffffffffffffe"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        pytest.param(
            "127.0.0.1:9092: Disconnected: SSL connection closed by peer (after 0ms in state SSL_HANDSHAKE)",
            "127.0.0.1:9092: Disconnected: SSL connection closed by peer (after 0ms in state SSL_HANDSHAKE): "
            "connecting to a PLAINTEXT broker listener?",
            id="the client did not guess",
        ),
        pytest.param(
            "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener? (after 4ms in state "
            "SSL_HANDSHAKE)",
            "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener? (after 4ms in state "
            "SSL_HANDSHAKE)",
            id="it did",
        ),
        pytest.param(
            "SSL handshake failed: certificate verify failed (after 4ms in state SSL_HANDSHAKE)",
            "SSL handshake failed: certificate verify failed (after 4ms in state SSL_HANDSHAKE)",
            id="another cause",
        ),
    ],
)
def test_given_broker_that_hangs_up_in_the_handshake_then_the_likely_cause_is_named(said: str, shown: str) -> None:
    heard = _Heard()

    heard(KafkaError(KafkaError._SSL, said))

    assert heard.last == shown
