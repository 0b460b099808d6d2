"""A node, the API or `tidegate init` as a child process that cannot outlive us, writing to a log."""

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
"""Says where this command puts its pointer file. Nodes refuse settings that they do not know."""

EXIT_CONFIGURATION = 78
"""How nodes, the API and `tidegate init` end where a setting is wrong (EX_CONFIG)."""

TIDEGATE = (sys.executable, "-P", "-m", "tidegate_cli.main")
"""The command of this very installation. `-P`: a file of the user's current folder must not replace a module of ours."""


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """How to start a child.

    Attributes:
        name: For people, such as `node-1`.
        command: Program and arguments.
        environment: Added to our own. Not secret: it stands on the command line; secrets go by file.
        log: What it prints is appended here.
        ready_url: Answers 200 once the child is ready.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    ready_url: str = ""


class Child:
    """One child process; after its end it can be started again.

    Args:
        plan: How to start it.
        renewed: Asked before each start: what was free for the last one may be somebody else's by now. Raises StackFailed.
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
        """Starts it; does not wait until it is ready.

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
        """SIGKILL: what a crash would do."""
        if self._process is not None:
            self._process.kill()

    def wait(self, timeout_s: float) -> int | None:
        """Returns the exit status (128 + n after signal n), or None where it still runs after `timeout_s`."""
        return self._process.wait(timeout_s) if self._process is not None else 0

    def last_words(self) -> str:
        """Returns the last lines of its log."""
        return self._process.last_lines() if self._process is not None else ""

    def close(self) -> None:
        """Ends it at once where it still runs. May be called again."""
        if self._process is not None:
            self._process.close()


def ended_early(child: Child, how: str) -> StackFailed:
    """Returns the error of a child that ended, or took too long, with the last lines of its log: they name a setting that it refuses."""
    refused = child.wait(0) == EXIT_CONFIGURATION
    kind = SettingsWrong if refused else StackFailed
    return kind(f"{child.name} {how}; its log {child.log} ends with:\n{child.last_words()}")


def run_to_end(plan: ChildPlan, timeout_s: float) -> None:
    """Runs a child that ends by itself.

    Raises:
        SettingsWrong: It refuses a setting.
        StackFailed: It failed otherwise, or took longer than `timeout_s`.
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
