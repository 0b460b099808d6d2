"""Chooses TCP ports for servers on this machine: the usual ones if they are free, otherwise others.

A port is free only until another process takes it, so callers must handle a server that cannot bind.
"""

import contextlib
import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
ALL_INTERFACES = "0.0.0.0"  # noqa: S104 - only asked whether a port is free, never listened on

#: Below the range from which Linux (32768) and macOS (49152) take ports of outgoing connections. Inside that range, a client that
#: retries a stopped server will some day connect to itself, and then the server cannot restart.
PORT_FIRST = 20_000
PORT_LAST = 32_000
#: Most tries; with 12,000 ports to choose from, even a crowded machine needs two or three.
TRIES_MAX = 200
#: State of a listening socket in Linux's tables.
TCP_LISTEN = "0A"


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen on `port` of `host` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers set this option: connections of an earlier server in TIME_WAIT do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def free_port(preferred: int | None = None, host: str = LOOPBACK, avoid: frozenset[int] = frozenset()) -> int:
    """Returns a free port: `preferred` if possible, else a random one outside the ephemeral range.

    Args:
        preferred: Port to take if it is free.
        host: Address on which the server will listen.
        avoid: Ports that are reserved, although no server listens on them yet.

    Raises:
        OSError: No free port was found in `TRIES_MAX` tries.
    """
    if preferred is not None and preferred not in avoid and is_free(preferred, host):
        return preferred
    for _ in range(TRIES_MAX):
        # Random and not ascending: two processes that start at once must not race for the same ports.
        port = random.randrange(PORT_FIRST, PORT_LAST)  # noqa: S311 - spreads load, guards no secret
        if port not in avoid and is_free(port, host):
            return port
    raise OSError(f"no free port between {PORT_FIRST} and {PORT_LAST} in {TRIES_MAX} tries")


def listens(pid: int, port: int) -> bool:
    """Whether the process `pid` itself listens on `port`, and not another process.

    Linux only: without `/proc` the answer is always yes.
    """
    process = Path(f"/proc/{pid}")
    if not Path("/proc/self/net/tcp").exists():
        return True
    try:
        tables = [(process / "net" / name).read_text(encoding="ascii") for name in ("tcp", "tcp6")]
        descriptors = list((process / "fd").iterdir())
    except OSError:  # the process has ended
        return False
    sockets: set[str] = set()
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # closed since the listing
            sockets.add(str(descriptor.readlink()))
    return any(f"socket:[{inode}]" in sockets for table in tables for inode in _listening(table, port))


def _listening(table: str, port: int) -> list[str]:
    """Returns the inodes of the sockets in a `/proc/…/net/tcp` table that listen on `port`."""
    rows = [line.split() for line in table.splitlines()[1:]]
    # Columns: 1 local address and port in hex, 3 state, 9 inode.
    return [row[9] for row in rows if row[3] == TCP_LISTEN and int(row[1].rpartition(":")[2], 16) == port]
