"""`make` explains itself: every target that a person may call has a line of help, and help leaves none out."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TARGET = re.compile(r"^([a-z][a-z-]*):([^=].*)?$", re.MULTILINE)
HELPED = re.compile(r"^([a-z][a-z-]*):.*?## (\S.*)$", re.MULTILINE)
# Not for people: other targets ask for it.
INTERNAL = frozenset({"require-java"})
MAKE_TIMEOUT_S = 150


@pytest.fixture(scope="module")
def makefile(root: Path) -> str:
    return (root / "Makefile").read_text()


def _make(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["make", *arguments], cwd=root, capture_output=True, text=True, check=True, timeout=MAKE_TIMEOUT_S
    )
    return done.stdout


def test_given_a_target_then_it_has_a_line_of_help(makefile: str) -> None:
    targets = {name for name, _ in TARGET.findall(makefile)} - INTERNAL
    assert targets >= {"help", "setup", "check", "test", "simulate", "wheel", "clean"}
    assert targets == {name for name, _ in HELPED.findall(makefile)}


def test_given_a_target_then_a_file_of_its_name_does_not_hide_it(makefile: str) -> None:
    phony = set(re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE))
    assert phony == {name for name, _ in TARGET.findall(makefile)}


def test_given_no_target_then_make_lists_all_of_them(root: Path, makefile: str) -> None:
    printed = _make(root)
    for name, help_line in HELPED.findall(makefile):
        assert name in printed
        assert help_line.strip() in printed


@pytest.mark.parametrize(("ends_with", "status"), [(0, 0), (1, 2)])
def test_given_a_part_of_the_suite_that_fails_then_the_other_one_runs_as_well(
    root: Path, ends_with: int, status: int
) -> None:
    """The recipe itself, with something in pytest's place that says that it was called."""
    stand_in = f"PYTEST=sh -c 'echo called; exit {ends_with}' --"
    done = subprocess.run(
        ["make", "--silent", "--old-file=setup", "--old-file=require-java", "test", stand_in],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=MAKE_TIMEOUT_S,
    )
    assert done.stdout.splitlines() == ["called", "called"]
    assert done.returncode == status, done.stderr


def test_given_the_test_target_then_it_runs_every_folder_of_tests(root: Path, makefile: str) -> None:
    folders = {path.parent for path in (root / "tests").rglob("test_*.py")}
    kinds = {folder.relative_to(root / "tests").parts[0] for folder in folders}
    assert {kind for kind in kinds if f"tests/{kind}" not in makefile} == set()


def test_given_a_program_in_a_target_then_setup_installs_it(makefile: str) -> None:
    """A target that calls what is not there would be a promise, not a help."""
    programs = set(re.findall(r"\$\(BIN\)/([\w-]+)", makefile))
    assert {name for name in programs if not (Path(sys.executable).parent / name).exists()} == set()
