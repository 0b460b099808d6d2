"""What a lane is given to do: decisions, which share a transaction, and procedures, which need several of them."""

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
    """A pure step: reads and writes through the unit of work. Run again from the start when something was missing or refused,
    so it must look at the present state first and do nothing when its work is done already.
    """

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str:
        """The schedule, run or row that it decides on, for whoever reads the log."""
        ...

    @property
    def stale(self) -> tuple[Key, ...]:
        """Items that others may have written since they were last read."""
        ...

    def decide(self, unit: UnitOfWork, now: int) -> None: ...


class Procedure(ABC):
    """Something that needs the lane for more than one transaction.

    A base class and no protocol: each piece of work is asked several times which of the two it is.
    """

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def about(self) -> str: ...

    @property
    def ordering_key(self) -> str | None:
        """What it goes in order with: it does not pass what stands aside and is of the same. None: with nothing."""
        return None

    @abstractmethod
    def run(self, lane: ShardWriter) -> Operation[None]: ...


class Deferred(Exception):
    """A procedure cannot go on before something is known that may take long. It is begun anew then; what stands behind it goes on.

    Attributes:
        until_known: Waits until it is known.
    """

    def __init__(self, why: str, until_known: Callable[[], Operation[None]]) -> None:
        super().__init__(why)
        self.until_known = until_known


Work = Decision | Procedure
