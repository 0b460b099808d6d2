"""Interface of all local bricks, for `tidegate dev`, the demo and the tests."""

from pathlib import Path
from typing import Protocol

#: Seconds. A warm start takes 1 to 2 s on an idle machine (measured); this allows for a very busy one.
START_TIMEOUT_S = 60.0
#: Seconds until a stopping server is killed. Kafka needs 0.3 s, DynamoDB Local as much (measured).
STOP_TIMEOUT_S = 15.0


class Brick(Protocol):
    """A server on this machine that lives no longer than the process that started it.

    All calls block and may come from any thread. `stop` and `kill` also end a start in progress, downloads included.
    """

    @property
    def name(self) -> str:
        """Name and version, for instance `kafka-4.1.1`."""

    @property
    def endpoint(self) -> str:
        """Address for clients; the same after every restart.

        Raises:
            BrickFailed: It was never started, so its port is not chosen yet.
        """

    @property
    def log_path(self) -> Path:
        """Log of the server, with the output of the newest start last."""

    @property
    def note(self) -> str | None:
        """Remark for users about how it listens, or None."""

    @property
    def running(self) -> bool:
        """Whether the process lives; also while it is paused."""

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Starts the server and returns once it answers a client. Does nothing if it runs already.

        Args:
            timeout_s: Time for the server to answer; a download before that has its own limits.

        Raises:
            BrickUnavailable: The machine lacks something, or the data folder is in use.
            BrickFailed: It ended, did not answer in time (the error shows the end of its log), or was stopped during
                the start.
            PortTaken: Another process has the required port, or the port of an earlier start.
        """

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ends the server in order, and kills it after `timeout_s`. Does nothing if it does not run."""

    def kill(self) -> None:
        """Ends the server at once (SIGKILL), as a crash would."""

    def pause(self) -> None:
        """Freezes the server (SIGSTOP): connections stay open and get no answers."""

    def resume(self) -> None:
        """Continues a paused server (SIGCONT)."""
