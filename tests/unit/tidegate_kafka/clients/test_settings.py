"""Settings fit together, and what they make of the clients keeps the invariants."""

from __future__ import annotations

import re

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from pydantic import ValidationError

from tidegate_core.messages.wire.message_record import WIRE_PATIENCE_MS
from tidegate_kafka.clients.client_config import membership_config, producer_config, reader_config
from tidegate_kafka.clients.settings import ALIASES, OURS, KafkaSettings


def test_given_defaults_then_every_field_has_its_reason() -> None:
    settings = KafkaSettings(allow_plaintext=True)
    assert settings.topic("requests.dlq") == "tidegate.requests.dlq"
    assert (settings.half_session_ms, settings.probe_every_ms) == (3_000, 1_000)
    assert [name for name, field in KafkaSettings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"heartbeat_ms": 2_500}, "third", id="heartbeat"),
        pytest.param(
            {"poll_gap_ms_max": 11_999}, "must be at least 12000 ms: one and a half times session_ms", id="poll gap"
        ),
        pytest.param({"drain_ms_max": 3_000}, "membership lease", id="drain"),
        pytest.param({"extra": {"auto.offset.reset": "earliest"}}, "guarantee", id="one of ours"),
        pytest.param({"topic_prefix": "a_b"}, "pattern", id="prefix"),
        pytest.param({"bootstrap": "x"}, "Extra inputs", id="unknown"),
    ],
)
def test_given_settings_that_do_not_fit_then_they_are_refused_with_the_reason(
    changes: dict[str, object], reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        KafkaSettings.model_validate({"allow_plaintext": True} | changes)


def test_given_consumers_then_positions_are_never_theirs() -> None:
    settings = KafkaSettings(allow_plaintext=True, extra={"client.rack": "a"})
    for config in (membership_config(settings), reader_config(settings)):
        assert config["auto.offset.reset"] == "error"
        assert config["enable.auto.commit"] is False
        assert config["enable.auto.offset.store"] is False
        assert config["isolation.level"] == "read_committed"
        assert config["client.rack"] == "a"
        assert "group.instance.id" not in config


@pytest.mark.parametrize(("session_ms", "life_ms"), [(4_000, 2_000), (6_000, 2_500), (60_000, 2_500)])
def test_given_producers_then_a_guarded_record_lives_shorter_than_the_core_waits_for_it_and_than_half_a_session(
    session_ms: int, life_ms: int
) -> None:
    settings = KafkaSettings(allow_plaintext=True, session_ms=session_ms, poll_gap_ms_max=120_000, drain_ms_max=1_000)
    assert producer_config(settings, guarded=True)["message.timeout.ms"] == life_ms < WIRE_PATIENCE_MS
    assert producer_config(settings, guarded=False)["message.timeout.ms"] == settings.delivery_ms_max
    for guarded in (True, False):
        config = producer_config(settings, guarded=guarded)
        assert (config["acks"], config["enable.idempotence"]) == ("all", True)


def test_given_kip_848_then_the_brokers_settings_are_left_out() -> None:
    config = membership_config(KafkaSettings(allow_plaintext=True, group_protocol="consumer"))
    assert not {"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"} & config.keys()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_given_every_config_then_the_client_accepts_it(protocol: str) -> None:
    settings = KafkaSettings.model_validate(
        {"allow_plaintext": True, "group_protocol": protocol, "bootstrap_servers": "127.0.0.1:1"}
    )
    for config in (membership_config(settings), reader_config(settings)):
        consumer = Consumer({**config, "log_level": 0})
        assert consumer.assignment() == []
        consumer.close()
        with pytest.raises(KafkaException, match="No such configuration property"):
            Consumer({**config, "tidegate.unknown": "refused, so that the acceptance above says something"})
    for guarded in (True, False):
        config = producer_config(settings, guarded=guarded)
        Producer({**config, "log_level": 0})
        with pytest.raises(KafkaException, match="No such configuration property"):
            Producer({**config, "tidegate.unknown": "refused as well"})


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_given_another_name_of_what_we_set_then_extra_may_not_use_it(name: str) -> None:
    with pytest.raises(ValidationError, match=f"{re.escape(name)}: tidegate sets it"):
        KafkaSettings(allow_plaintext=True, extra={name: "1"})


def test_given_what_we_set_then_extra_may_not_override_it() -> None:
    settings = KafkaSettings(allow_plaintext=True)
    config = membership_config(settings) | producer_config(settings, guarded=True)
    assert OURS - config.keys() == {"group.instance.id"}
