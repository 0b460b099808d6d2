"""Says once a minute how far a run is, where no terminal shows it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Final

import pytest
from _pytest.terminal import TerminalReporter

PERIOD_S: Final = 60.0


class Progress:
    """A line a minute: minutes since the start, tests that ended, tests that failed, and the one that ended last.

    Only for the process that deals tests out: in one that runs them the line would land in a test's captured output.
    """

    def __init__(self, reporter: TerminalReporter) -> None:
        self._reporter = reporter
        self._started = time.monotonic()
        self._ended: Counter[str] = Counter()
        self._last = ""
        self._stop = threading.Event()
        threading.Thread(target=self._print_lines, daemon=True).start()

    @property
    def line(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        failed = self._ended["failed"]
        return f"[{minutes:02}:{seconds:02}] {self._ended.total()} tests ended, {failed} failed; last: {self._last}"

    def pytest_sessionfinish(self) -> None:
        self._stop.set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._ended[report.outcome] += 1
            self._last = report.nodeid

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Leaves the dot of a passed test out; a failure still shows its letter."""
        if report.passed:
            return ("passed" if report.when == "call" else "", "", "")
        return None

    def _print_lines(self) -> None:
        while not self._stop.wait(PERIOD_S):
            self._reporter.ensure_newline()
            self._reporter.write_line(self.line)
            self._reporter.flush()
