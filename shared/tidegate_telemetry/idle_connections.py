"""Connections on which nobody asks for anything, or takes what was answered. Used by whoever listens, the API and the nodes' health, who hand the protocol to their server."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S_MAX: Final = 30.0
"""For the head of a request, from the connection's begin or the answer before. Above the 5 s behind which the server itself closes a
connection on which nothing at all follows an answer."""


TAKEN_S_MAX: Final = 30.0
"""For any more of an answer to be taken by its client, however slowly it takes all of it."""


ALIVE: Final = "/livez"
"""Where both services say that they live."""


class ImpatientProtocol(H11Protocol):
    """Closes a connection on which no whole head of a request comes, or whose client takes nothing more of an answer.

    The server waits for one for as long as the connection stands, and one whose client has gone without a word stands for good. In the end
    they are as many as the API's `connections_max`, and everybody is answered 503, programs at the start gate as well; of a node's health they
    are as many as its process may have descriptors, and it opens no connection to broker or store any more.
    """

    _patience: asyncio.TimerHandle | None = None
    _unsent: int = sys.maxsize
    """Bytes of answers that had not been taken at the last look."""
    _limit_concurrency: int | None = None

    @property
    def limit_concurrency(self) -> int | None:
        """Beyond so many connections the server answers 503 instead of asking the application; it looks here at each request. Not where whoever
        restarts a process that says nothing asks whether this one lives: an end would take along what all the others were promised.
        """
        return None if self.scope["path"] == ALIVE else self._limit_concurrency

    @limit_concurrency.setter
    def limit_concurrency(self, limit: int | None) -> None:
        self._limit_concurrency = limit

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the server has it
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_head()

    def _await_head(self) -> None:
        self._stop_waiting()
        self._unsent = sys.maxsize
        self._patience = self.loop.call_later(HEAD_S_MAX, self._close_unless_asked)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def _close_unless_asked(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent >= self._unsent:
            # Closing it would wait for the client, and so does the server with the answer to a request that came meanwhile.
            self.transport.abort()
        elif unsent:
            self._unsent = unsent
            self._patience = self.loop.call_later(TAKEN_S_MAX, self._close_unless_asked)
        # A request that is under way waits anew once it is answered.
        elif self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]  # None before the first one
            self.transport.close()
