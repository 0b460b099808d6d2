"""Closes idle connections of HTTP servers. The API and the nodes' health endpoint pass this protocol to their
server.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S_MAX: Final = 30.0
"""Time for a whole request head, from the connection's begin or the answer before. It exceeds the 5 s after which the
server itself closes a connection on which nothing follows an answer."""


TAKEN_S_MAX: Final = 30.0
"""Time within which a client must take a further part of an answer; the whole answer may take longer."""


ALIVE: Final = "/livez"
"""Path of the liveness check of both services."""


class ImpatientProtocol(H11Protocol):
    """Closes a connection on which no whole request head comes, or whose client takes no further part of an answer.

    The server alone would wait as long as the connection exists, and a client that vanished leaves one for ever. In the
    end such connections reach the API's `connections_max`, and all clients get 503, also programs at the start gate. On
    a node they use up the process's descriptors, and it can open no further connection to broker or store.
    """

    _patience: asyncio.TimerHandle | None = None
    _unsent: int = sys.maxsize
    """Bytes of answers that the client had not taken at the last check."""
    _limit_concurrency: int | None = None

    @property
    def limit_concurrency(self) -> int | None:
        """Number of connections above which the server answers 503 without asking the application; read at each
        request.

        There is no limit for the liveness path: a 503 there would restart the process and end all other requests.
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
            # `abort`, because `close` would wait for the client, and so would the answer to a later request.
            self.transport.abort()
        elif unsent:
            self._unsent = unsent
            self._patience = self.loop.call_later(TAKEN_S_MAX, self._close_unless_asked)
        # With a request in progress, waiting restarts after its answer.
        elif self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]  # None before the first one
            self.transport.close()
