"""Each package is typed, shipped, watched by the import contracts, and says what it needs."""

import ast
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# A package may need an extra only where a user who starts it has been told to install that extra.
EXTRA_OF = {"tidegate_spark": "spark", "tidegate_bricks": "local", "tidegate_pipelines": "demo"}
# Types for the checker only: these imports stand under `if TYPE_CHECKING` and are gone at run time.
TYPES_ONLY = frozenset({"_typeshed", "mypy_boto3_dynamodb", "typing_extensions"})
# Each is named in the interface of a library that is declared, and comes with it.
OWN_INTERFACE = frozenset({"annotated-types", "botocore", "click", "pydantic-core", "starlette"})


def _imported_modules(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text(), str(source))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case _:
                pass


def _distributions(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def _allowed(package: str, pyproject: dict[str, Any]) -> set[str]:
    project = pyproject["project"]
    allowed = _distributions(project["dependencies"])
    extra = EXTRA_OF.get(package)
    while extra is not None:
        names = [Requirement(line) for line in project["optional-dependencies"][extra]]
        allowed |= {canonicalize_name(name.name) for name in names}
        # An extra may stand on another one of ours, as `local` stands on `spark`.
        extra = next((inner for name in names if name.name == "tidegate" for inner in name.extras), None)
    return allowed


def test_given_a_package_then_it_is_a_typed_package(packages: list[Path]) -> None:
    assert packages
    incomplete = [
        f"{package.name}/{name}"
        for package in packages
        for name in ("__init__.py", "py.typed")
        if not (package / name).is_file()
    ]
    assert incomplete == []


def test_given_a_package_then_the_wheel_ships_it(root: Path, packages: list[Path], pyproject: dict[str, Any]) -> None:
    shipped = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(shipped) == sorted(package.relative_to(root).as_posix() for package in packages)


def test_given_a_package_then_import_contracts_watch_it(packages: list[Path], pyproject: dict[str, Any]) -> None:
    watched = pyproject["tool"]["importlinter"]["root_packages"]
    assert sorted(watched) == sorted(package.name for package in packages)


def test_given_a_new_package_then_a_contract_keeps_test_code_out_of_it(
    packages: list[Path], pyproject: dict[str, Any]
) -> None:
    contracts = pyproject["tool"]["importlinter"]["contracts"]
    no_tests = next(contract for contract in contracts if contract["name"] == "Product code imports no test code")
    assert set(no_tests["source_modules"]) == {package.name for package in packages}


def test_given_an_import_then_its_distribution_is_declared(packages: list[Path], pyproject: dict[str, Any]) -> None:
    """An undeclared library works here, where the whole lock is installed, and breaks in a user's environment."""
    ours = {package.name for package in packages}
    providers = packages_distributions()
    undeclared = set()
    for package in packages:
        allowed = _allowed(package.name, pyproject)
        for source in package.rglob("*.py"):
            for module in set(_imported_modules(source)) - ours - sys.stdlib_module_names - TYPES_ONLY:
                provided_by = {canonicalize_name(name) for name in providers.get(module, [module])}
                if not provided_by & (allowed | OWN_INTERFACE):
                    undeclared.add(f"{source.relative_to(package.parent)}: {module}")
    assert undeclared == set()


def test_given_a_folder_without_init_then_it_holds_no_source(packages: list[Path]) -> None:
    """A forgotten `__init__.py` still imports here and then hides the folder from the import contracts."""
    without = {
        source.parent.relative_to(package.parent)
        for package in packages
        for source in package.rglob("*.py")
        if not (source.parent / "__init__.py").is_file()
    }
    assert without == set()
