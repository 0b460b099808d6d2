"""Waits for a server that was just started, until it answers or has failed."""

import time
from collections.abc import Callable

from tidegate_bricks.errors import BrickFailed, PortTaken
from tidegate_bricks.free_ports import listens
from tidegate_bricks.logged_process import LoggedProcess

#: Seconds between two checks whether a starting server answers.
READY_POLL_INTERVAL_S = 0.05
#: Text that both servers print when another process listens on their port.
PORT_TAKEN_WORDS = "Address already in use"


def launch(
    title: str, process: LoggedProcess, port: int, answers: Callable[[], bool], deadline: float
) -> LoggedProcess:
    """Returns the process once it answers; in all other cases ends it.

    Args:
        title: Name of the server in messages.
        process: The server, just started.
        port: Port of the server; an answer counts only if this process listens there.
        answers: Queries the server as a client would; an exception of it ends the wait.
        deadline: Deadline on the monotonic clock, in seconds.

    Raises:
        PortTaken: The server ended because another process listens on its port.
        BrickFailed: It ended for another reason, or did not answer until the deadline.
    """
    try:
        while not (answers() and listens(process.pid, port)):
            if not process.running:
                raise _failure(title, process, f"ended with status {process.wait()}")
            if time.monotonic() >= deadline:
                raise _failure(title, process, "did not answer in time")
            time.sleep(READY_POLL_INTERVAL_S)
    except BaseException:
        process.close()
        raise
    return process


def _failure(title: str, process: LoggedProcess, what: str) -> BrickFailed:
    tail = process.last_lines()
    kind = PortTaken if PORT_TAKEN_WORDS in tail else BrickFailed
    return kind(f"{title} {what}", process.log_path, tail)
