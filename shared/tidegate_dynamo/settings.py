"""Where the store is and how patient its client is. One frozen value, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate_core.rows.store_operations import Table

TABLE_NAMES: Final[dict[Table, str]] = {"main": "tidegate", "history": "tidegate-history"}
PREFIX_CHARACTERS_MAX: Final = 200
"""DynamoDB's table names end at 255."""


@dataclass(frozen=True, slots=True)
class DynamoSettings:
    """Settings of the DynamoDB adapter.

    Attributes:
        endpoint_url: Of DynamoDB Local or a VPC endpoint; None is AWS's own endpoint of the region.
        region: AWS region; None is the SDK's usual chain (environment, profile), and `us-east-1` for an explicit endpoint
            when that finds none (DynamoDB Local wants a region and does not care which).
        table_prefix: Put before both tables' names, so that several clusters share an account. Default: none.
        connect_timeout_s: Seconds until a connection counts as refused. 1: within a region it takes milliseconds, and a
            request that was never sent is cheap to repeat.
        read_timeout_s: Seconds until an answer counts as lost. 2: longer than DynamoDB's slow answers, shorter than half a
            Kafka session (3 s), within which a shard's actor has to know where it stands.
        connections_max: Connections kept open, and a node's calls under way at once. 32: more calls than connections would
            open and drop TLS connections all the time.
    """

    endpoint_url: str | None = None
    region: str | None = None
    table_prefix: str = ""
    connect_timeout_s: float = 1.0
    read_timeout_s: float = 2.0
    connections_max: int = 32

    def __post_init__(self) -> None:
        for field in ("connect_timeout_s", "read_timeout_s", "connections_max"):
            if getattr(self, field) <= 0:
                raise ValueError(f"store setting {field} is {getattr(self, field)}; it must be above 0")
        allowed = self.table_prefix.replace("-", "").replace("_", "").replace(".", "")
        if len(self.table_prefix) > PREFIX_CHARACTERS_MAX or (
            allowed and not (allowed.isascii() and allowed.isalnum())
        ):
            raise ValueError(
                f"store setting table_prefix is {self.table_prefix!r}; use up to {PREFIX_CHARACTERS_MAX} letters, digits, "
                "`-`, `_` and `.`"
            )

    def table_name(self, table: Table) -> str:
        """Returns the name of one of the two tables as DynamoDB knows it."""
        return self.table_prefix + TABLE_NAMES[table]
