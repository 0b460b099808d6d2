"""What follows from texts that are only ever added to, kept so that each of them is gone through once.

Evidence is a log in chunks that are written once. Each decision asks what it comes to: gone through anew, thousands of events would
cost as much for each further one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

S = TypeVar("S")

CHARACTERS_MAX: Final = 64_000
"""Of the texts of what is kept beside the last one asked for: what a shard keeps of small logs, of which a node may have 256."""


@dataclass(slots=True)
class _Kept:
    texts: list[str]
    characters: int
    state: Any


class Derived:
    """States by name, each with the texts that it follows from; the least recently asked for go first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._characters = 0

    def of(self, name: Hashable, texts: Sequence[str], begin: Callable[[], S], add: Callable[[S, str], None]) -> S:
        """Returns the state behind all texts. It is kept: whoever changes it changes a copy.

        Args:
            name: Of the state, and of how it is made.
            texts: In their order. Where those of before are not the first ones of them, all are gone through.
            begin: Returns the state before the first text.
            add: Moves a state on by one text. What it raises leaves nothing behind.
        """
        kept = self._take(name)
        if kept is None or list(texts[: len(kept.texts)]) != kept.texts:
            kept = _Kept([], 0, begin())
        for text in texts[len(kept.texts) :]:
            add(kept.state, text)
            kept.texts.append(text)
            kept.characters += len(text)
        self._keep(name, kept)
        state: S = kept.state
        return state

    def _take(self, name: Hashable) -> _Kept | None:
        kept = self._kept.pop(name, None)
        if kept is not None:
            self._characters -= kept.characters
        return kept

    def _keep(self, name: Hashable, kept: _Kept) -> None:
        self._kept[name] = kept
        self._characters += kept.characters
        while len(self._kept) > 1 and self._characters - kept.characters > CHARACTERS_MAX:
            _, oldest = self._kept.popitem(last=False)
            self._characters -= oldest.characters
