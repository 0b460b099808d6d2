"""Real child processes, started by the same guard as in production."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tidegate_cli.dev.child_process import ChildPlan, run_to_end
from tidegate_cli.dev.errors import StackFailed
from tidegate_cli.exit_codes import Exit

PATIENCE_S = 60.0


def plan(tmp_path: Path, source: str, **environment: str) -> ChildPlan:
    return ChildPlan("init", (sys.executable, "-c", source), environment, tmp_path / "init.log")


def test_given_a_child_then_it_gets_its_settings_and_ours_but_not_the_pointers_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_STATE_DIR", "/state")
    monkeypatch.setenv("INHERITED", "yes")
    source = "import os; print([os.environ.get(n) for n in ('GIVEN', 'INHERITED', 'TIDEGATE_STATE_DIR')])"
    run_to_end(plan(tmp_path, source, GIVEN="a b=c"), PATIENCE_S)
    assert (tmp_path / "init.log").read_text() == "['a b=c', 'yes', None]\n"
    assert os.environ["TIDEGATE_STATE_DIR"] == "/state"


def test_given_a_child_that_fails_then_the_error_shows_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(StackFailed) as failed:
        run_to_end(plan(tmp_path, "import sys; print('no map'); sys.exit(78)"), PATIENCE_S)
    assert "init ended with status 78" in failed.value.problem
    assert failed.value.problem.endswith("no map")


@pytest.mark.parametrize(("status", "code"), [(78, Exit.USAGE), (1, Exit.FAILURE), (75, Exit.FAILURE)])
def test_given_a_child_that_refuses_a_setting_then_the_error_counts_as_wrong_input(
    tmp_path: Path, status: int, code: Exit
) -> None:
    """Such as TIDEGATE_LOG__LEVEL=loud, which `tidegate dev` passes on to its nodes."""
    with pytest.raises(StackFailed) as failed:
        run_to_end(plan(tmp_path, f"import sys; print('log.level: no such level'); sys.exit({status})"), PATIENCE_S)
    assert failed.value.code == code
    assert failed.value.problem.endswith("log.level: no such level")


def test_given_a_child_that_hangs_then_it_is_ended(tmp_path: Path) -> None:
    with pytest.raises(StackFailed, match=r"did not end within 0\.1 s"):
        run_to_end(plan(tmp_path, "import time; time.sleep(600)"), 0.1)
