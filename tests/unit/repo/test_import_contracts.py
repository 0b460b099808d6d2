"""The import contracts bite: a small tree of empty packages keeps them all, and each forbidden import breaks its own."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVICES = frozenset({"tidegate_api", "tidegate_cli", "tidegate_node"})
ADAPTERS = ("tidegate_dynamo", "tidegate_kafka", "tidegate_launchers")
LINT_TIMEOUT_S = 150


@pytest.fixture
def tree(root: Path, packages: list[Path], tmp_path: Path) -> Path:
    """Empty packages of the real names and layers under the real contracts; each service has a bootstrap that imports adapters."""
    shutil.copy(root / "pyproject.toml", tmp_path)
    for package in packages:
        folder = tmp_path / "src" / package.name
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        if package.name in ADAPTERS:
            (folder / "adapter.py").touch()
        if package.name in SERVICES:
            (folder / "bootstrap.py").write_text("".join(f"import {adapter}.adapter\n" for adapter in ADAPTERS))
    for layer in _layers(root):
        folder = tmp_path / "src" / layer
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    return tmp_path


def _layers(root: Path) -> Iterator[Path]:
    """Returns the package of each layer that a contract names."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for contract in contracts:
        for container in contract.get("containers", ()):
            for names in contract["layers"]:
                yield from (Path(*container.split("."), name.strip()) for name in names.split("|"))


def _lint(tree: Path) -> tuple[int, str]:
    # Only the copied packages may be found, not the project's own.
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "NO_COLOR": "1", "COLUMNS": "200"}
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-cache"],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LINT_TIMEOUT_S,
    )
    return done.returncode, done.stdout + done.stderr


def test_given_bootstraps_that_import_adapters_then_all_contracts_are_kept(tree: Path) -> None:
    status, printed = _lint(tree)
    assert status == 0, printed


@pytest.mark.parametrize(
    ("module", "imports", "contract"),
    [
        ("tidegate_core/rows/rules.py", "tidegate_ports", "The core imports no sibling"),
        ("tidegate_core/rows/rules.py", "boto3", "The core uses no client library"),
        ("tidegate_dynamo/jobs.py", "tidegate_kafka", "Adapters never import each other"),
        ("tidegate_kafka/reader.py", "tidegate_node", "Adapters know no service"),
        ("tidegate_api/routes.py", "tidegate_node", "Services never import each other"),
        ("tidegate_node/ingest.py", "tidegate_dynamo.adapter", "Only a bootstrap module imports adapters"),
        ("tidegate_cli/commands.py", "tests.support", "Product code imports no test code"),
        ("tidegate_core/rows/rules.py", "tidegate_core.shard", "Layers of the core"),
        ("tidegate_core/runs/rules.py", "tidegate_core.messages", "Layers of the core"),
        ("tidegate_core/anything.py", "tidegate_core.rows", "Layers of the core"),
        ("tidegate_core/language/values/rules.py", "tidegate_core.language.time", "Layers of the language"),
        ("tidegate_core/messages/wire/rules.py", "tidegate_core.messages.recurring", "Layers of messages"),
        ("tidegate_core/messages/one_shot/rules.py", "tidegate_core.messages.recurring", "Layers of messages"),
        ("tidegate_spark/wrapper.py", "tidegate_core", "The program's side imports nothing of ours"),
    ],
)
def test_given_a_forbidden_import_then_its_contract_breaks(
    tree: Path, module: str, imports: str, contract: str
) -> None:
    (tree / "src" / module).write_text(f"import {imports}\n")
    status, printed = _lint(tree)
    assert status == 1
    broken = [line for line in printed.splitlines() if " BROKEN" in line]
    assert any(line.startswith(contract) for line in broken), printed


def test_given_an_exception_that_nobody_needs_any_more_then_its_contract_says_so(tree: Path) -> None:
    for service in SERVICES:
        (tree / "src" / service / "bootstrap.py").write_text("import tidegate_dynamo.adapter\n")
    status, printed = _lint(tree)
    assert status == 1
    assert "tidegate_launchers" in printed
