"""Settings of the DynamoDB adapter: endpoint, tables and time-outs. One frozen value, checked when it is created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate_core.rows.store_operations import Table

TABLE_NAMES: Final[dict[Table, str]] = {"main": "tidegate", "history": "tidegate-history"}
PREFIX_CHARACTERS_MAX: Final = 200
"""Longest table prefix: DynamoDB's table names have at most 255 characters."""


@dataclass(frozen=True, slots=True)
class DynamoSettings:
    """Settings of the DynamoDB adapter.

    Attributes:
        endpoint_url: URL of DynamoDB Local or of a VPC endpoint; None is AWS's endpoint of the region.
        region: AWS region; None takes it from the SDK's chain (environment, profile). With an explicit endpoint,
            `us-east-1` is the last resort: DynamoDB Local accepts any region.
        table_prefix: Text before both table names, so that several clusters can share an account. Default: none.
        connect_timeout_s: Seconds until a connection attempt counts as refused. 1: within a region connecting takes
            milliseconds, and repeating a request that was never sent costs little.
        read_timeout_s: Seconds until an answer counts as lost. 2: longer than DynamoDB's slow answers, shorter than
            half a Kafka session (3 s), within which a shard's owner must know its state.
        connections_max: Idle connections kept, and concurrent calls of a node. 32: with more calls than connections,
            TLS connections would be opened and closed all the time.
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
        """Returns DynamoDB's name of one of the two tables."""
        return self.table_prefix + TABLE_NAMES[table]
