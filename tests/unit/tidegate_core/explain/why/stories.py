"""Golden stories: each brings one reason code about by production decisions, and says word for word what `why` answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidegate_core.explain.why.reason import Explanation


class Story(NamedTuple):
    """One code's.

    Attributes:
        tell: Lives through it and asks.
        expected: A line for each reason, as `telling.told` has them.
    """

    code: str
    tell: Callable[[], Explanation]
    expected: tuple[str, ...]


STORIES: list[Story] = []


def story(code: str, *expected: str) -> Callable[[Callable[[], Explanation]], Callable[[], Explanation]]:
    """Registers the story of a code."""

    def register(tell: Callable[[], Explanation]) -> Callable[[], Explanation]:
        STORIES.append(Story(code, tell, expected))
        return tell

    return register
