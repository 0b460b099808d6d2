"""A producer hangs in a transaction, on a real broker: stops sent by the command line work, and what blocks the rest is named."""

from __future__ import annotations

import contextlib
import json
import re
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from tests.integration.api.conftest import PATIENCE_S, until
from tests.support.machine_speed import slowness
from tidegate_client import AnswerPending, Client

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.api.conftest import Stack

STOP_S_MAX = 10.0
"""From the command to its answer; times how slow the machine is."""
SLEEPER = "import time, tidegate_spark\ntime.sleep(600)\n"
READ = ("requests", "events", "receipts")

MAPPING = {"event": {"dataset": {"header": "dataset"}, "partition": {"header": "day"}}}


def schedule(name: str, file: Path) -> dict[str, Any]:
    return {
        "kind": "schedule",
        "namespace": "flights",
        "name": name,
        "target": {"type": "program", "program": {"type": "python", "file": str(file)}},
        "trigger": {"type": "every", "period": "30d"},
    }


@contextlib.contextmanager
def hanging(stack: Stack, *topics: str) -> Iterator[None]:
    """Sends one record to each topic partition of these, in a transaction that stays open within the context.

    All tests share one broker: a test that failed would leave its transaction open there for 15 minutes.
    """
    servers: dict[str, str | int | float | bool] = {"bootstrap.servers": stack.kafka.bootstrap_servers}
    known = AdminClient(servers).list_topics(timeout=PATIENCE_S).topics
    producer = Producer({**servers, "transactional.id": uuid.uuid4().hex, "transaction.timeout.ms": 900_000})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    try:
        for topic in topics:
            for number in known[topic].partitions:
                producer.produce(topic, b"{}", partition=number)
        assert producer.flush(PATIENCE_S) == 0
        yield
    finally:
        producer.abort_transaction(PATIENCE_S)


def stopped(stack: Stack, *command: str) -> dict[str, Any]:
    """Gives a stop and returns its receipt; it has to come in time."""
    began = time.monotonic()
    done = stack.command(*command, "-o", "json")
    took = time.monotonic() - began
    assert done.returncode == 0, done.stdout + done.stderr
    assert took <= STOP_S_MAX * slowness(), f"{command}: {took:.1f} s"
    receipt: dict[str, Any] = json.loads(done.stdout)
    return receipt


def answer_at(client: Client, location: str) -> str | None:
    try:
        return client.receipt(location).status
    except AnswerPending:
        return None


def health_of(stack: Stack, node: subprocess.Popen[bytes]) -> str:
    (port,) = re.findall(r'"port": (\d+), "event": "health_listening"', stack.log_of(node))
    return f"http://127.0.0.1:{port}"


def names(url: str, line: str) -> bool:
    return line in page(url)


def page(url: str) -> str:
    return httpx2.get(url, timeout=20, trust_env=False).text


def test_given_a_producer_that_hangs_in_a_transaction_then_stops_work_and_the_cause_is_named(
    stack: Stack, client: Client, node: subprocess.Popen[bytes]
) -> None:
    """All of them waited for up to 15 minutes, `/readyz` said ok, and readings were restarted in vain."""
    file = stack.folder / "sleeper.py"
    file.write_text(SLEEPER)
    for name in ("nightly", "sleeper"):
        assert client.apply_schedule(schedule(name, file)).status == "accepted"
    run = client.trigger_schedule("flights", "sleeper").id
    assert run is not None
    until(lambda: client.run(run).state == "running", "the program runs")

    with hanging(stack, *(f"{stack.prefix}.{name}" for name in READ)):
        # Behind the transaction; it is answered when the transaction is over.
        with pytest.raises(AnswerPending) as pending:
            client.apply_schedule(schedule("later", file), request_id="later")
        assert stopped(stack, "schedule", "suspend", "flights/nightly")["status"] == "accepted"
        assert client.schedule("flights", "nightly").status == "suspended"
        assert stopped(stack, "run", "cancel", run)["status"] in ("accepted", "cancelling", "cancelled")
        until(lambda: client.run(run).state in ("killed", "cancelled"), "the program is gone")
        assert stopped(stack, "node", "stop-firing")["status"] == "accepted"
        assert stopped(stack, "node", "start-firing")["status"] == "accepted"

        health = health_of(stack, node)
        readyz, metrics = f"{health}/readyz", f"{health}/metrics"
        for topic in ("requests", "events"):
            named = f"topic {stack.prefix}.{topic}, topic partition 0: a transaction is open since "
            until(partial(names, readyz, named), f"the node names {topic}")
            # A round asks for few append times, so the others may be reported one round later.
            gauge = f'tidegate_open_transactions{{topic="{stack.prefix}.{topic}"}} 8.0'
            until(partial(names, metrics, gauge), f"the node counts {topic}")
        until(
            lambda: f"topic {stack.prefix}.receipts, topic partition" in page(f"{stack.url}/readyz"), "the API names it"
        )
        assert httpx2.get(f"{health}/rolloutz", timeout=20, trust_env=False).status_code == 200
        said = stack.log_of(node)
        command = f"abort --topic {stack.prefix}.requests --partition 0 --start-offset "
        assert "transaction_open" in said
        assert command in said

    assert until(lambda: answer_at(client, pending.value.location), "what stood behind it is answered") == "accepted"
    until(lambda: "a transaction is open" not in page(readyz), "it is over")
    assert client.schedule("flights", "nightly").status == "suspended"
    said = stack.log_of(node)
    assert "transaction_over" in said


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_given_it_hangs_for_longer_than_the_watchdogs_wait_then_none_acts_and_a_source_is_named_as_well(
    stack: Stack, client: Client, node: subprocess.Popen[bytes]
) -> None:
    topic = f"orders-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": stack.kafka.bootstrap_servers})
    admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])[topic].result(PATIENCE_S)
    spec = {"kind": "source", "namespace": "shop", "name": "orders", "topic": topic, **MAPPING}
    assert client.apply_source(spec).status == "accepted"
    health = health_of(stack, node)
    metrics = f"{health}/metrics"
    with hanging(stack, topic, f"{stack.prefix}.requests", f"{stack.prefix}.events"):
        # After 60 s, in which a reading that stood was restarted.
        until(
            lambda: f'tidegate_open_transactions{{topic="{topic}"}} 2.0' in page(metrics), "the source's topic is named"
        )
        verdict = json.loads(page(f"{health}/readyz"))
        assert len(verdict["waits_for_transactions"]) == 2
        assert f"topic {topic}, topic partition 0: a transaction is open since " in verdict["waits_for_transactions"][0]
        assert topic not in "".join(verdict["reasons"]), "its producer may be at its normal work"
        said = stack.log_of(node)
        for vain in ("promise_broken", "kafka_client_renewed", "kafka_reading_restarted", "revoked"):
            assert vain not in said
    until(lambda: f'tidegate_open_transactions{{topic="{topic}"}} 0.0' in page(metrics), "it is over")
