"""What every local brick can do: the one interface that `tidegate dev`, the demo and the tests use."""

from pathlib import Path
from typing import Protocol

#: A warm start takes 1 to 2 s on an idle machine (measured); this is for one that is busy with everything else. Seconds.
START_TIMEOUT_S = 60.0
#: How long a server may take to end in order before it is killed. Kafka needs 0.3 s, DynamoDB Local as much (measured).
STOP_TIMEOUT_S = 15.0


class Brick(Protocol):
    """A server on this machine, which lives no longer than the process that started it.

    All calls block and may come from any thread. `stop` and `kill` end a start that is under way, downloads included.
    """

    @property
    def name(self) -> str:
        """Name and version, for instance `kafka-4.1.1`."""

    @property
    def endpoint(self) -> str:
        """Where clients connect; the same after every further start.

        Raises:
            BrickFailed: It was never started, so its port is not chosen yet.
        """

    @property
    def log_path(self) -> Path:
        """What the server printed, this start's output last."""

    @property
    def note(self) -> str | None:
        """What a user should know about how it listens, for printing; None where there is nothing to say."""

    @property
    def running(self) -> bool:
        """Whether the process lives; also while it is paused."""

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Starts the server and returns once it answers a client. Does nothing where it runs already.

        Args:
            timeout_s: How long the server may take to answer; a download before that has limits of its own.

        Raises:
            BrickUnavailable: The machine lacks something, or the data folder is in use.
            BrickFailed: It ended, did not answer in time (the error shows the end of its log), or was stopped meanwhile.
            PortTaken: A port that was asked for, or that an earlier start had, belongs to somebody else now.
        """

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ends the server in order, kills it after `timeout_s`. Does nothing where it does not run."""

    def kill(self) -> None:
        """Ends the server at once (SIGKILL), as a crash would."""

    def pause(self) -> None:
        """Freezes the server (SIGSTOP): connections stay open and nothing answers."""

    def resume(self) -> None:
        """Lets a paused server go on (SIGCONT)."""
