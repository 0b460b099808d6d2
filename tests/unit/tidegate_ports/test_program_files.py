"""The look at a program's file that an apply and its dry run share."""

from __future__ import annotations

from pathlib import Path

from tidegate_ports.program_files import problem_with


def test_given_file_that_can_be_read_then_no_problem(tmp_path: Path) -> None:
    (tmp_path / "land.py").write_text("")
    assert problem_with(str(tmp_path / "land.py"), "this host") is None


def test_given_no_file_a_folder_or_a_relative_path_then_what_is_wrong_is_named(tmp_path: Path) -> None:
    assert problem_with("jobs/land.py", "this host") == "jobs/land.py is not an absolute path"
    for path in (tmp_path, tmp_path / "none.py"):
        assert problem_with(str(path), "this host") == f"{path} does not exist on this host, or is no file"


def test_given_a_name_that_no_file_can_have_then_it_is_a_problem_and_no_error() -> None:
    found = problem_with("/" + "x" * 1_000, "this host")
    assert found is not None
    assert "x cannot be looked at" in found or "does not exist" in found
