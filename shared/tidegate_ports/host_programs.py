"""Port to the programs of a host whose node ends, for hosts where they cannot outlive the node."""

from __future__ import annotations

from typing import Protocol


class HostPrograms(Protocol):
    """Living attempts of this host, whichever of its nodes started them. All methods block for some ten
    milliseconds.
    """

    def under_way(self) -> int:
        """Returns the number of attempts that have not ended, including those being started.

        Raises:
            OSError: The host does not list its processes.
        """
        ...

    def ask_to_end(self) -> None:
        """Sends SIGTERM to each attempt once, however often this is called. A second SIGTERM would interrupt the
        program's reaction to the first.

        Raises:
            OSError: The host does not list its processes.
        """
        ...
