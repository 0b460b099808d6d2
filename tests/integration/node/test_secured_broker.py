"""A broker with TLS and SCRAM: init, node, API and command line work through it, and whatever is wrong fails closed.

One broker for the whole file, beside the session's open one: its start is most of what these tests cost.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.node.conftest import answers
from tests.support.cluster.until import until
from tests.support.servers.secured_kafka import KEY_PASSWORD, MECHANISM, PASSWORD, USER, SecuredKafka, secured_kafka
from tests.support.servers.servers import KafkaForTests
from tidegate_bricks.free_ports import free_port
from tidegate_kafka.admin.topic_provisioning import TopicAdmin, TopicsUnavailable
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_node.bootstrap import load
from tidegate_node.commands import init_command

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster

PATIENT = {"TIDEGATE_KAFKA__ANSWER_MS_MAX": "30000"}
"""For answers that have to come; the machine may be busy."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("certificates")) as running:
        yield running


@pytest.fixture(scope="module")
def kafka(broker: SecuredKafka) -> KafkaForTests:
    """The open way into the same broker: for what a test itself produces and reads."""
    return KafkaForTests(broker.open)


def _login(broker: SecuredKafka, **changes: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.scram,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": MECHANISM,
        "sasl_username": USER,
        "sasl_password": PASSWORD,
        "ssl_ca_location": str(broker.authority),
    } | changes


def _variables(settings: Mapping[str, Any]) -> dict[str, str]:
    return {f"TIDEGATE_KAFKA__{name.upper()}": str(value) for name, value in settings.items()}


@pytest.fixture
def secured(new_cluster: Cluster, broker: SecuredKafka) -> Cluster:
    """A cluster whose processes are told the secured way alone."""
    del new_cluster.environment["TIDEGATE_KAFKA__ALLOW_PLAINTEXT"]
    new_cluster.environment |= _variables(_login(broker))
    return new_cluster


def _tidegate(cluster: Cluster, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidegate_cli.main", *arguments]
    environment = {**os.environ, **cluster.environment, **PATIENT, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@contextmanager
def _api(cluster: Cluster, log: Path, **variables: str) -> Iterator[None]:
    command = [sys.executable, "-m", "tidegate_cli.main", "api"]
    with log.open("wb") as out:
        environment = {**os.environ, **cluster.environment, **variables}
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(120) == 0


def _command_line(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text() if Path("/proc").is_dir() else ""


def test_given_tls_and_scram_then_all_processes_work_and_the_password_is_in_no_log_and_no_command_line(
    secured: Cluster, tmp_path: Path
) -> None:
    made = _tidegate(secured, "init", TIDEGATE_SHARDS=str(secured.shards))
    assert made.returncode == 0, made.stderr
    node = secured.start_node()
    node.until_serving(secured.shards)
    program = secured.program(
        "import os, tidegate_spark\ntidegate_spark.set_output('told', len(os.environ['PATH']) > 0 and "
        "any('KAFKA' in name for name in os.environ))\n"
    )
    schedule = {
        "kind": "schedule",
        "namespace": "tests",
        "name": "often",
        "target": {"type": "program", "program": {"type": "python", "file": str(program)}},
        "trigger": {"type": "every", "period": "2s"},
    }
    file, log, url = tmp_path / "often.json", tmp_path / "api.log", f"http://127.0.0.1:{(port := free_port())}"
    file.write_text(json.dumps(schedule))
    client = {"TIDEGATE_API_URL": url, "TIDEGATE_STATE_DIR": str(tmp_path / "state")}
    with _api(secured, log, TIDEGATE_API__PORT=str(port)):
        secured.until(lambda: answers(url), "the API answers")
        applied = _tidegate(secured, "schedule", "apply", "-f", str(file), **client)
        assert applied.returncode == 0, applied.stderr + log.read_text()
        (run, *_) = secured.until(lambda: secured.runs("succeeded"), "a run succeeded")
    assert run["outputs"] == {"told": False}, "a program inherits nothing of the way to Kafka"
    shown = [node.log.read_text(), log.read_text(), applied.stdout, made.stdout, _command_line(node.process.pid)]
    assert [text for text in shown if PASSWORD in text] == []
    assert node.end(signal.SIGTERM) == 0


@pytest.mark.parametrize(
    ("changes", "heard"),
    [
        pytest.param(
            {"ssl_ca_location": "stranger"}, "certificate verify failed", id="an authority that signed nothing"
        ),
        pytest.param(
            {"bootstrap_servers": "misnamed"}, "certificate verify failed", id="the certificate of another host"
        ),
        pytest.param({"sasl_password": "wrong"}, "invalid credentials", id="wrong password"),
        pytest.param(
            {"bootstrap_servers": "open"},
            "connecting to a PLAINTEXT broker listener?",
            id="a broker without encryption",
        ),
    ],
)
def test_given_a_broker_that_cannot_be_trusted_then_nothing_is_said_to_it_and_the_error_says_why(
    secured: Cluster,
    broker: SecuredKafka,
    changes: dict[str, str],
    heard: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = {name: str(getattr(broker, value, value)) for name, value in changes.items()}
    patience = {"TIDEGATE_KAFKA__ANSWER_MS_MAX": "1500"}

    def said() -> str:
        code = init_command.run(settings=load({**secured.environment, **_variables(given), **patience}))
        said = capsys.readouterr().err
        assert code == 75, said
        assert PASSWORD not in said
        return said

    # A busy broker may not even have refused it when its patience ends.
    secured.until(lambda: heard in said(), "the error says why")


def test_given_plaintext_that_nobody_allowed_then_the_node_does_not_start(
    secured: Cluster, broker: SecuredKafka
) -> None:
    ways = _variables(_login(broker))
    secured.environment = {name: text for name, text in secured.environment.items() if name not in ways}

    node = secured.start_node(**_variables({"bootstrap_servers": broker.open}))

    assert node.process.wait(120) == 78
    assert "security_protocol PLAINTEXT does not encrypt" in node.log.read_text()


def test_given_certificates_on_both_sides_then_only_who_has_one_gets_in(broker: SecuredKafka) -> None:
    bare = {"bootstrap_servers": broker.mutual, "security_protocol": "SSL", "ssl_ca_location": broker.authority}
    own = {
        "ssl_certificate_location": broker.client.certificate,
        "ssl_key_location": broker.client.key,
        "ssl_key_password": KEY_PASSWORD,
    }
    settings = {"answer_ms_max": 30_000, "topic_prefix": "mutual"}

    assert TopicAdmin(KafkaSettings.model_validate(bare | own | settings)).apply() == []

    outside = TopicAdmin(KafkaSettings.model_validate(bare | settings | {"answer_ms_max": 1_500}))

    def said() -> str:
        with pytest.raises(TopicsUnavailable) as refusal:
            outside.check()
        return str(refusal.value)

    until(lambda: re.search("bad certificate|certificate required", said()), "the broker asks for a certificate")
