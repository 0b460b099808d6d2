"""A way over TCP that can be cut, in one direction or in both, as a network is: silently, and with what was sent still coming.

A cut network keeps what was sent: the sender's kernel repeats it until the way is open again, also when the program has given
up and closed long before. So a cut that ends with `deliver` hands late what it held, and a store sees a write whose sender is
gone; one that ends with `lose` resets the connections that it held something of. A connection that is opened during a cut never
comes about: it is kept in silence, and reset at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Collection
from typing import Literal, TypeAlias, get_args

from tests.chaos.proxies.connections import LOOPBACK, Listener, close, reset

Direction: TypeAlias = Literal["to_server", "to_client"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
Ending: TypeAlias = Literal["deliver", "lose"]
Count: TypeAlias = Literal["connections", "refused", "stalled", "reset", "held_to_server", "held_to_client"]
"""`refused`: the server was not there. `stalled`: opened during a cut. `reset`: at the end of one that loses. The last two: pieces
of a stream that waited."""
PIECE_BYTES = 64 * 1024


class CutRefused(ValueError):
    """There is no such direction or ending."""


class Link:
    """One way from a client to a server.

    Attributes:
        counts: What happened on it.
    """

    def __init__(self, upstream_port: int, port: int = 0) -> None:
        self.counts: Counter[Count] = Counter()
        self._upstream_port = upstream_port
        self._open = {direction: asyncio.Event() for direction in DIRECTIONS}
        for event in self._open.values():
            event.set()
        self._ending: Ending = "deliver"
        self._listener = Listener(self._serve, port)
        self._connections: set[_Connection] = set()

    @property
    def cut_directions(self) -> list[Direction]:
        return [direction for direction in DIRECTIONS if not self._open[direction].is_set()]

    @property
    def port(self) -> int:
        """Where it listens, once started."""
        return self._listener.port

    async def start(self) -> None:
        await self._listener.start()

    async def close(self) -> None:
        """Ends everything that is under way."""
        await self._listener.close()

    def cut(self, directions: Collection[str], ending: str = "deliver") -> None:
        """Cuts those directions and opens the others; none opens all.

        Args:
            directions: `to_server`, `to_client`.
            ending: What becomes of what is held: of this cut, when it ends.

        Raises:
            CutRefused: A word is unknown.
        """
        unknown = set(directions) - set(DIRECTIONS)
        if unknown or ending not in get_args(Ending):
            raise CutRefused(f"directions are {', '.join(DIRECTIONS)}, endings {', '.join(get_args(Ending))}")
        if not directions:
            self._end()
        for direction in DIRECTIONS:
            if direction in directions:
                self._open[direction].clear()
            else:
                self._open[direction].set()
        self._ending = "lose" if ending == "lose" else "deliver"

    def _end(self) -> None:
        for connection in list(self._connections):
            if connection.stalled or (connection.held and self._ending == "lose"):
                self.counts["reset"] += 1
                connection.task.cancel()
            connection.held = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = _Connection(task)
        self._connections.add(connection)
        self.counts["connections"] += 1
        try:
            await self._carry(connection, reader, writer)
        except (OSError, asyncio.CancelledError):
            reset(writer)
        finally:
            self._connections.discard(connection)

    async def _carry(self, connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.cut_directions:
            connection.stalled = True
            self.counts["stalled"] += 1
            await asyncio.Event().wait()  # The end of the cut cancels it.
        try:
            from_server, to_server = await asyncio.open_connection(LOOPBACK, self._upstream_port)
        except OSError:
            self.counts["refused"] += 1
            raise
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(connection, reader, to_server, "to_server"))
                pumps.create_task(self._pump(connection, from_server, writer, "to_client"))
        except* OSError as broken:
            raise ConnectionResetError("one side is gone") from broken
        finally:
            await close(to_server)

    async def _pump(
        self,
        connection: _Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        direction: Direction,
    ) -> None:
        """Carries one direction to its end, which it hands on like any other piece."""
        gate = self._open[direction]
        while True:
            piece = await reader.read(PIECE_BYTES)
            if not gate.is_set():
                connection.held = True
                self.counts["held_to_server" if direction == "to_server" else "held_to_client"] += 1
                await gate.wait()
            if not piece:
                with contextlib.suppress(OSError, RuntimeError):
                    writer.write_eof()
                return
            writer.write(piece)
            await writer.drain()


class _Connection:
    """One connection and what the cut did to it."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self.task = task
        self.held = False
        self.stalled = False
