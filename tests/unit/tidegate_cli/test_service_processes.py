"""A process of ours is loaded without a look for cycles, and then collects as usual."""

import gc
import sys
from pathlib import Path

import pytest
import typer

from tidegate_cli.service_processes import become

MODULE = """
import gc
during = gc.isenabled()
def run(status):
    return status if gc.isenabled() and not during else 99
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module that is not imported yet, empty."""
    name = "a_process_of_ours"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path / f"{name}.py"


def test_given_a_process_then_it_is_loaded_without_collections_and_runs_with_them(module: Path) -> None:
    module.write_text(MODULE)
    with pytest.raises(typer.Exit) as ended:
        become(f"{module.stem}:run", status=3)
    assert ended.value.exit_code == 3


def test_given_a_module_that_cannot_be_loaded_then_collections_go_on(module: Path) -> None:
    module.write_text("raise LookupError")
    with pytest.raises(LookupError):
        become(f"{module.stem}:run")
    assert gc.isenabled()
