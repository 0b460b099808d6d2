"""Options of a local stack, with default ports and folders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

NODES_MAX = 8
"""Most nodes: there are eight topic partitions, so a ninth node would own nothing."""

SHARDS = 32
"""Enough to see shards move between nodes, and few enough for a quick recovery on a laptop."""

TOPIC_PARTITIONS = 8

KAFKA_PORT = 9092
DYNAMODB_PORT = 8000
API_PORT = 8080
NODE_PORT = 8081
"""Usual ports; further nodes use the ports above. If a port is taken, a random free port is used."""


def default_data_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the default data folder of `tidegate dev`, by the XDG rules."""
    return _base(environment, "XDG_DATA_HOME", ".local/share") / "tidegate" / "dev"


def _base(environment: Mapping[str, str], variable: str, otherwise: str) -> Path:
    given = environment.get(variable, "")
    # By the XDG rules a relative path is ignored.
    return Path(given) if given.startswith("/") else Path.home() / otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """Options of a local stack.

    Attributes:
        data_dir: Folder of all data; None is a temporary folder that is removed at the stop.
        nodes: Number of nodes, 1 to 8.
        announced: Whether a pointer file lets other commands find this stack.
        settings: Additional environment variables of nodes and API.
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
