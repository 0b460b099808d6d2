"""`/livez`, `/readyz`, `/rolloutz` and `/metrics` of a node: a small HTTP server on the node's own loop.

An answer proves that the loop is alive. Liveness never asks Kafka or the store: if one of them is away, a restart of
the node would only add a recovery to the outage.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tidegate_telemetry.idle_connections import ImpatientProtocol
from tidegate_telemetry.metrics import Metrics

POLL_SILENCE_MS_MAX: Final = 30_000
"""Time without a poll after which a Kafka thread counts as hung: three times the group's own limit."""
STORE_SILENCE_MS_MAX: Final = 30_000
"""Three times the time between two heartbeat rows."""
STOP_S_MAX: Final = 2.0


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a node for its health pages.

    Attributes:
        poll_silence_ms: Time since each Kafka thread last polled, by name.
        joined: Whether the group has given this member its share, which may be empty.
        held, serving: Assigned ownership topic partitions, and those of them that fire.
        store_silence_ms: Time since the store last answered.
        map_is_known: Whether the node has read the map within the last minute, and so knows its shards.
        standing_still: (topic, topic partition) whose stored position is gone from the log.
        open_transactions: One line for each open transaction that blocks reading of tidegate's own topics.
        waits_for_transactions: The same for event sources' topics; the node stays ready, because it can do nothing
            about them.
        made_anew: Topic that was recreated since this node's map, and what to do.
        stopping: Whether the node drains and will end.
        drained: Whether an operator has drained the node.
        overloaded: Whether the node was too busy and has handed its share to others.
        clock_agreed: Whether the clock was compared with the brokers'.
        broken: Broken promises of other owners' shards that this node found; the node stays ready.
    """

    poll_silence_ms: dict[str, int]
    joined: bool
    held: frozenset[int]
    serving: frozenset[int]
    store_silence_ms: int
    map_is_known: bool = True
    standing_still: frozenset[tuple[str, int]] = frozenset()
    open_transactions: tuple[str, ...] = ()
    waits_for_transactions: tuple[str, ...] = ()
    made_anew: tuple[str, str] | None = None
    stopping: bool = False
    drained: bool = False
    overloaded: bool = False
    clock_agreed: bool = True
    broken: tuple[str, ...] = ()

    def why_dead(self) -> list[str]:
        """Returns reasons to restart the process; empty while it lives."""
        return [
            f"{name} did not turn for {silence} ms"
            for name, silence in sorted(self.poll_silence_ms.items())
            if silence > POLL_SILENCE_MS_MAX
        ]

    def why_rollout_waits(self) -> list[str]:
        """Returns reasons of this process alone not to rely on it. While there are any, a rollout or a drain of
        machines waits.

        Reasons that a replacement process would share do not count. Otherwise one lost position, or a store that is
        away, would stop the rollout of the whole cluster. If only this process cannot reach the store, it leaves the
        group, which is a reason.
        """
        reasons = self.why_dead()
        if self.stopping:
            reasons.append("it is stopping")
        if self.drained:
            reasons.append("an operator has drained it (tidegate node drain --undo)")
        elif self.overloaded:
            reasons.append("it is too busy, and has handed its share to a node that is at ease")
        elif not self.clock_agreed:
            reasons.append("its clock has not been compared with the brokers' yet, and it takes no share before")
        elif not self.joined:
            reasons.append("it has not joined its group")
        if waiting := sorted(self.held - self.serving):
            reasons.append(f"topic partitions {', '.join(map(str, waiting))} are being taken over")
        return reasons

    def why_unready(self) -> list[str]:
        """Returns reasons not to rely on this node; empty when it is ready."""
        reasons = self.why_rollout_waits()
        if self.store_silence_ms > STORE_SILENCE_MS_MAX:
            reasons.append(f"the store did not answer for {self.store_silence_ms} ms")
        elif not self.map_is_known:
            reasons.append("it has not read the map within the last minute, and sends and submits nothing until it has")
        anew, what_to_do = self.made_anew or ("", "")
        if anew:
            reasons.append(f"topic {anew} was made anew: {what_to_do} (docs/operations.md)")
        for topic in sorted({topic for topic, _ in self.standing_still} - {anew}):
            numbers = ", ".join(str(number) for each, number in sorted(self.standing_still) if each == topic)
            reasons.append(
                f"topic {topic}, topic partitions {numbers} are stuck: their logs no longer hold the stored positions, "
                "and an operator has to decide (docs/operations.md)"
            )
        return [*reasons, *self.open_transactions]


class HealthServer:
    """One per process.

    Args:
        standing: Callback for the state, at each request.
        refresh: Callback that updates the gauges before they are read.
        port: Port to listen on; 0 takes a free one, which `port` then names.
    """

    def __init__(
        self, host: str, port: int, standing: Callable[[], Standing], refresh: Callable[[], None], metrics: Metrics
    ) -> None:
        self._standing = standing
        self._refresh = refresh
        self._metrics = metrics
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        routes = [
            Route("/livez", self._livez),
            Route("/readyz", self._readyz),
            Route("/rolloutz", self._rolloutz),
            Route("/metrics", self._metrics_page),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes),
            http=ImpatientProtocol,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            loop="none",
        )
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[self._socket]))

    async def stop(self) -> None:
        """Answers the pending requests, then closes."""
        self._server.should_exit = True
        if self._task is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._task, STOP_S_MAX)
        self._socket.close()

    async def _livez(self, _: Request) -> Response:
        return _verdict(self._standing().why_dead())

    async def _readyz(self, _: Request) -> Response:
        standing = self._standing()
        return _verdict(
            standing.why_unready(),
            broken_elsewhere=list(standing.broken),
            waits_for_transactions=list(standing.waits_for_transactions),
        )

    async def _rolloutz(self, _: Request) -> Response:
        return _verdict(self._standing().why_rollout_waits())

    async def _metrics_page(self, _: Request) -> Response:
        self._refresh()
        body, content_type = self._metrics.exposition()
        return Response(body, media_type=content_type)


class _Server(uvicorn.Server):
    """Leaves signals to the node, because it drains before it ends."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _verdict(reasons: Sequence[str], **more: list[str]) -> Response:
    said = {name: value for name, value in more.items() if value}
    return JSONResponse({"ok": not reasons, "reasons": list(reasons), **said}, status_code=503 if reasons else 200)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(64)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening
