"""The programs of a host whose node ends, where they cannot outlive it."""

from __future__ import annotations

from typing import Protocol


class HostPrograms(Protocol):
    """What attempts of this host live, whichever of its nodes started them. All methods block for some ten milliseconds."""

    def under_way(self) -> int:
        """Returns how many attempts have not ended, those included that are just being started.

        Raises:
            OSError: The host does not tell.
        """
        ...

    def ask_to_end(self) -> None:
        """Sends SIGTERM to them, to each once however often this is called: one that comes in the middle of what a program does about the
        first one would cut that off.

        Raises:
            OSError: The host does not tell.
        """
        ...
