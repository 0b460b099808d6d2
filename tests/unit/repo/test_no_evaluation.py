"""Nothing that somebody wrote is ever run, and nothing that could be code is ever read back: a walk over all sources.

DolphinScheduler evaluated its users' expressions (CVE-2023-49299, CVE-2024-23320), Airflow read their pickles (CVE-2026-25917).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CALLS = frozenset({"eval", "exec", "compile", "__import__"})
MODULES = frozenset(
    {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "jinja2", "mako", "code"}
)
LOADERS = frozenset({"load", "load_all", "full_load", "full_load_all", "unsafe_load", "unsafe_load_all"})
SHARED_LOADER = ("tidegate_ports.common.yaml_core_schema", "CoreSchemaLoader")
TEMPLATES = frozenset({"Template", "Formatter"})
USERS_PROGRAM = "shared/tidegate_spark/user_program.py"
"""Runs the user's file, in the program's own process: that is what it is for."""


def evaluations(source: str) -> list[str]:
    """Returns 'line: what' for each place that runs, or reads back, what may be code."""
    tree = ast.parse(source)
    return [f"{line}: {what}" for line, what in sorted(_found(tree, _safe_loaders(tree)))]


def _safe_loaders(tree: ast.Module) -> set[str]:
    """Names of a module's loaders that are YAML's safe one with more rules: its own, and the one that several share."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and [ast.unparse(base) for base in node.bases] == ["yaml.SafeLoader"]
    } | {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == SHARED_LOADER[0]
        for alias in node.names
        if alias.name == SHARED_LOADER[1]
    }


def _found(tree: ast.Module, safe: set[str]) -> Iterator[tuple[int, str]]:
    nodes = list(ast.walk(tree))
    safely = {
        node.func
        for node in nodes
        if safe and isinstance(node, ast.Call) and len(node.args) == 2 and ast.unparse(node.args[1]) in safe
    }
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield node.lineno, f"calls {name}"
            case ast.Attribute(value=ast.Name(id="runpy"), attr=("run_path" | "run_module") as attr):
                yield node.lineno, f"takes runpy.{attr}"
            case ast.Import(names=names):
                yield from ((node.lineno, f"imports {each.name}") for each in names if each.name in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                if module in MODULES:
                    yield node.lineno, f"imports {module}"
                if module == "string":
                    yield from ((node.lineno, f"imports {each.name}") for each in names if each.name in TEMPLATES)
                if module == "yaml":
                    yield from ((node.lineno, f"imports yaml.{each.name}") for each in names if each.name in LOADERS)
                if module == "builtins":
                    yield from ((node.lineno, f"imports {each.name}") for each in names if each.name in CALLS)
            case ast.Attribute(value=ast.Name(id="yaml"), attr=attr) if attr in LOADERS and node not in safely:
                yield node.lineno, f"reads by yaml.{attr}"
            case ast.Attribute(value=ast.Name(id="builtins"), attr=attr) if attr in CALLS:
                yield node.lineno, f"takes {attr}"
            case ast.Attribute(value=ast.Name(id="string"), attr=attr) if attr in TEMPLATES:
                yield node.lineno, f"takes string.{attr}"
            case ast.keyword(arg="shell", value=ast.Constant(value=True)):
                yield node.value.lineno, "starts a shell"
            case _:
                pass


def test_given_all_sources_then_nothing_is_evaluated_and_nothing_unpickled(root: Path, packages: list[Path]) -> None:
    found = [
        f"{file.relative_to(root)}:{what}"
        for package in packages
        for file in sorted(package.rglob("*.py"))
        if file.relative_to(root).as_posix() != USERS_PROGRAM
        for what in evaluations(file.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("eval('1')", "calls eval"),
        ("x = exec(y)", "calls exec"),
        ("compile(a, b, 'exec')", "calls compile"),
        ("import pickle", "imports pickle"),
        ("from marshal import loads", "imports marshal"),
        ("yaml.load(text)", "reads by yaml.load"),
        ("yaml.unsafe_load(text)", "reads by yaml.unsafe_load"),
        ("from yaml import full_load", "imports yaml.full_load"),
        ("from string import Template", "imports Template"),
        ("string.Formatter().format(x)", "takes string.Formatter"),
        ("from builtins import eval as e", "imports eval"),
        ("builtins.exec(x)", "takes exec"),
        ("runpy.run_path(x)", "takes runpy.run_path"),
        ("yaml.load(text, Loader)", "reads by yaml.load"),
        ("yaml.load(text, CoreSchemaLoader)", "reads by yaml.load"),
        ("from jinja2 import Environment", "imports jinja2"),
        ("subprocess.run(line, shell=True)", "starts a shell"),
    ],
)
def test_given_a_line_that_evaluates_then_it_is_found(source: str, what: str) -> None:
    assert evaluations(source) == [f"1: {what}"]


@pytest.mark.parametrize(
    "source",
    [
        "yaml.safe_load(text)",
        "class L(yaml.SafeLoader): ...\nyaml.load(text, L)",
        "from tidegate_ports.common.yaml_core_schema import CoreSchemaLoader\nyaml.load(text, CoreSchemaLoader)",
        "re.compile(x)",
        "literal_eval(x)",
        "json.loads(x)",
    ],
)
def test_given_a_line_that_only_looks_alike_then_it_is_not_found(source: str) -> None:
    assert evaluations(source) == []
