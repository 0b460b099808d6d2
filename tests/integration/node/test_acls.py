"""A broker that allows nothing without an ACL: what `docs/security.md` lists is enough, and what is missing is named."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them without saying so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.integration.node.conftest import answers
from tests.support.servers.secured_kafka import MECHANISM, PASSWORD, SecuredKafka, secured_kafka
from tests.support.servers.servers import KafkaForTests
from tidegate_bricks.free_ports import free_port
from tidegate_cli.dev.open_programs import end_programs, open_programs
from tidegate_node.bootstrap import initialise

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
ROW = re.compile(r"^\| `(init|node|api)` \| (topic|group) \| `tidegate([^`]*)` \| ([A-Za-z, ]+) \|", re.MULTILINE)
PROCESSES = ("init", "node", "api")
ANSWER_S = 20.0


@dataclass(frozen=True, slots=True)
class Allowed:
    """A row of the page, for an operation.

    Attributes:
        rest: Of the name, behind the prefix or the group; `*` at its end: whatever follows.
    """

    process: str
    resource: str
    rest: str
    operation: str

    def binding(self, name: str) -> AclBinding:
        """Args: name: Stands for `tidegate`: the test's own prefix, or group."""
        full = name + self.rest
        pattern = ResourcePatternType.PREFIXED if full.endswith("*") else ResourcePatternType.LITERAL
        return AclBinding(
            ResourceType[self.resource.upper()],
            full.removesuffix("*"),
            pattern,
            f"User:{self.process}",
            "*",
            AclOperation[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.operation).upper()],
            AclPermissionType.ALLOW,
        )


PUBLISHED = [
    Allowed(process, resource, rest, operation)
    for process, resource, rest, operations in ROW.findall(PAGE.read_text(encoding="utf-8"))
    for operation in operations.split(", ")
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("certificates"), PROCESSES, authorizing=True) as running:
        yield running


@pytest.fixture(scope="module")
def kafka(broker: SecuredKafka) -> KafkaForTests:
    """The open way in, by which a test itself may do anything."""
    return KafkaForTests(broker.open)


@pytest.fixture
def secured(new_cluster: Cluster, broker: SecuredKafka) -> Iterator[Cluster]:
    """A cluster whose processes log in each under its own name, and may do nothing yet."""
    del new_cluster.environment["TIDEGATE_KAFKA__ALLOW_PLAINTEXT"]
    login = {
        "BOOTSTRAP_SERVERS": broker.scram,
        "SECURITY_PROTOCOL": "SASL_SSL",
        "SASL_MECHANISM": MECHANISM,
        "SASL_PASSWORD": PASSWORD,
        "SSL_CA_LOCATION": str(broker.authority),
        "ANSWER_MS_MAX": "5000",
    }
    new_cluster.environment |= {f"TIDEGATE_KAFKA__{name}": value for name, value in login.items()}
    yield new_cluster
    # Started while the API went: they would ask its gate for ten minutes.
    end_programs(open_programs(Path(new_cluster.settings.data_dir) / "runs"))


def allow(broker: SecuredKafka, cluster: Cluster, rows: Sequence[Allowed]) -> None:
    kafka = cluster.settings.kafka
    names = {"topic": kafka.topic_prefix, "group": kafka.group}
    admin = AdminClient({"bootstrap.servers": broker.open})
    bindings = [row.binding(names[row.resource]) for row in rows]
    for answer in admin.create_acls(bindings).values():
        answer.result(ANSWER_S)
    # What the controller has taken is in force a moment later, once it is told of.
    # The client takes None for "any", and its types say otherwise.
    anything = AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]
        ResourcePatternType.ANY,
        None,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    cluster.until(lambda: set(bindings) <= set(admin.describe_acls(anything).result(ANSWER_S)), "the ACLs are known")


def as_user(process: str) -> dict[str, str]:
    return {"TIDEGATE_KAFKA__SASL_USERNAME": process}


def tidegate(cluster: Cluster, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidegate_cli.main", *arguments]
    # The machine may be busy: these commands ask once.
    environment = {**os.environ, **cluster.environment, "TIDEGATE_KAFKA__ANSWER_MS_MAX": "30000", **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@contextmanager
def api(cluster: Cluster, log: Path, **variables: str) -> Iterator[None]:
    command = [sys.executable, "-m", "tidegate_cli.main", "api"]
    with log.open("wb") as out:
        environment = {**os.environ, **cluster.environment, **variables}
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(120) == 0


def without(*left_out: tuple[str, str, str]) -> list[Allowed]:
    """The page's rows but for these: process, what of the name follows, operation."""
    kept = [row for row in PUBLISHED if (row.process, row.rest, row.operation) not in left_out]
    assert len(kept) == len(PUBLISHED) - len(left_out)
    return kept


def test_given_just_what_the_page_lists_then_init_node_and_api_work(
    secured: Cluster, broker: SecuredKafka, tmp_path: Path
) -> None:
    allow(broker, secured, PUBLISHED)
    made = tidegate(secured, "init", TIDEGATE_SHARDS=str(secured.shards), **as_user("init"))
    assert made.returncode == 0, made.stderr
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    node = secured.start_node(TIDEGATE_GATE__URL=url, **as_user("node"))
    node.until_serving(secured.shards)
    program = secured.program("import tidegate_spark\ntidegate_spark.report_partition('landed', 'a')\n")
    schedules = [
        {"name": "often", "trigger": {"type": "every", "period": "2s"}},
        {"name": "heard", "trigger": {"type": "data_partitions", "dataset": "landed", "count": 1}},
    ]
    target = {"type": "program", "program": {"type": "python", "file": str(program)}}
    file, log = tmp_path / "s.json", tmp_path / "api.log"
    client = {"TIDEGATE_API_URL": url, "TIDEGATE_STATE_DIR": str(tmp_path / "state")}
    secured.send("requests", b"no request")
    with api(secured, log, TIDEGATE_API__PORT=str(port), **as_user("api")):
        secured.until(lambda: answers(url), "the API answers")
        for schedule in schedules:
            file.write_text(json.dumps({"kind": "schedule", "namespace": "tests", "target": target, **schedule}))
            applied = tidegate(secured, "schedule", "apply", "-f", str(file), **client)
            assert applied.returncode == 0, applied.stderr + log.read_text()
        secured.until(
            lambda: {run["schedule"] for run in secured.runs("succeeded")} >= {"often", "heard"},
            "both ran",
            detail=log.read_text,
        )
    secured.until(lambda: secured.records("requests.dlq"), "the dead letter")
    assert "AUTHORIZATION" not in (node.log.read_text() + log.read_text()).upper()
    assert node.end(signal.SIGTERM) == 0


def test_given_an_init_that_may_not_create_then_it_ends_and_says_so(secured: Cluster, broker: SecuredKafka) -> None:
    allow(broker, secured, without(("init", ".*", "Create")))
    made = tidegate(secured, "init", TIDEGATE_SHARDS=str(secured.shards), **as_user("init"))
    assert made.returncode == 75
    assert "Create of " in made.stderr, made.stderr
    assert "docs/security.md" in made.stderr


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        pytest.param(("node", ".*", "DescribeConfigs"), "DescribeConfigs of ", id="may not look at topics"),
        pytest.param(("node", "*", "Read"), "GROUP_AUTHORIZATION_FAILED", id="may not join the group"),
        pytest.param(("node", ".requests", "Read"), "TOPIC_AUTHORIZATION_FAILED", id="may not read requests"),
        pytest.param(("node", ".receipts", "Write"), "TOPIC_AUTHORIZATION_FAILED", id="may not write receipts"),
    ],
)
def test_given_a_right_that_is_missing_then_the_nodes_log_names_it(
    secured: Cluster, broker: SecuredKafka, left_out: tuple[str, str, str], says: str
) -> None:
    allow(broker, secured, without(left_out))
    assert initialise(secured.settings) == []  # By the open way in: the tests above do it by the rights of `init`.
    node = secured.start_node(**as_user("node"))
    secured.send("requests", {"id": "d", "type": "schedule.delete", "namespace": "tests", "name": "nothing"})
    secured.until(lambda: says in node.log.read_text(), "the log names it", detail=node.log.read_text)
    node.process.kill()
