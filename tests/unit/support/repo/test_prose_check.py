"""The guard on prose: what it counts, and limits that only go down."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.repo import prose_check
from tests.support.repo.prose_check import (
    MEASURES,
    Folder,
    faults,
    files,
    folder_of,
    long_subjects,
    lowered,
    measured,
    prose_of_python,
    read_limits,
    rendered,
    sentences_of,
)

COMMON: dict[str, float] = dict(zip(MEASURES, [12, 2, 8, 2, 8, 2, 0, 0, 0], strict=True))
LONG = "The node " + "and the store " * 9 + "agree."
PLAIN = "The node writes the row."


def _folder(tmp_path: Path, name: str, text: str) -> Folder:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return measured(tmp_path, [name])[folder_of(name)]


def test_given_this_tree_then_it_is_within_its_limits() -> None:
    limits = read_limits(prose_check.LIMITS.read_text(encoding="utf-8"))
    found = measured(prose_check.ROOT, files(prose_check.ROOT))
    assert [*faults(limits, found)] == [], "see tests/support/repo/prose_check.py"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        pytest.param("The node starts now. The store answers it.", 2, id="full stops"),
        pytest.param("The node starts `a.b. C d e f` now.", 1, id="code is one word"),
        pytest.param("```\nThe node starts the store.\n```\nThe store answers the node.", 1, id="fences are left out"),
        pytest.param("| a row of the table | another cell of the table |", 2, id="cells"),
        pytest.param("- first item of the list\n- second item of the list", 2, id="items"),
        pytest.param("A heading", 0, id="too short"),
        pytest.param("See [the whole long page](http://a.b/c d) for more.", 1, id="links"),
    ],
)
def test_given_markdown_then_it_is_cut_into_sentences(text: str, sentences: int) -> None:
    assert len([*sentences_of(text)]) == sentences


def test_given_a_text_then_each_sentence_has_its_line() -> None:
    text = (
        "The first sentence is here.\n\n```\ncode\n```\n\n- The second sentence is\n  here. The third one follows it."
    )
    assert [line for line, _ in sentences_of(text)] == [0, 6, 7]


SOURCE = '''"""Module head of the file.

Args:
    name: Name of the node that owns the shard.
    path: Path of the file that the node reads.
"""

TEXT = """no docstring at all, but a text"""
LINK = "a # b"  # A comment after code stands alone.
# A block of two lines
# is one comment.


def f() -> None:
    r"""Docstring of a function."""  # noqa: D301 - no prose
    g(
        """an argument of a call"""
    )


X: int
"""Docstring of an attribute."""
'''


def test_given_a_module_then_docstrings_and_comments_are_told_apart() -> None:
    found = sorted((line, kind) for kind, line, _ in prose_of_python(SOURCE))
    assert found == [(1, "doc"), (9, "comment"), (10, "comment"), (15, "doc"), (22, "doc")]
    assert len([*sentences_of(next(prose_of_python(SOURCE))[2], "doc")]) == 3


def test_given_a_folder_then_its_figures_are_shares(tmp_path: Path) -> None:
    figures = _folder(
        tmp_path, "docs/a.md", f"{LONG}\n\n{PLAIN}\n\nThe node is read anew, beside the store.\n"
    ).figures()
    assert figures["md.long"] == 33.4, "a third, rounded upwards"
    assert figures["md.riddles"] == pytest.approx(1_000 * 2 / 43, abs=0.1)
    assert figures["banned"] == 2


def test_given_a_banned_word_then_the_place_says_what_to_write(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "docs/a.md", "Plain words are here.\n\nThe node is made anew.\n")
    assert folder.places["banned"] == ['docs/a.md:3: "anew"; write instead: again; made anew: recreated']


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a/b.py", 'X = "as SEMANTICS 4 says"\n', "a/b.py:1: SEMANTICS 4 is not in the repository"),
        ("a/b.py", '"""Head.\n\nAs DESIGN says of it.\n"""\n', "a/b.py:3: DESIGN is not in the repository"),
        ("a/b.py", "# Asked for by issue 7.\n", "a/b.py:1: issue 7 is not in the repository"),
        ("a/b.py", 'X = "see docs/gone.md"\n', "a/b.py:1: there is no docs/gone.md"),
        ("docs/a.md", "See [it](gone.md#part).\n", "docs/a.md: the link (gone.md#part) leads to no file"),
    ],
)
def test_given_a_reference_to_no_document_then_it_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    (reference,) = _folder(tmp_path, name, text).places["references"]
    assert reference.startswith(said)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a/b.py", "LAYOUT = 1\n"),
        ("a/b.py", '"""A fault of the client (librdkafka, issue 5301)."""\n'),
        ("docs/a.md", "See [this](a.md), [that](#part), [a folder](../docs) and [a site](https://a.example/b.md).\n"),
        ("docs/a.md", "`[no link](gone.md)`\n"),
    ],
)
def test_given_anything_else_then_it_is_no_reference(tmp_path: Path, name: str, text: str) -> None:
    assert _folder(tmp_path, name, text).places["references"] == []


def test_given_a_wide_cell_then_it_is_named(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "docs/a.md", f"| a | b |\n|---|---|\n| {'x' * 200} | {'y' * 201} |\n")
    assert folder.places["cells"] == ["docs/a.md:3: a table cell has 201 characters; at most 200"]


@pytest.mark.parametrize(
    ("limit", "fault"),
    [
        pytest.param(50.0, None, id="at the limit"),
        pytest.param(49.0, "above its limit of 49", id="above"),
        pytest.param(54.0, None, id="a little below"),
        pytest.param(60.0, "well below its limit of 60; lower the limit with --update", id="well below"),
    ],
)
def test_given_a_limit_then_a_folder_is_near_it(tmp_path: Path, limit: float, fault: str | None) -> None:
    folders = {"docs": _folder(tmp_path, "docs/a.md", f"{LONG}\n\n{PLAIN}\n")}
    found = [*faults({"*": COMMON, "docs": {"md.long": limit}}, folders)]
    assert [fault in each for each in found] == [True] if fault else found == []


def test_given_a_folder_without_a_line_then_the_common_limits_hold(tmp_path: Path) -> None:
    folders = {"docs": _folder(tmp_path, "docs/a.md", f"{LONG}\n\n{PLAIN}\n")}
    (fault,) = faults({"*": COMMON}, folders)
    assert fault.startswith("docs: md.long is 50, above its limit of 12")
    assert "docs/a.md:1: 30 words: The node and" in fault


def test_given_an_update_then_limits_go_down_and_never_up(tmp_path: Path) -> None:
    folders = {"docs": _folder(tmp_path, "docs/a.md", f"{LONG}\n\n{PLAIN}\n")}
    assert lowered({"*": COMMON, "docs": {"md.long": 60.0}}, folders)["docs"] == {"md.long": 50.0}
    assert lowered({"*": COMMON, "docs": {"md.long": 40.0}}, folders)["docs"] == {"md.long": 40.0}
    assert lowered({"*": COMMON, "docs": {"md.riddles": 5.0}}, folders) == {"*": COMMON}, "reached the common limit"
    assert lowered({"*": COMMON, "gone": {"md.long": 40.0}}, folders) == {"*": COMMON}


def test_given_a_table_then_it_is_read_as_it_was_written() -> None:
    limits = {"*": COMMON, "docs": {"md.long": 40.5, "cells": 3}}
    assert read_limits(rendered(limits)) == limits


def test_given_a_change_then_only_its_own_long_subjects_are_named(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "A" * 80)
    git("checkout", "-q", "-b", "change")
    assert long_subjects(tmp_path) == []
    git("commit", "-q", "--allow-empty", "-m", "B" * 72)
    git("commit", "-q", "--allow-empty", "-m", "C" * 73)
    (named,) = long_subjects(tmp_path)
    assert "has 73 characters; at most 72" in named
    git("branch", "-q", "-D", "main")
    git("checkout", "-q", "--detach")
    assert long_subjects(tmp_path) == [], "the history does not say what the change is"


def test_given_no_repository_then_no_subject_is_checked_and_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.md").touch()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "b.md").touch()
    assert long_subjects(tmp_path) == []
    assert files(tmp_path) == ["a.md"]
