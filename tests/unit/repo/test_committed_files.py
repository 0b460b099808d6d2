"""What is committed works for everybody: it names no package registry and no path of one person's machine."""

import re
from pathlib import Path

import pytest

LARGEST_TEXT_BYTES = 1_000_000

# Each client knows its own default, and a company's mirror must not be by-passed. The brackets keep this file clean.
REGISTRIES = re.compile(
    r"p[y]pi\.org|p[y]thonhosted\.org|repo1?\.m[a]ven|m[a]ven\.org/|registry\.n[p]mjs|n[p]mjs\.org|proxy\.g[o]lang"
    r"|sum\.g[o]lang|c[r]ates\.io|deb\.d[e]bian\.org|index\.d[o]cker\.io|registry-1\.d[o]cker"
)
INDEX_OPTIONS = re.compile(r"--(extra-)?index-u[r]l[ =]\S*:|--t[r]usted-host|://[^/\s:@{}$'\"]+:[^/\s:@{}$'\"]+@")
HOMES = re.compile(r"(?<![\w.])/(home/[a-z]\w*|Users/[A-Za-z]\w*|r[o]ot)/")


def _text(path: Path) -> str:
    if path.stat().st_size > LARGEST_TEXT_BYTES:
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(REGISTRIES, id="package registry"),
        pytest.param(INDEX_OPTIONS, id="index option or password"),
        pytest.param(HOMES, id="home folder"),
    ],
)
def test_given_a_committed_file_then_it_names_no(
    pattern: re.Pattern[str], root: Path, committed_files: list[Path]
) -> None:
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()[:100]}"
        for path in committed_files
        for number, line in enumerate(_text(path).splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_given_a_committed_file_then_it_does_not_name_this_checkout(root: Path, committed_files: list[Path]) -> None:
    assert [path for path in committed_files if f"{root}/" in _text(path)] == []


def test_given_a_committed_file_then_it_is_small(root: Path, committed_files: list[Path]) -> None:
    """Data and binaries come from packages and caches; a clone stays quick."""
    assert [path.relative_to(root) for path in committed_files if path.stat().st_size > LARGEST_TEXT_BYTES] == []


def test_given_a_script_with_an_interpreter_line_then_it_can_be_started(
    root: Path, committed_files: list[Path]
) -> None:
    scripts = [path for path in committed_files if path.suffix in {"", ".sh"} and _text(path).startswith("#!")]
    assert root / ".ci" / "run" in scripts
    assert [path for path in scripts if not path.stat().st_mode & 0o100] == []
