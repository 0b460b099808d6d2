"""The core decides and never acts: a walk over its syntax finds no I/O, no clock, no randomness and no global state.

Imports are checked against a list of what is allowed rather than of what is forbidden, because a forgotten entry then
fails loudly. The rules themselves are tested on snippets that break them, so that a rule which stopped to bite is seen.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

# Pure parts of the standard library. `hashlib` and `zoneinfo` are here because their answers depend on their arguments
# (and on the version of the zone database, which is cluster state).
ALLOWED_STANDARD = frozenset(
    "__future__ abc base64 binascii bisect calendar collections copy dataclasses datetime decimal difflib enum fractions"
    " functools hashlib heapq hmac itertools json math numbers operator re string struct textwrap types typing"
    " unicodedata urllib.parse zlib zoneinfo".split()
)
ALLOWED_LIBRARIES = frozenset({"annotated_types", "pydantic", "pydantic_core", "tidegate_core"})
TYPES_ONLY = frozenset({"_typeshed", "typing_extensions"})

# `id` and `hash` differ from process to process, and a decision must not.
FORBIDDEN_CALLS = frozenset(
    "__import__ breakpoint compile eval exec globals hash id input locals open print vars".split()
)
FILE_METHODS = frozenset({"open", "read_bytes", "read_text", "unlink", "write_bytes", "write_text"})
# Zone rules come from the pinned tzdata package and never from the host, which is what makes them the same everywhere.
# Reading that package's own data is as pure as importing a module, and only this module may do it.
ZONE_RULES = "shared/tidegate_core/language/time/zones.py"
OF_ZONE_RULES = ("imports importlib", "calls a file's .open()", "calls a file's .read_text()")
CLOCK_ATTRIBUTES = frozenset({"now", "today", "utcnow"})
CLOCK_OWNERS = frozenset({"date", "datetime"})


def violations(source: str) -> list[str]:
    """Returns 'line: what' for each place of `source` that acts, or that does not depend on its arguments alone."""
    nodes = list(ast.walk(ast.parse(source)))
    return [f"{line}: {what}" for line, what in sorted({*_imports(nodes), *_acts(nodes)})]


def _imports(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case ast.ImportFrom():
                modules = ["a relative import"]
            case _:
                continue
        for module in modules:
            if not {module, module.partition(".")[0]} & (ALLOWED_STANDARD | ALLOWED_LIBRARIES | TYPES_ONLY):
                yield node.lineno, f"imports {module}"


def _acts(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    hash_methods = {
        inner
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.name == "__hash__"
        for inner in ast.walk(node)
    }
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS and node not in hash_methods:
                yield node.lineno, f"calls {name}()"
            case ast.Call(func=ast.Attribute(attr=name)) if name in FILE_METHODS:
                yield node.lineno, f"calls a file's .{name}()"
            case ast.Attribute(value=owner, attr=name) if (
                name in CLOCK_ATTRIBUTES and _last_name(owner) in CLOCK_OWNERS
            ):
                yield node.lineno, f"reads the clock by {_last_name(owner)}.{name}"
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                yield node.lineno, "waits"
            case ast.Global(names=names):
                yield node.lineno, f"changes the global {', '.join(names)}"
            case _:
                pass


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def test_given_the_core_then_it_neither_acts_nor_asks(root: Path) -> None:
    sources = sorted((root / "shared" / "tidegate_core").rglob("*.py"))
    assert sources
    found = [f"{path.relative_to(root)}:{what}" for path in sources for what in violations(path.read_text())]
    excused = [what for what in found if what.startswith(ZONE_RULES) and what.endswith(OF_ZONE_RULES)]
    assert [what for what in found if what not in excused] == []


@pytest.mark.parametrize(
    "snippet",
    [
        "import time",
        "import os.path",
        "import urllib.request",
        "from asyncio import Queue",
        "from random import random",
        "from uuid import uuid4",
        "from tidegate_ports.store import Store",
        "from .sibling import thing",
        "open('state')",
        "text = place.read_text()",
        "print('fired')",
        "shard = hash(name) % 256",
        "order = sorted(jobs, key=lambda job: id(job))",
        "from datetime import datetime\nnow = datetime.now()",
        "import datetime\nnow = datetime.datetime.now(datetime.UTC)",
        "from datetime import date\nclock = date.today",
        "async def fire() -> None: ...",
        "def fire() -> None:\n    global fired\n    fired = 1",
    ],
)
def test_given_a_snippet_that_acts_then_the_walk_finds_it(snippet: str) -> None:
    assert len(violations(snippet)) == 1


@pytest.mark.parametrize(
    "snippet",
    [
        "from datetime import UTC, datetime\nstart = datetime(2013, 1, 1, tzinfo=UTC)",
        "def due(now: int) -> bool:\n    return now > 0",
        "class Key:\n    def __hash__(self) -> int:\n        return hash(self.name)",
        "import hashlib\nshard = hashlib.blake2b(b'name').digest()",
        "verdict = facts.now",
    ],
)
def test_given_a_pure_snippet_then_the_walk_is_silent(snippet: str) -> None:
    assert violations(snippet) == []
