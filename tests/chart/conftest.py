"""Renders the chart with a real Helm: the one on the path, or the one that `deploy/require-helm` has built."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate_bricks.jar_cache import cache_root

Resources = list[dict[str, Any]]
Render = Callable[[dict[str, Any]], Resources]
HELM_TIMEOUT_S = 150
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def helm() -> Callable[..., subprocess.CompletedProcess[str]]:
    built = cache_root() / f"helm-{_version_to_build()}" / "helm"
    path = shutil.which("helm") or (str(built) if built.exists() else None)
    if path is None:
        missing = "no Helm is on the path, and deploy/require-helm has built none: the chart is checked as text only"
        # A build machine that skipped these tests would let a broken chart pass.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [path, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HELM_TIMEOUT_S)

    return run


def _version_to_build() -> str:
    script = (ROOT / "deploy" / "require-helm").read_text()
    found = re.search(r'^readonly VERSION="(.+)"$', script, re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture
def render(helm: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> Render:
    """Renders the chart as release `tide` in namespace `flow` with the given values over the defaults."""

    def rendered(values: dict[str, Any]) -> Resources:
        (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
        chart = str(ROOT / "helm" / "tidegate")
        done = helm("template", "tide", chart, "--namespace", "flow", "--values", str(tmp_path / "values.yaml"))
        assert done.returncode == 0, done.stderr
        return [resource for resource in yaml.safe_load_all(done.stdout) if resource]

    return rendered
