"""`make` explains itself: every target that a person may call has a line of help, and help leaves none out."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TARGET = re.compile(r"^([a-z][a-z-]*):([^=].*)?$", re.MULTILINE)
HELPED = re.compile(r"^([a-z][a-z-]*):.*?## (\S.*)$", re.MULTILINE)
# Not for people: other targets ask for it.
INTERNAL = frozenset({"require-java", "require-helm"})
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


@pytest.mark.parametrize(("target", "has_all"), [("test", False), ("test-all", True)])
def test_given_a_tier_then_it_runs_all_folders_of_tests(root: Path, target: str, has_all: bool) -> None:
    """The recipe itself, with something in pytest's place that prints its arguments. Without a path pytest runs `testpaths`."""
    made_before = [f"--old-file={name}" for name in ("setup", "require-java", "require-helm")]
    (called,) = _make(root, "--silent", *made_before, target, "PYTEST=echo").splitlines()
    assert ("--all" in called.split()) == has_all
    assert "tests" not in called


@pytest.mark.parametrize("status", [0, 1])
def test_given_the_suite_fails_then_make_fails(root: Path, status: int) -> None:
    made_before = [f"--old-file={name}" for name in ("setup", "require-java", "require-helm")]
    command = ["make", "--silent", *made_before, "test", f"PYTEST=sh -c 'exit {status}' --"]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=MAKE_TIMEOUT_S)
    assert (done.returncode != 0) == bool(status)


def test_given_a_program_in_a_target_then_setup_installs_it(makefile: str) -> None:
    """A target that calls what is not there would be a promise, not a help."""
    programs = set(re.findall(r"\$\(BIN\)/([\w-]+)", makefile))
    assert {name for name in programs if not (Path(sys.executable).parent / name).exists()} == set()
