"""Values that are kept in memory by key, within a number of bytes: those that were asked for last. For one thread."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """What is not kept has to be made anew by whoever asks.

    Args:
        size_max: Of all values together, in the unit in which `keep` is told their sizes.
    """

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def keep(self, key: K, value: V, size: int) -> None:
        """Takes a value in, and drops those that were not asked for the longest; one that alone is too large is not kept."""
        self._drop(key)
        self._values[key] = (value, size)
        self.size += size
        while self.size > self._size_max:
            self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        dropped = self._values.pop(key, None)
        self.size -= 0 if dropped is None else dropped[1]
