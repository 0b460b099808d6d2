"""The two tables as pynamodb models: keys, and the attribute by which DynamoDB removes expired items.

The models define tables and nothing more. The core's codec reads and writes the items, for both
services, the simulation and the API (docs/internals/decisions/0004-pynamodb-where.md).
"""

from __future__ import annotations

from typing import Final

import botocore.session
from pynamodb.attributes import TTLAttribute, UnicodeAttribute
from pynamodb.models import Model

from tidegate_core.rows.store_operations import Table
from tidegate_dynamo.client_factory import access_for
from tidegate_dynamo.settings import TABLE_NAMES, DynamoSettings

EXPIRY_ATTRIBUTE: Final = "expires_at"
"""Epoch seconds, as DynamoDB requires. It only removes history and tombstones, and no decision uses it, because
DynamoDB removes items late."""


class TidegateTable(Model):
    """Attributes of both tables. `models_for` creates the two models with names and a connection."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    expires_at = TTLAttribute(null=True)


def models_for(settings: DynamoSettings) -> dict[Table, type[TidegateTable]]:
    """Returns a model for each table. Each call creates new ones, because a pynamodb model keeps its connection."""
    return {table: _model(settings, table) for table in TABLE_NAMES}


def _model(settings: DynamoSettings, table: Table) -> type[TidegateTable]:
    access = access_for(settings, botocore.session.get_session())

    class NamedTable(TidegateTable):
        class Meta:
            table_name = settings.table_name(table)
            host = settings.endpoint_url
            region = access.region
            aws_access_key_id = access.access_key_id
            aws_secret_access_key = access.secret_access_key
            connect_timeout_seconds = settings.connect_timeout_s
            read_timeout_seconds = settings.read_timeout_s

    return NamedTable
