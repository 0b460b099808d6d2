"""Clusters for these tests: one for each file, a guest on shared servers unless the file says otherwise; their logs beside a failure."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.support.cluster.cluster import Cluster
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.machine_stalls import Standstills
from tests.support.cluster.user_client import Client
from tests.support.servers.cluster_servers import ClusterServers, as_guest
from tests.support.servers.servers import DynamoDbForTests, KafkaForTests

FIXTURE = "cluster"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that a file's cluster, its programs and its client write."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def nodes() -> int:
    """How many nodes a file's cluster has; a file may say otherwise."""
    return 2


@pytest.fixture(scope="module")
def servers(kafka: KafkaForTests, dynamodb: DynamoDbForTests) -> ClusterServers | None:
    """Shared ones; None in a file whose cluster has servers of its own."""
    return as_guest(kafka, dynamodb)


@pytest.fixture(scope="module")
def cluster(folder: Path, nodes: int, servers: ClusterServers | None) -> Iterator[Cluster]:
    with Cluster(folder, nodes, servers) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: Cluster, folder: Path) -> Iterator[Client]:
    with Client(cluster.bootstrap_servers, folder / "acknowledged.jsonl", cluster.servers.prefix) as client:
        yield client


@pytest.fixture
def evidence(folder: Path, request: pytest.FixtureRequest) -> Evidence:
    return Evidence(folder / f"evidence-{request.node.name}")


@pytest.fixture
def standstills() -> Iterator[Standstills]:
    """Those of the machine while the test runs."""
    with Standstills() as standstills:
        yield standstills


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Puts the end of each process's log below a failure, and says where the rest lies."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get(FIXTURE)
    if report.failed and isinstance(cluster, Cluster):
        report.sections.append(("cluster", f"everything that was written lies in {cluster.folder}"))
        report.sections.extend((f"log of {name}", text) for name, text in cluster.logs().items())
    return report
