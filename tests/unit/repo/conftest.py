"""The repository as data: its root, its build recipe, its source packages and the files that are committed."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

SOURCE_ROOTS = ("shared", "services")
NOT_SOURCE = frozenset({".git", ".venv", "build", "dist", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis"})


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).parents[3]


@pytest.fixture(scope="session")
def pyproject(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


@pytest.fixture(scope="session")
def packages(root: Path) -> list[Path]:
    """All top-level packages of both source roots, sorted by name."""
    found = [folder for source in SOURCE_ROOTS for folder in (root / source).iterdir() if folder.is_dir()]
    return sorted((folder for folder in found if folder.name.startswith("tidegate_")), key=lambda folder: folder.name)


@pytest.fixture(scope="session")
def committed_files(root: Path) -> list[Path]:
    """What git tracks or would add; in an unpacked source archive, which has no history, everything."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        names = [root / name for name in listing.stdout.split("\0") if name]
    else:
        names = [path for path in root.rglob("*") if not NOT_SOURCE & set(path.relative_to(root).parts)]
    return sorted(path for path in names if path.is_file())
