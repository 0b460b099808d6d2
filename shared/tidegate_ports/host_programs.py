"""The programs of a host whose node ends, where they cannot outlive it."""

from __future__ import annotations

from typing import Protocol


class HostPrograms(Protocol):
    """What attempts of this host live, whichever of its nodes started them. All methods block for some ten milliseconds."""

    def under_way(self) -> int:
        """Returns how many attempts have not ended.

        Raises:
            OSError: The host does not tell.
        """
        ...

    def ask_to_end(self) -> int:
        """Sends SIGTERM to them, and returns how many there were.

        Raises:
            OSError: The host does not tell.
        """
        ...
