"""The suite names some files by their paths: a file that has moved would be dealt out and timed as any other, and nobody would notice."""

from __future__ import annotations

from tests.conftest import ALONE, HANGS_S, LONGEST_FIRST, TESTS
from tests.support.suite.scheduler import STACK_FOLDERS


def test_given_a_path_that_the_suite_names_then_it_is_there() -> None:
    assert [path for path in (*LONGEST_FIRST, *HANGS_S) if not (TESTS / path).exists()] == []


def test_given_files_for_one_worker_then_they_are_stack_tests_and_begin_first() -> None:
    assert {path.partition("/")[0] for path in LONGEST_FIRST} <= set(STACK_FOLDERS)
    assert LONGEST_FIRST[: len(ALONE)] == ALONE
