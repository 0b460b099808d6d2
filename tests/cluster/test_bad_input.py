"""Bad input gets a clear answer, or is kept as a dead letter with its original bytes; what is behind it goes on."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fuzz.cluster_campaign import fuzz_cluster
from tests.fuzz.hostile_records import KINDS
from tests.support.cluster.cluster import Cluster
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.topic_reader import Arrived, read_topic
from tests.support.cluster.until import until
from tests.support.cluster.user_client import Acknowledged, Client
from tests.support.tier import at_night

NAMESPACE = "bad-input"
TOPIC_PARTITION = 3
"""Everything goes into one, so that what is behind a bad record really is behind it."""
TWO_MEGABYTES = 2 * 1024 * 1024
HOSTILE = at_night(2_400, else_=720)
"""100 at night for each topic partition of requests, events and a source's topic; `make fuzz-cluster` has as many as one likes."""
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def nodes() -> int:
    return 1


@pytest.fixture(scope="module")
def servers() -> None:
    """None: hostile records name topics as a cluster of its own has them."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What became of a bad record.

    Attributes:
        letter: Its copy on the dead-letter topic.
        receipt: Its answer, None where its id could not be read.
    """

    letter: Arrived
    receipt: Mapping[str, Any] | None

    @property
    def problems(self) -> dict[str, str]:
        """Field and problem, with the hint behind it."""
        assert self.receipt is not None
        return {error["field"]: f"{error['problem']} {error['hint']}".strip() for error in self.receipt["errors"]}


@pytest.fixture(scope="module")
def sink(cluster: Cluster) -> str:
    return cluster.make_topic("bad-input.out")


class Sender:
    """Sends a bad record and a good one behind it."""

    def __init__(self, cluster: Cluster, client: Client, sink: str) -> None:
        self._cluster = cluster
        self._client = client
        self._sink = sink

    def refused(self, value: bytes, request_id: str | None, topic: str = "requests") -> Refusal:
        """Waits for the dead letter, the receipt where there can be one, and what was sent behind the record."""
        where: list[Acknowledged] = []
        key = f"key {next(numbers)}"
        self._client.send(
            topic, value, key, [("user", b"kept")], topic_partition=TOPIC_PARTITION, on_acknowledged=where.append
        )
        self.good_one_goes_on()
        (origin,) = until(lambda: where, "the broker takes the bad record, too")
        letter = until(lambda: self._letter(topic, origin), "the dead letter")
        assert (letter.value, letter.key) == (value, key.encode())
        assert letter.headers["user"] == b"kept"
        assert letter.header("tidegate.error.topic") == origin.topic
        assert letter.header("tidegate.error.message")
        assert letter.header("tidegate.error.at")
        return Refusal(letter, None if request_id is None else self._client.receipt(request_id))

    def good_one_goes_on(self) -> None:
        """Sends a message behind it and waits until it is delivered's receipt."""
        request_id = f"good-{next(numbers)}"
        good = {
            "id": request_id,
            "type": "message.send",
            "namespace": NAMESPACE,
            "topic": self._sink,
            "after": "0s",
            "payload": {"good": True},
            "receipt": True,
        }
        self._client.send("requests", good, topic_partition=TOPIC_PARTITION)
        assert self._client.receipt(request_id)["status"] == "accepted"

    def _letter(self, topic: str, origin: Acknowledged) -> Arrived | None:
        place = (str(origin.topic_partition), str(origin.offset))
        letters = read_topic(self._cluster.bootstrap_servers, self._cluster.topic(f"{topic}.dlq"))
        found = (
            letter
            for letter in letters
            if (letter.header("tidegate.error.partition"), letter.header("tidegate.error.offset")) == place
        )
        return next(found, None)


@pytest.fixture
def sender(cluster: Cluster, client: Client, sink: str) -> Sender:
    return Sender(cluster, client, sink)


def _apply(request_id: str, name: str, evidence: Evidence, **changes: Any) -> bytes:
    spec = {
        "kind": "schedule",
        "namespace": NAMESPACE,
        "name": name,
        "target": evidence.target(),
        "trigger": {"type": "every", "period": "365d"},
        **changes,
    }
    request = {"id": request_id, "type": "schedule.apply", "namespace": NAMESPACE, "name": name, "spec": spec}
    return json.dumps(request).encode()


@pytest.mark.parametrize(
    ("value", "error_class"),
    [
        pytest.param(b'{"id": "cut-off", "type": "schedule.ap', "unparsable", id="cut off"),
        pytest.param(b"\xff\xfe\x00", "unparsable", id="no text"),
        pytest.param(b"[1, 2]", "unparsable", id="no object"),
        pytest.param(b"", "unparsable", id="empty"),
    ],
)
def test_given_a_malformed_request_then_it_is_kept_with_its_bytes(
    sender: Sender, value: bytes, error_class: str
) -> None:
    refusal = sender.refused(value, None)

    assert refusal.letter.header("tidegate.error.class") == error_class


def test_given_a_malformed_event_then_it_is_kept_with_its_bytes(sender: Sender) -> None:
    refusal = sender.refused(b'{"type": "data.partition"', None, topic="events")

    assert refusal.letter.header("tidegate.error.class") == "unparsable"


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        pytest.param({"priorty": "medium"}, "priorty", "priority", id="unknown field"),
        pytest.param(
            {"trigger": {"type": "cron", "expression": "0 6 * * *", "zone": "Europe/Berlim"}},
            "trigger.zone",
            "Europe/Berlin",
            id="unknown zone",
        ),
        pytest.param(
            {"trigger": {"type": "crom", "expression": "0 6 * * *"}}, "trigger.type", "cron", id="trigger type"
        ),
        pytest.param(
            {"trigger": {"type": "cron", "expression": "0 6 30 2 *", "zone": "UTC"}},
            "trigger.expression",
            "",
            id="impossible date",
        ),
    ],
)
def test_given_a_request_that_cannot_be_then_the_receipt_names_field_problem_and_remedy(
    sender: Sender, evidence: Evidence, changes: dict[str, Any], field: str, says: str
) -> None:
    request_id = f"bad-{next(numbers)}"

    refusal = sender.refused(_apply(request_id, f"bad-{next(numbers)}", evidence, **changes), request_id)

    assert refusal.receipt is not None
    assert refusal.receipt["status"] == "rejected"
    assert list(refusal.problems) == [field]
    assert says in refusal.problems[field]
    assert refusal.letter.header("tidegate.error.class") == "invalid"


def test_given_a_record_of_two_megabytes_then_it_is_refused_and_kept_whole(sender: Sender, evidence: Evidence) -> None:
    request_id = f"large-{next(numbers)}"
    padding = {"labels": {"padding": "x" * TWO_MEGABYTES}}

    refusal = sender.refused(_apply(request_id, "large", evidence, **padding), None)

    assert refusal.letter.header("tidegate.error.class") == "too_large"
    assert len(refusal.letter.value) > TWO_MEGABYTES


def test_given_a_script_that_is_missing_then_the_receipt_says_so(sender: Sender, client: Client) -> None:
    program = {"type": "python", "file": "/nowhere/program.py"}
    spec = {
        "namespace": NAMESPACE,
        "name": "no-script",
        "target": {"type": "program", "program": program},
        "trigger": {"type": "every", "period": "365d"},
    }

    receipt = client.apply(spec)

    assert receipt["status"] == "rejected"
    (error,) = receipt["errors"]
    assert error["field"] == "target.program.file"
    assert "/nowhere/program.py" in error["problem"]
    sender.good_one_goes_on()


def test_given_a_script_that_vanished_then_its_run_fails_with_the_reason_and_the_next_goes_on(
    cluster: Cluster, client: Client, evidence: Evidence
) -> None:
    script = evidence.folder / "vanishing.py"
    script.write_text("print('never')\n", encoding="utf-8")
    program = {"type": "python", "file": str(script)}
    trigger = {"type": "every", "period": "2s"}
    spec = {"namespace": NAMESPACE, "target": {"type": "program", "program": program}, "trigger": trigger}
    assert client.apply({**spec, "name": "vanishing", "suspended": True})["status"] == "accepted"
    script.unlink()
    assert client.apply({**spec, "name": "behind", "target": evidence.target()})["status"] == "accepted"

    ran = client.request({"type": "schedule.resume", "namespace": NAMESPACE, "name": "vanishing"})

    assert ran["status"] == "accepted"
    failed = until(lambda: _failed_runs(cluster, "vanishing"), "a run fails")
    assert str(script) in failed[0]["reason"]
    assert {run["attempt"] for run in failed} == {1}
    until(lambda: evidence.of("behind"), "other schedules run")


def _failed_runs(cluster: Cluster, schedule: str) -> list[dict[str, Any]]:
    records = [record.document for record in read_topic(cluster.bootstrap_servers, cluster.topic("runs"))]
    return [record for record in records if record["schedule"] == schedule and record["state"] == "failed"]


def test_given_hostile_records_on_each_topic_partition_then_each_rejected_one_is_a_dead_letter_and_the_last_is_carried_out(
    cluster: Cluster, client: Client, evidence: Evidence
) -> None:
    found = fuzz_cluster(cluster, client, evidence, seed=77, records=HOSTILE, seconds=math.inf, say=lambda _: None)

    assert found.faults == []
    assert all(found.records[kind] == HOSTILE // len(KINDS) for kind in KINDS)
    assert HOSTILE // 2 < found.judged.letters < HOSTILE
