"""The lock files give what pyproject.toml asks for, exactly once, with hashes, and tell nobody where to fetch it.

Needs no network, so that it can stand in `make check`: what it cannot see is whether a newer release exists.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PINNED = re.compile(r"^(\S+)==(\S+)(?: ; (.+?))?(?: \\)?$", re.MULTILINE)
IMAGE_LOCK = "deploy/images/node/requirements.lock"
LOCKS = ("requirements.lock", IMAGE_LOCK)


def _pins(lock: Path) -> dict[str, set[str]]:
    # A name has several versions where the environment decides between them.
    pins: dict[str, set[str]] = {}
    for name, version, _ in PINNED.findall(lock.read_text()):
        pins.setdefault(canonicalize_name(name), set()).add(version)
    return pins


def _unsatisfied(requirements: list[str], pins: dict[str, set[str]]) -> list[str]:
    return [
        line
        for line in requirements
        if (wanted := Requirement(line)).name != "tidegate"
        and not any(Version(pin) in wanted.specifier for pin in pins.get(canonicalize_name(wanted.name), ()))
    ]


def test_given_all_requirements_then_the_lock_satisfies_each(root: Path, pyproject: dict[str, Any]) -> None:
    project = pyproject["project"]
    extras = [line for extra in project["optional-dependencies"].values() for line in extra]
    wanted = [*project["dependencies"], *extras, *pyproject["dependency-groups"]["dev"]]
    assert _unsatisfied(wanted, _pins(root / "requirements.lock")) == [], "run `make lock`"


def test_given_the_core_requirements_then_the_image_lock_satisfies_each(root: Path, pyproject: dict[str, Any]) -> None:
    assert _unsatisfied(pyproject["project"]["dependencies"], _pins(root / IMAGE_LOCK)) == [], "run `make lock`"


def test_given_both_locks_then_the_image_ships_what_the_suite_ran_on(root: Path) -> None:
    tested, shipped = (_pins(root / lock) for lock in LOCKS)
    assert {name: pins for name, pins in shipped.items() if not pins <= tested.get(name, set())} == {}


def test_given_the_image_lock_then_it_holds_nothing_of_spark_or_of_the_tests(root: Path) -> None:
    assert not {"pyspark", "py4j", "pytest", "moto", "pandas"} & set(_pins(root / IMAGE_LOCK))


@pytest.mark.parametrize("lock", LOCKS)
def test_given_a_lock_then_each_pin_has_hashes_and_no_line_names_a_place(root: Path, lock: str) -> None:
    text = (root / lock).read_text()
    blocks = re.split(r"^(?=\S+==)", text, flags=re.MULTILINE)[1:]
    assert [block.splitlines()[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert re.findall(r"^.*(?:://|--(?:extra-)?index|--find-links).*$", text, re.MULTILINE) == []


def test_given_a_direct_dependency_then_it_has_an_upper_bound(pyproject: dict[str, Any]) -> None:
    """Calendar data is the one exception: a newer zone database is always the better one."""
    project = pyproject["project"]
    extras = [line for extra in project["optional-dependencies"].values() for line in extra]
    direct = [Requirement(line) for line in [*project["dependencies"], *extras]]
    unbounded = {
        wanted.name
        for wanted in direct
        if wanted.name != "tidegate" and not {"<", "==", "<="} & {part.operator for part in wanted.specifier}
    }
    assert unbounded == {"tzdata"}
