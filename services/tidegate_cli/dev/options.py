"""What a local stack is asked for: the command's options, and where things lie by default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

NODES_MAX = 8
"""There are eight topic partitions; a ninth node would own nothing."""

SHARDS = 32
"""DESIGN 3: enough to see shards move between nodes, and quick to recover on a laptop."""

TOPIC_PARTITIONS = 8

KAFKA_PORT = 9092
DYNAMODB_PORT = 8000
API_PORT = 8080
NODE_PORT = 8081
"""The usual ports, and for further nodes those above the last one. Where one is taken, a random free one is used."""


def default_data_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns where the data of `tidegate dev` lie, as the XDG base directories have it."""
    return _base(environment, "XDG_DATA_HOME", ".local/share") / "tidegate" / "dev"


def _base(environment: Mapping[str, str], variable: str, otherwise: str) -> Path:
    given = environment.get(variable, "")
    # The XDG rules say that a relative path is to be ignored.
    return Path(given) if given.startswith("/") else Path.home() / otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """What to start.

    Attributes:
        data_dir: Folder of all data; None is a temporary one that goes when the stack stops.
        nodes: How many nodes, 1 to 8.
        announced: Whether other commands should find this stack by the pointer file.
        settings: Further settings of nodes and API, by the names of their environment variables.
    """

    data_dir: Path | None
    nodes: int = 1
    announced: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= NODES_MAX:
            raise ValueError(
                f"{self.nodes} nodes: choose 1 to {NODES_MAX}, there are {TOPIC_PARTITIONS} topic partitions"
            )

    @property
    def ephemeral(self) -> bool:
        return self.data_dir is None
