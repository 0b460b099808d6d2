"""The bus as this process holds it: publisher, facts about topics, reader. Built by `bootstrap`, faked by tests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TypeAlias

from tidegate_ports.bus import PartitionReader, Publisher, ReaderListener, Topics


@dataclass(frozen=True, slots=True)
class Bus:
    """Running clients of one cluster."""

    publisher: Publisher
    topics: Topics
    reader: PartitionReader


OpenBus: TypeAlias = Callable[[ReaderListener], AbstractAsyncContextManager[Bus]]
"""Starts the clients on the running loop, with a listener for what the reader reads, and stops them."""


@dataclass(frozen=True, slots=True)
class TopicNames:
    """Full names of the topics that this process uses."""

    requests: str
    events: str
    receipts: str
    pokes: str

    @classmethod
    def with_prefix(cls, prefix: str) -> TopicNames:
        return cls(f"{prefix}.requests", f"{prefix}.events", f"{prefix}.receipts", f"{prefix}.pokes")
