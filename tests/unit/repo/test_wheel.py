"""The wheel holds every source file and no test code, and gives a working `tidegate` in an environment without anything else."""

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.xdist_group("wheel")]

INSTALL_TIMEOUT_S = 240
TEST_LIBRARIES = frozenset({"_pytest", "hypothesis", "moto", "pytest", "testcontainers", "tests"})
NETWORK_TROUBLE = ("NewConnectionError", "Temporary failure in name resolution", "ConnectTimeoutError", "ProxyError")


def _run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    # Nothing of this checkout may be found by accident: neither by PYTHONPATH nor from the working folder.
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=INSTALL_TIMEOUT_S
    )


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    built = _run(*pip, "--wheel-dir", folder, root, cwd=folder)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("tidegate-*.whl")
    return path


@pytest.fixture(scope="module")
def empty_environment(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment, and beside it the lock without its hashes: pip accepts no hashes as constraints for a wheel."""
    folder = tmp_path_factory.mktemp("empty")
    made = _run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    assert made.returncode == 0, made.stderr
    pins = [line.removesuffix(" \\") for line in (root / "requirements.lock").read_text().splitlines() if "==" in line]
    (folder / "constraints.txt").write_text("\n".join(pins) + "\n")
    return folder


def _install(environment: Path, *arguments: str | Path) -> None:
    pip = (environment / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    done = _run(*pip, "--constraint", environment / "constraints.txt", *arguments, cwd=environment)
    if done.returncode != 0 and any(sign in done.stderr for sign in NETWORK_TROUBLE) and not os.environ.get("CI"):
        pytest.skip("no package index can be reached from here; with CI set this is a failure")
    assert done.returncode == 0, done.stderr


def test_given_the_wheel_then_it_holds_every_source_file(root: Path, wheel: Path, packages: list[Path]) -> None:
    shipped = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        path.relative_to(package.parent).as_posix()
        for package in packages
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources <= shipped
    assert {name.partition("/")[0] for name in shipped - sources} == {
        wheel.name[: -len("-py3-none-any.whl")] + ".dist-info"
    }


def test_given_the_wheel_then_it_holds_no_test_code(wheel: Path) -> None:
    """38,600 lines of test kit were in the wheel, and so in the production image."""
    with zipfile.ZipFile(wheel) as shipped:
        assert [name for name in shipped.namelist() if is_of_the_suite(name)] == []
        sources = {name: shipped.read(name).decode() for name in shipped.namelist() if name.endswith(".py")}
    assert sources
    assert [f"{name}: {library}" for name in sources for library in imported_test_libraries(sources[name])] == []


def is_of_the_suite(name: str) -> bool:
    """Whether a file of the wheel, by its path, is one of the suite's."""
    folders = name.split("/")
    return "tests" in folders or folders[-1].startswith(("test_", "conftest."))


def imported_test_libraries(source: str) -> Iterator[str]:
    """Yields the libraries of test code that a module imports, also within a function."""
    if not any(library in source for library in TEST_LIBRARIES):
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case _:
                continue
        yield from sorted({module.partition(".")[0] for module in modules} & TEST_LIBRARIES)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import pytest", ["pytest"]),
        ("def later() -> None:\n    from hypothesis.strategies import text", ["hypothesis"]),
        ("from tests.support import builders", ["tests"]),
        ("import moto.server, testcontainers.core", ["moto", "testcontainers"]),
        ("pytest = 'no import'", []),
        ("from tidegate_core import effects", []),
    ],
)
def test_given_a_module_then_its_imports_of_test_libraries_are_found(source: str, found: list[str]) -> None:
    assert list(imported_test_libraries(source)) == found


@pytest.mark.parametrize(
    ("name", "is_test"),
    [
        ("tests/support/tier.py", True),
        ("tidegate_core/tests/__init__.py", True),
        ("tidegate_core/test_effects.py", True),
        ("tidegate_node/conftest.py", True),
        ("tidegate_core/effects.py", False),
    ],
)
def test_given_a_path_in_the_wheel_then_one_of_the_suite_is_known(name: str, is_test: bool) -> None:
    assert is_of_the_suite(name) is is_test


@pytest.mark.nightly
@pytest.mark.timeout(INSTALL_TIMEOUT_S * 2)
def test_given_an_empty_environment_then_each_way_to_install_gives_a_working_command(
    root: Path, wheel: Path, empty_environment: Path, pyproject: dict[str, Any]
) -> None:
    ways: dict[str, tuple[str | Path, ...]] = {
        "the wheel": (wheel,),
        "pip install .": ("--force-reinstall", "--no-deps", root),
        "pip install -e .": ("--force-reinstall", "--no-deps", "--editable", root),
    }
    for way, arguments in ways.items():
        _install(empty_environment, *arguments)
        answer = _run(empty_environment / "venv" / "bin" / "tidegate", "version", cwd=empty_environment)
        assert answer.returncode == 0, f"{way}: {answer.stderr}"
        assert pyproject["project"]["version"] in answer.stdout, way
