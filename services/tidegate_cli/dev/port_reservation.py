"""Ports that a stack has chosen: from then on no other stack of this machine takes them, though nobody listens there yet.

Between the choice of the API's port and its bind lies the start of everything else, half a minute on a busy machine.
"""

from __future__ import annotations

import socket
import sys

from tidegate_cli.dev.child_environment import choose_port


class SpokenPorts:
    """Holds a name for each port, which the kernel frees with this process. Linux only: elsewhere a port is what it is free for."""

    def __init__(self) -> None:
        self._names: dict[int, socket.socket | None] = {}

    def choose(self, usual: int) -> int:
        """Returns the usual port where it is free and nobody's, else a random one; none twice.

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
        """Gives all of them up. May be called again."""
        for name in self._names.values():
            if name is not None:
                name.close()
        self._names.clear()


def _held_name(port: int) -> socket.socket | None:
    """Returns what holds the port's name among the sockets that have no file; they are as wide as ports are. Raises OSError: taken."""
    if sys.platform != "linux":
        return None
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(f"\0tidegate-dev-port-{port}")
    except OSError:
        name.close()
        raise
    return name
