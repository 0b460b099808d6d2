"""Puts a run before its start gate straight into the store, as an owner's admission would."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidegate_api.routes.gate import run_token
from tidegate_core.language.values.derived_ids import run_id
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import Put
from tidegate_dynamo.client_factory import make_client
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stack

SECRET = b"a secret of more than thirty-two characters"
NOW = 1_763_676_000_000


def seed_run(stack: Stack, number: int) -> str:
    """Returns the id of a new run that was submitted."""
    shard = number % 16
    run = Run(
        id=run_id(shard, "0" * 26, "cron", (str(number),)),
        namespace="flights",
        name="land",
        incarnation="0" * 26,
        version=1,
        generation=1,
        attempt=1,
        state="submitted",
        trigger="time",
        nominal=NOW,
        order=json.dumps({"program_type": "python", "file": "/x.py", "args": []}),
        admitted_at=NOW,
        start_by=NOW,
    )
    key = run.key(shard)
    assert not _store(stack).write([Put(key, {**to_item(run, key), "rev": 1})])
    return run.id


def token_of(run: str) -> str:
    return f"Bearer {run_token(SECRET, run, 1)}"


def _store(stack: Stack) -> DynamoStore:
    settings = DynamoSettings(
        endpoint_url=stack.environment["TIDEGATE_DYNAMODB__ENDPOINT_URL"],
        region=stack.environment["TIDEGATE_DYNAMODB__REGION"],
        table_prefix=stack.environment["TIDEGATE_DYNAMODB__TABLE_PREFIX"],
    )
    return DynamoStore(make_client(settings).items, settings)
