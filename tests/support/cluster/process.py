"""One process of the cluster: started, killed and asked like an operator would."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.support.cluster.logged_events import LoggedEvents
from tests.support.cluster.until import PATIENCE_S, NotInTime, until
from tidegate_bricks.logged_process import LoggedProcess

TIDEGATE = (sys.executable, "-P", "-m", "tidegate_cli.main")
"""The command of this installation; `-P` keeps the current folder's files from replacing modules."""
OWN_VARIABLES = "TIDEGATE_"
ASK_TIMEOUT_S = 2.0
"""A page of a process that is gone, or too busy to answer."""
KILLED = 128 + 9
"""Exit status of a process that SIGKILL ended."""
LOG_LINES_SHOWN = 20


class ClusterProcess:
    """A `tidegate` process with a log and a port of its own; after its end it can be started again.

    Attributes:
        name: Such as `node-1`.
        url: Where its pages are.
        log: What its lives printed; what is older lies beside it once it has grown large.
        lives: How often it was started.
    """

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path, url: str):
        self.name = name
        self.url = url
        self.log = log
        self.lives = 0
        self._command = ("env", *(f"{key}={value}" for key, value in environment.items()), *command)
        self._process: LoggedProcess | None = None
        self._said = LoggedEvents(log)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    def start(self) -> None:
        """Starts it; does not wait until it is ready."""
        self.close()
        self._said.set_aside()
        self._process = LoggedProcess(self._command, self.log)
        self.lives += 1

    def kill(self) -> None:
        """SIGKILL, and waits until the process is really gone."""
        assert self._process is not None
        self._process.kill()
        assert self._process.wait(PATIENCE_S) == KILLED, f"{self.name} had ended before it was killed"

    def terminate(self) -> None:
        """SIGTERM: it drains and ends by itself; `wait` says how."""
        self._living().terminate()

    def pause(self) -> None:
        """SIGSTOP: it stands still until `resume`."""
        self._living().pause()

    def resume(self) -> None:
        """SIGCONT."""
        self._living().resume()

    def wait(self, timeout_s: float = PATIENCE_S) -> int | None:
        """Returns the exit status, or None where it still runs after `timeout_s`."""
        assert self._process is not None
        return self._process.wait(timeout_s)

    def close(self) -> None:
        """Ends it at once where it still runs. May be called again."""
        if self._process is not None:
            self._process.close()

    def _living(self) -> LoggedProcess:
        assert self._process is not None, f"{self.name} was not started"
        assert self._process.running, f"{self.name} ended by itself:\n{self.last_lines()}"
        return self._process

    # -- pages --------------------------------------------------------------------------------------------------------

    def ask(self, path: str) -> tuple[int, str]:
        """Returns status and text of a page; status 0 when nothing answers, or the process ends in the middle of its answer."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=ASK_TIMEOUT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()
        except (OSError, HTTPException):
            return 0, ""

    @property
    def ready(self) -> bool:
        return self.ask("/readyz")[0] == 200

    def metric(self, name: str, **labels: str) -> float:
        """Returns the sum of a metric over all samples with those labels; 0 when nothing answers."""
        return metric_on(self.ask("/metrics")[1], name, **labels)

    @property
    def serving_shards(self) -> int:
        return int(self.metric("tidegate_serving_shards"))

    def until_ready(self, patience_s: float = PATIENCE_S) -> None:
        """Waits until it is ready; fails with its reasons and its last words, and at once when it ends instead."""

        def ready() -> bool:
            assert self.running, f"{self.name} ended:\n{self.last_lines()}"
            return self.ready

        try:
            until(ready, f"{self.name} is ready", patience_s)
        except NotInTime as late:
            raise NotInTime(f"{late}; it says {self.ask('/readyz')}:\n{self.last_lines()}") from None

    # -- logs ---------------------------------------------------------------------------------------------------------

    def events(self, name: str) -> list[Mapping[str, Any]]:
        """Returns the logged events of that name, of all lives."""
        return self._said.of(name)

    def last_lines(self) -> str:
        """Returns the end of its log, for a person."""
        if not self.log.exists():
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])


def metric_on(page: str, name: str, **labels: str) -> float:
    """Returns the sum of a metric over all samples of a page with those labels; 0 where there are none."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    lines = [line for line in page.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
    return sum(float(line.rpartition(" ")[2]) for line in lines if all(label in line for label in wanted))
