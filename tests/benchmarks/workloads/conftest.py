"""One small stack for all smokes: each worker that gets this folder has its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.benchmarks.rig.cluster import BenchCluster, Stack

SHARDS = 32


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(BenchCluster(tmp_path_factory.mktemp("bench"), SHARDS, quick=True)) as running:
        yield running
