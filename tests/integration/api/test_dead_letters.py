"""A record that nobody can read, from the topic to the dead letters and back, through the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from tests.integration.api.conftest import PATIENCE_S, until

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stack
    from tidegate_client import Client


def test_given_a_record_that_nobody_can_read_then_its_letter_is_replayed_once(stack: Stack, client: Client) -> None:
    stack.start_node()
    producer = Producer({"bootstrap.servers": stack.kafka.bootstrap_servers})
    producer.produce(f"{stack.prefix}.requests", b"\xff\x00{", key=b"k", headers=[("h", b"\x01")])
    assert producer.flush(PATIENCE_S) == 0

    def letters(*options: str) -> list[dict[str, Any]]:
        listed = stack.command("dlq", "list", "-q", "requests", "-o", "json", *options)
        assert listed.returncode == 0, listed.stderr
        found: list[dict[str, Any]] = json.loads(listed.stdout)
        return found

    (letter,) = until(letters, "the letter is listed")
    assert (letter["topic"], letter["error_class"]) == (f"{stack.prefix}.requests", "unparsable")
    shown = stack.command("dlq", "show", letter["id"])
    assert (shown.returncode, "/wB7" in shown.stdout) == (0, True), shown.stdout
    assert client.dead_letter_value(letter["id"]) == b"\xff\x00{"

    assert stack.command("dlq", "replay", letter["id"]).returncode == 0
    # It stood there and is as it was: it fails again, as a record of its own.
    (second,) = until(lambda: [each for each in letters() if each["id"] != letter["id"]], "it failed again")
    assert (second["topic_partition"], second["offset"] > letter["offset"]) == (letter["topic_partition"], True)
    headers = {each.name: each.value for each in client.dead_letter(second["id"]).headers}
    assert headers["tidegate-replay"].text == letter["id"]
    assert headers["h"].base64 == "AQ=="
    again = stack.command("dlq", "replay", letter["id"], "-o", "json")
    assert json.loads(again.stdout)[0]["status"] == "unchanged"
    assert stack.command("dlq", "drop", second["id"]).returncode == 0
    assert letters() == []
    assert {each["mark"]["state"] for each in letters("--all")} == {"replayed", "dropped"}
