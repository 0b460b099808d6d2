"""Reserves ports for a stack before its processes listen on them, so that no other stack of this machine takes them.

The API's port is chosen up to half a minute before the API binds it, because everything is started in between.
"""

from __future__ import annotations

import socket
import sys

from tidegate_cli.dev.child_environment import choose_port


class PortReservations:
    """Reserves ports by names that the kernel frees when this process ends. Only Linux has them; elsewhere nothing is reserved."""

    def __init__(self) -> None:
        self._names: dict[int, socket.socket | None] = {}

    def choose(self, usual: int) -> int:
        """Returns the usual port if it is free and not reserved, otherwise a random free port. It returns no port twice.

        Raises:
            StackFailed: There is no free port.
        """
        others: set[int] = set()
        while True:
            port = choose_port(usual, frozenset(others | self._names.keys()))
            try:
                self._names[port] = _held_name(port)
            except OSError:
                others.add(port)
            else:
                return port

    def release(self) -> None:
        """Releases all ports. May be called again."""
        for name in self._names.values():
            if name is not None:
                name.close()
        self._names.clear()


def _held_name(port: int) -> socket.socket | None:
    """Returns a socket that holds the port's name, as an abstract Unix socket. Raises OSError if another stack holds the name."""
    if sys.platform != "linux":
        return None
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(f"\0tidegate-dev-port-{port}")
    except OSError:
        name.close()
        raise
    return name
