"""Work for the shard writer: decisions share a transaction, procedures need several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tidegate_core.engine.operations import Operation
from tidegate_core.rows.store_operations import Key
from tidegate_core.writes.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tidegate_core.engine.shard_writer import ShardWriter


class Decision(Protocol):
    """A pure step that reads and writes through a unit of work.

    It runs again from the start when an item was missing or the transaction refused. So it must read the present
    state first, and do nothing when its work is already done.
    """

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str:
        """Schedule, run or row that it decides about, for the log."""
        ...

    @property
    def stale(self) -> tuple[Key, ...]:
        """Items that other writers may have changed since the last read."""
        ...

    def decide(self, unit: UnitOfWork, now: int) -> None: ...


class Procedure(ABC):
    """Work that needs the shard writer for more than one transaction.

    It is a base class and not a protocol, because the type of each work item is checked several times.
    """

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def about(self) -> str: ...

    @property
    def ordering_key(self) -> str | None:
        """Key by which it keeps order: it does not pass a deferred procedure with the same key.

        None: it may pass all.
        """
        return None

    @abstractmethod
    def run(self, writer: ShardWriter) -> Operation[None]: ...


class Deferred(Exception):
    """A procedure waits for an answer that may take long.

    It starts again after that; the work after it continues.

    Attributes:
        until_known: Operation that waits for the answer.
    """

    def __init__(self, why: str, until_known: Callable[[], Operation[None]]) -> None:
        super().__init__(why)
        self.until_known = until_known


Work = Decision | Procedure
