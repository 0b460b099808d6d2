"""The broker's settings: loopback only, and text that Java reads back as it was meant."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_bricks.broker_config import MESSAGE_BYTES_MAX, ExtraListener, KafkaPorts, render, server_properties

PORTS = KafkaPorts(clients=21000, controller=21001)
DATA = Path("/data/kafka/log")
DEAD_LETTER_BYTES_MAX = 5 * 1024 * 1024


def read_as_java_does(text: str) -> dict[str, str]:
    """Reads the part of Java's properties format that `render` may use: no comments, no continued lines."""
    properties: dict[str, str] = {}
    for line in text.split("\n")[:-1]:
        name, _, value = line.partition("=")
        unescaped = re.sub(
            r"\\(u[0-9a-f]{4}|.)",
            lambda found: chr(int(found[1][1:], 16)) if found[1][0] == "u" else {"n": "\n"}.get(found[1], found[1]),
            value.lstrip(" \t\f"),
        )
        properties[name] = unescaped.encode("utf-16", "surrogatepass").decode("utf-16")
    return properties


@given(value=st.text())
def test_given_any_value_then_java_reads_it_back(value: str) -> None:
    text = render({"log.dirs": value})
    assert text.isascii()
    assert read_as_java_does(text) == {"log.dirs": value}


def test_given_ports_then_broker_listens_on_loopback_only() -> None:
    properties = server_properties(PORTS, DATA)
    assert properties["listeners"] == "CLIENTS://127.0.0.1:21000,CONTROLLER://127.0.0.1:21001"
    assert properties["advertised.listeners"] == "CLIENTS://127.0.0.1:21000"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:21001"


def test_given_proxy_then_its_port_is_announced_and_the_brokers_is_bound() -> None:
    properties = server_properties(PORTS, DATA, [ExtraListener("PROXY", port=21002, announced_port=21003)])
    assert "PROXY://127.0.0.1:21002" in properties["listeners"]
    assert properties["advertised.listeners"] == "CLIENTS://127.0.0.1:21000,PROXY://127.0.0.1:21003"
    assert properties["listener.security.protocol.map"] == "CLIENTS:PLAINTEXT,PROXY:PLAINTEXT,CONTROLLER:PLAINTEXT"


def test_given_extra_settings_then_they_win() -> None:
    assert server_properties(PORTS, DATA, extra={"num.io.threads": "7"})["num.io.threads"] == "7"


def test_given_defaults_then_largest_dead_letter_fits_and_topics_are_never_made_by_accident() -> None:
    properties = server_properties(PORTS, DATA)
    assert int(properties["message.max.bytes"]) == MESSAGE_BYTES_MAX > DEAD_LETTER_BYTES_MAX
    assert properties["auto.create.topics.enable"] == "false"


@pytest.mark.parametrize("setting", ["offsets.topic", "transaction.state.log", "share.coordinator.state.topic"])
def test_given_one_node_then_internal_topics_have_one_replica(setting: str) -> None:
    assert server_properties(PORTS, DATA)[f"{setting}.replication.factor"] == "1"
