"""Errors of local bricks; each says what happened and what to do next."""

from pathlib import Path


class BrickUnavailable(Exception):
    """The machine lacks something that a local brick needs, and the user can provide it.

    Attributes:
        what: Missing or obstructing thing, as a clause without a full stop.
        remedy: Action for the user.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what
        self.remedy = remedy


class BrickFailed(Exception):
    """A server did not start, or is not in the state that a call needs.

    Attributes:
        what: What happened to which brick.
        log_path: Log of the server; None before it has one.
    """

    def __init__(self, what: str, log_path: Path | None = None, log_tail: str = "") -> None:
        parts = [what]
        if log_path is not None:
            parts.append(f"its log is {log_path}")
        message = "; ".join(parts)
        super().__init__(f"{message}, which ends with:\n{log_tail}" if log_tail else message)
        self.what = what
        self.log_path = log_path


class PortTaken(BrickFailed):
    """Another process listens on the port. If the caller did not require this port, another one is tried."""
