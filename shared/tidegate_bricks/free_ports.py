"""Chooses TCP ports for servers on this machine: the usual ones where they are free, else others.

A port is free only until somebody takes it, so callers must still be ready for a server that cannot bind.
"""

import contextlib
import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
ALL_INTERFACES = "0.0.0.0"  # noqa: S104 - only asked whether a port is free, never listened on

#: Below the range from which Linux (32768) and macOS (49152) take ports of outgoing connections. A client that retries a
#: stopped server on a port inside that range will some day connect to itself, and then the server cannot come back.
PORT_FIRST = 20_000
PORT_LAST = 32_000
#: Tries before giving up; with 12,000 ports to choose from, even a crowded machine needs two or three.
TRIES_MAX = 200
#: The state of a listening socket in Linux's tables.
TCP_LISTEN = "0A"


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen on `port` of `host` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: connections of an earlier server that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def free_port(preferred: int | None = None, host: str = LOOPBACK, avoid: frozenset[int] = frozenset()) -> int:
    """Returns a free port: `preferred` where possible, else a random one outside of the ephemeral range.

    Args:
        preferred: Taken when it is free.
        host: Address on which the server will listen.
        avoid: Ports that are spoken for, though nobody listens on them yet.

    Raises:
        OSError: No free port was found in `TRIES_MAX` tries.
    """
    if preferred is not None and preferred not in avoid and is_free(preferred, host):
        return preferred
    for _ in range(TRIES_MAX):
        # Random and not upwards from the first: two processes that start at once must not race for the same ones.
        port = random.randrange(PORT_FIRST, PORT_LAST)  # noqa: S311 - spreads load, guards no secret
        if port not in avoid and is_free(port, host):
            return port
    raise OSError(f"no free port between {PORT_FIRST} and {PORT_LAST} in {TRIES_MAX} tries")


def listens(pid: int, port: int) -> bool:
    """Whether the process `pid` itself listens on `port`, and not somebody else who was quicker.

    Linux only: where there is no `/proc`, the answer is always yes.
    """
    process = Path(f"/proc/{pid}")
    if not Path("/proc/self/net/tcp").exists():
        return True
    try:
        tables = [(process / "net" / name).read_text(encoding="ascii") for name in ("tcp", "tcp6")]
        descriptors = list((process / "fd").iterdir())
    except OSError:  # it has ended
        return False
    sockets: set[str] = set()
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # it was closed while we looked
            sockets.add(str(descriptor.readlink()))
    return any(f"socket:[{inode}]" in sockets for table in tables for inode in _listening(table, port))


def _listening(table: str, port: int) -> list[str]:
    """Returns the inodes of the sockets in a `/proc/…/net/tcp` table that listen on `port`."""
    rows = [line.split() for line in table.splitlines()[1:]]
    # Columns: 1 local address and port in hex, 3 state, 9 inode.
    return [row[9] for row in rows if row[3] == TCP_LISTEN and int(row[1].rpartition(":")[2], 16) == port]
