"""Renders the chart with a real Helm where there is one."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Resources = list[dict[str, Any]]
Render = Callable[[dict[str, Any]], Resources]
HELM_TIMEOUT_S = 150


@pytest.fixture(scope="session")
def helm() -> Callable[..., subprocess.CompletedProcess[str]]:
    path = shutil.which("helm")
    if path is None:
        pytest.skip("helm is not on the path: the chart is checked as text only")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [path, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HELM_TIMEOUT_S)

    return run


@pytest.fixture
def render(helm: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> Render:
    """Renders the chart as release `tide` in namespace `flow` with the given values over the defaults."""

    def rendered(values: dict[str, Any]) -> Resources:
        (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
        chart = str(Path(__file__).parents[2] / "helm" / "tidegate")
        done = helm("template", "tide", chart, "--namespace", "flow", "--values", str(tmp_path / "values.yaml"))
        assert done.returncode == 0, done.stderr
        return [resource for resource in yaml.safe_load_all(done.stdout) if resource]

    return rendered
