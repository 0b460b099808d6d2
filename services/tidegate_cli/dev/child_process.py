"""A node, the API or `tidegate init` as a child process. It ends with its parent, and its output goes to a log file."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tidegate_bricks.logged_process import LoggedProcess
from tidegate_cli.dev.errors import SettingsWrong, StackFailed

ASK_TIMEOUT_S = 1.0


def is_ready(url: str) -> bool:
    """Whether `GET url` answers 200 within a second."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ASK_TIMEOUT_S)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


NOT_FOR_CHILDREN = ("TIDEGATE_STATE_DIR",)
"""Variables that children do not get: nodes refuse unknown settings. This one names the folder of the pointer file."""

EXIT_CONFIGURATION = 78
"""Exit status of nodes, API and `tidegate init` for a wrong setting (EX_CONFIG)."""

TIDEGATE = (sys.executable, "-P", "-m", "tidegate_cli.main")
"""Command of this installation. `-P`: otherwise a file in the user's current folder could replace one of our modules."""


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """Command, environment and log of a child.

    Attributes:
        name: Name in messages, such as `node-1`.
        command: Program and arguments.
        environment: Variables added to our own. They are on the command line, so secrets are passed in files.
        log: File to which the child's output is appended.
        ready_url: URL that answers 200 once the child is ready.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    ready_url: str = ""


class Child:
    """One child process; after its end it can be started again.

    Args:
        plan: Plan of the first start.
        renewed: Returns the plan of each start, because a port may no longer be free. Raises StackFailed.
    """

    def __init__(self, plan: ChildPlan, renewed: Callable[[], ChildPlan] | None = None) -> None:
        self.plan = plan
        self._renewed = renewed
        self._process: LoggedProcess | None = None

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def log(self) -> Path:
        return self.plan.log

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    @property
    def ready(self) -> bool:
        return self.running and is_ready(self.plan.ready_url)

    @property
    def ending(self) -> str:
        return f"ended with status {self.wait(0)}"

    def start(self) -> None:
        """Starts the child; does not wait until it is ready.

        Raises:
            StackFailed: The process could not be started.
        """
        self.close()
        if self._renewed is not None:
            self.plan = self._renewed()
        forget = [part for name in NOT_FOR_CHILDREN for part in ("-u", name)]
        settings = [f"{name}={value}" for name, value in self.plan.environment.items()]
        try:
            self._process = LoggedProcess(["env", *forget, *settings, *self.plan.command], self.plan.log)
        except OSError as error:
            raise StackFailed(f"{self.name}: {error}") from error

    def terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """Sends SIGKILL, as in a crash."""
        if self._process is not None:
            self._process.kill()

    def wait(self, timeout_s: float) -> int | None:
        """Returns the exit status (128 + n after signal n), or None if the child still runs after `timeout_s`."""
        return self._process.wait(timeout_s) if self._process is not None else 0

    def last_words(self) -> str:
        """Returns the last lines of the child's log."""
        return self._process.last_lines() if self._process is not None else ""

    def close(self) -> None:
        """Kills the child if it still runs. May be called again."""
        if self._process is not None:
            self._process.close()


def ended_early(child: Child, how: str) -> StackFailed:
    """Returns the error for a child that ended or took too long. It has the last lines of the log, which name a refused setting."""
    refused = child.wait(0) == EXIT_CONFIGURATION
    kind = SettingsWrong if refused else StackFailed
    return kind(f"{child.name} {how}; its log {child.log} ends with:\n{child.last_words()}")


def run_to_end(plan: ChildPlan, timeout_s: float) -> None:
    """Runs a child until it ends.

    Raises:
        SettingsWrong: The child refuses a setting.
        StackFailed: The child failed for another reason, or took longer than `timeout_s`.
    """
    child = Child(plan)
    child.start()
    try:
        status = child.wait(timeout_s)
        if status != 0:
            how = f"did not end within {timeout_s:g} s" if status is None else f"ended with status {status}"
            raise ended_early(child, how)
    finally:
        child.close()
