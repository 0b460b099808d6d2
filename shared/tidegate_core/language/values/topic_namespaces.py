"""What a record may not ask for, however well it is written: to speak for a namespace that is not its topic's, and to have
tidegate itself write into tidegate's own topics.

Who may write into a topic is the brokers' word (ACLs); which namespaces a topic is for is the nodes' (`namespaces` of the
settings). A source's topic needs no rule: its records cannot name a namespace, the source does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EVERY: Final = ("*",)


@dataclass(frozen=True, slots=True)
class TopicNamespaces:
    """Which namespaces the records of the two shared topics may name: names, or beginnings that end with `*`."""

    requests: tuple[str, ...] = EVERY
    events: tuple[str, ...] = EVERY


EVERYBODY: Final = TopicNamespaces()
"""Both topics are for every namespace."""
