"""A line a minute says how far a run is; passed tests leave no dot."""

from __future__ import annotations

import io

import pytest
from _pytest.terminal import TerminalReporter

from tests.support.suite import progress
from tests.support.suite.progress import Progress


def a_report(outcome: str, when: str = "call") -> pytest.TestReport:
    return pytest.TestReport("tests/unit/test_x.py::test_y", ("", 0, ""), {}, outcome, None, when)  # type: ignore[arg-type]  # plain words


def test_given_a_run_then_lines_name_counts_and_the_last_test(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PERIOD_S", 0.01)
    printed = io.StringIO()
    reporter = TerminalReporter(request.config, printed)
    running = Progress(reporter)
    for outcome in ("passed", "failed", "passed"):
        running.pytest_runtest_logreport(a_report(outcome))
    running.pytest_runtest_logreport(a_report("passed", when="teardown"))
    while "3 tests ended, 1 failed; last: tests/unit/test_x.py::test_y" not in printed.getvalue():
        pass
    running.pytest_sessionfinish()


@pytest.mark.parametrize(("outcome", "shown"), [("passed", ("passed", "", "")), ("failed", None)])
def test_given_an_outcome_then_only_failures_leave_a_letter(
    request: pytest.FixtureRequest, outcome: str, shown: tuple[str, str, str] | None
) -> None:
    running = Progress(TerminalReporter(request.config, io.StringIO()))
    assert running.pytest_report_teststatus(a_report(outcome)) == shown
    running.pytest_sessionfinish()
