"""One after the other: operations that would stand in each other's way in the store."""

from __future__ import annotations

from typing import TypeVar

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation, Signal

T = TypeVar("T")


class Mutex:
    """Of the operations that are handed to it one is under way; the others wait, in no particular order."""

    def __init__(self, host: ActorContext, name: str) -> None:
        self._host = host
        self._is_taken = False
        self._given_back = Signal(name)

    def of(self, operation: Operation[T]) -> Operation[T]:
        """Goes through an operation in its turn, which begins with it. Raises what it raises."""
        while self._is_taken:
            yield self._given_back
        self._is_taken = True
        try:
            result = yield from operation
        except Exception:  # And not when it is closed: then all others are, too.
            self._give_back()
            raise
        self._give_back()
        return result

    def _give_back(self) -> None:
        self._is_taken = False
        self._host.operations.raise_(self._given_back)
