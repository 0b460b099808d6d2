"""Lines, the table and the comparison."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.rig.result_table import shown, table
from tests.benchmarks.rig.results import Result, result_from, revision_of
from tests.benchmarks.rig.revision_comparison import NoSuchRevision, compared, worktree_of

RESULT = Result(
    workload="W1",
    case="keyed",
    size="full",
    at="2026-03-03T10:00:00+00:00",
    revision="abc",
    cores=2,
    load_before=3.5,
    load_after=4.0,
    seconds=80.1,
    parameters={"messages": 20_000},
    figures={"late_p50_ms": 4.21, "write_units_each": None, "missing": 0.0},
)


def with_p50(milliseconds: float) -> Result:
    return replace(RESULT, figures={"late_p50_ms": milliseconds, "missing": 0.0})


def test_given_a_result_then_its_line_brings_it_back() -> None:
    assert result_from(RESULT.line()) == RESULT


def test_given_results_then_the_table_has_a_cell_for_each_head() -> None:
    lines = table([RESULT])
    head, _, row = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    cells = dict(zip(head, row, strict=True))
    assert cells["workload"] == "W1 keyed"
    assert (cells["late p50 ms"], cells["write units each"], cells["p99 ms"]) == ("4.21", "-", "-")
    assert (cells["more"], cells["load"], cells["revision"]) == ("missing 0", "3.5 to 4", "abc")


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0.0, "0"), (0.01234, "0.0123"), (99.95, "100"), (12_345.6, "12,346")]
)
def test_given_a_figure_then_it_has_three_digits(value: float | None, text: str) -> None:
    assert shown(value) == text


def test_given_two_revisions_then_medians_are_compared_and_nothing_is_divided_by_nothing() -> None:
    lines = compared([with_p50(10.0), with_p50(30.0)], [with_p50(5.0), with_p50(5.0)])
    assert lines[2:] == ["| W1 keyed | late_p50_ms | 20 | 5 | 0.25 |", "| W1 keyed | missing | 0 | 0 | - |"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    for text in ("old", "new"):
        (tree / "file").write_text(text)
        _git(tree, "init", "-q")
        _git(tree, "add", "file")
        _git(tree, "-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qm", text)
    return tree


def test_given_a_revision_then_its_files_lie_in_a_worktree_that_goes_again(repository: Path) -> None:
    with worktree_of(repository, "HEAD~1") as base:
        assert (base / "file").read_text() == "old"
        assert revision_of(base) != revision_of(repository)
    assert not base.exists()
    assert (repository / "file").read_text() == "new"
    assert len(_git(repository, "worktree", "list").splitlines()) == 1


def test_given_a_changed_tree_then_its_revision_says_so(repository: Path) -> None:
    clean = revision_of(repository)
    (repository / "file").write_text("newer")
    assert revision_of(repository) == f"{clean}+"


def test_given_a_revision_that_is_not_there_then_the_error_names_it(repository: Path) -> None:
    with pytest.raises(NoSuchRevision, match="v9"), worktree_of(repository, "v9"):
        pass


def test_given_a_name_that_is_no_workload_then_the_command_says_which_there_are(
    capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    with pytest.raises(SystemExit):
        main(["W99", "--folder", str(root / "tests" / "benchmarks" / "workloads")])
    assert "W99" in (said := capsys.readouterr().err)
    assert "W1" in said


def test_given_lines_then_they_are_shown_without_measuring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text(RESULT.line() + "\n")
    assert main(["--show", str(file)]) == 0
    assert "| W1 keyed |" in capsys.readouterr().out


def _git(tree: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(tree), *arguments], check=True, capture_output=True, text=True).stdout
