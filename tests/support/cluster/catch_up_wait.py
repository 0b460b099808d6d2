"""Waits until a cluster has come to what was asked of it just now: a backlog that only grows would bury every later strike."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from contextlib import suppress

from tests.support.cluster.message_load import MessageBook
from tests.support.cluster.pipeline_load import Pipeline
from tests.support.cluster.until import NotInTime, now_ms, until
from tests.support.cluster.user_client import Client

BEHIND_MS = 5_000
"""A landing that was due so long ago should have begun."""
ASKED_AHEAD_MS = 2_000
LOOK_EVERY_S = 0.1


class CatchUp:
    """Asks through every topic partition, and looks whether the answers are there.

    Args:
        book: Of the messages that ask; they are due as any other.
    """

    def __init__(self, client: Client, book: MessageBook, pipeline: Pipeline) -> None:
        self._client = client
        self._book = book
        self._pipeline = pipeline
        self._asked = itertools.count(1)

    def wait(self, topic_partitions: Iterable[int], patience_s: float) -> None:
        """Waits until requests of just now are answered and landings have begun, for `patience_s` seconds at most."""
        asked = {self._ask(number) for number in topic_partitions}

        def is_gone() -> bool:
            return asked <= self._client.receipts().keys() and not self._pipeline.missing(now_ms() - BEHIND_MS)

        with suppress(NotInTime):
            until(is_gone, "the backlog is gone", patience_s, LOOK_EVERY_S)

    def _ask(self, topic_partition: int) -> str:
        """Sends a message through one topic partition of requests; returns the id under which it is answered."""
        request_id = f"asked-{next(self._asked)}"
        due = now_ms() + ASKED_AHEAD_MS
        self._book.send(due, request_id=request_id, receipt=True, topic_partition=topic_partition)
        return request_id
