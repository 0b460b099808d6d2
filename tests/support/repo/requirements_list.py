"""The list of requirements, `docs/internals/requirements.md`: reads it, finds the tests that carry an identifier, and renews the lists of tests.

A unit test holds the page to the code. `python -m tests.support.repo.requirements_list` rewrites the lists of tests and keeps each sentence; it writes
nothing else. A new identifier needs a sentence by hand. Whether a test proves its requirement is for a reader to judge.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs" / "internals" / "requirements.md"
ROW: Final = re.compile(r"\b(?:(?:CD|DS)-\d{3}|(?:US|TS|OQ)-\d{2})\b")
ROW_IN_NAME: Final = re.compile(r"(?<=_)(?:(?:cd|ds)_\d{3}|(?:us|ts|oq)_\d{2})(?=_|$)")
CHECKS: Final = {
    "tests/conformance/bus_suite.py": re.compile(r"\bB\d{1,2}\b"),
    "tests/conformance/test_buses.py": re.compile(r"\bB\d{1,2}\b"),
    "tests/conformance/launcher_suite.py": re.compile(r"\bR\d{1,2}\b"),
    "tests/simulation/directed/": re.compile(r"\bH\d{1,2}\b"),
    "tests/unit/tidegate_core/ownership/": re.compile(r"\bH\d{1,2}\b"),
}
"""Identifiers of checks, by the beginning of the path in which they mean that."""
HOLES: Final = "tests/simulation/directed/table.py"
"""Names tests for each hole of the first design; a dictionary, because some of these tests are far from it."""
NOT_LISTED: Final = ("tests/unit/repo/", "tests/support/repo/", "tests/unit/support/repo/")
"""Folders whose tests are about the repository: an identifier there is an example."""
CONTRACTS: Final = ("shared/tidegate_ports/bus.py", "shared/tidegate_ports/launcher.py")
"""Ports whose heads state the checks `B` and `R`, one an item."""
_HEADING = re.compile(r"^### ([A-Z]{1,2}-?\d+)$")
_TEST = re.compile(r"^- `([^`]+)`$")
_CONTRACT = re.compile(r"^\s*- ([BR]\d{1,2}): (.+(?:\n {2,}(?!- ).+)*)", re.MULTILINE)


@dataclass(slots=True)
class Requirement:
    """One entry of the page.

    Attributes:
        sentence: Meaning in plain English.
        tests: Carriers, as `path` for a module and `path::name` for a class, method or function.
    """

    sentence: str = ""
    tests: list[str] = field(default_factory=list)


def requirements(page: str) -> dict[str, Requirement]:
    """Returns the entries of the page by identifier."""
    found: dict[str, Requirement] = {}
    entry: Requirement | None = None
    for line in page.splitlines():
        if heading := _HEADING.match(line):
            if heading[1] in found:
                raise ValueError(f"{PAGE.name}: {heading[1]} stands twice")
            entry = found[heading[1]] = Requirement()
        elif line.startswith("#"):
            entry = None
        elif entry is not None and (test := _TEST.match(line)):
            entry.tests.append(test[1])
        elif entry is not None and line.strip():
            entry.sentence = f"{entry.sentence} {line.strip()}".strip()
    return found


def carriers(root: Path) -> dict[str, list[str]]:
    """Returns, by identifier, each test, helper or module of tests whose docstring or name has it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted((root / "tests").rglob("*.py")):
        path = file.relative_to(root).as_posix()
        source = file.read_text(encoding="utf-8")
        patterns = [ROW, *(pattern for start, pattern in CHECKS.items() if path.startswith(start))]
        in_names = ROW_IN_NAME.search(source) is not None
        if path.startswith(NOT_LISTED) or not (in_names or any(pattern.search(source) for pattern in patterns)):
            continue
        for name, text in _named_texts(ast.parse(source), path):
            shown = {each for pattern in patterns for each in pattern.findall(text)}
            shown |= {each.upper().replace("_", "-") for each in ROW_IN_NAME.findall(name.rpartition("::")[2])}
            for identifier in shown:
                found[identifier].append(name)
    for hole in _keys(root / HOLES, "HOLES"):
        found[hole].append(f"{HOLES}::HOLES")
    return dict(found)


def _named_texts(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> Iterator[tuple[str, str]]:
    """Yields name and docstring of a module and of everything in it; comments of a test do not count."""
    yield name, ast.get_docstring(node) or ""
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _named_texts(child, f"{name}::{child.name}")


def _keys(file: Path, name: str) -> list[str]:
    """Returns the keys of a dictionary at the top of a module."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and isinstance(node.value, ast.Dict):
            return [
                key.value for key in node.value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
    return []


def contract_sentences(root: Path) -> dict[str, str]:
    """Returns the checks `B` and `R` as the ports' heads state them."""
    heads = (ast.get_docstring(ast.parse((root / path).read_text(encoding="utf-8"))) or "" for path in CONTRACTS)
    return {item: " ".join(words.split()) for head in heads for item, words in _CONTRACT.findall(head)}


def renewed(page: str, found: Mapping[str, list[str]], sentences: Mapping[str, str]) -> str:
    """Returns the page with the lists of tests as they are now; sentences of contracts come from the ports."""
    lines: list[str] = []
    entries = requirements(page)
    identifier = None
    for line in page.splitlines():
        if heading := _HEADING.match(line):
            identifier = heading[1]
            tests = [f"- `{test}`" for test in found.get(identifier, [])]
            lines += [line, "", sentences.get(identifier, entries[identifier].sentence), "", *tests, ""]
        elif identifier is None or line.startswith("#"):
            identifier = None
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def main() -> int:
    """Renews the page, and returns 1 when an identifier of a test has no entry."""
    page = PAGE.read_text(encoding="utf-8")
    found = carriers(ROOT)
    PAGE.write_text(renewed(page, found, contract_sentences(ROOT)), encoding="utf-8")
    missing = sorted(found.keys() - requirements(page).keys())
    for identifier in missing:
        sys.stderr.write(f"{PAGE.name}: {identifier} has no entry; add `### {identifier}` with a sentence\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
