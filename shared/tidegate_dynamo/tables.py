"""Creates the two tables, and compares existing ones with the wanted state. Used by `tidegate init`, `tidegate dev` and
tests.

Idempotent, also for concurrent calls. It never changes a property that an operator may have chosen (billing),
and never deletes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botocore.exceptions import ClientError
from pynamodb.constants import PAY_PER_REQUEST_BILLING_MODE
from pynamodb.exceptions import TableDoesNotExist, TableError

from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.table_models import EXPIRY_ATTRIBUTE, TidegateTable, models_for

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEY_SCHEMA: Final = {"pk": "HASH", "sk": "RANGE"}
KEY_TYPES: Final = {"pk": "S", "sk": "S"}
READY: Final = "ACTIVE"
USABLE: Final = frozenset({READY, "UPDATING"})
"""Usable states. A table stays readable and writable while its capacity, class or backups change. A provisioned table
with automatic scaling is in that state for minutes, repeatedly."""
READY_POLL_S: Final = 1
READY_POLLS_MAX: Final = 60
"""Most checks: a minute. A new on-demand table takes about ten seconds on AWS."""


class Difference(NamedTuple):
    """One property of a table that differs from the wanted one."""

    table: str
    what: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"table {self.table}: {self.what} is {self.found}; it should be {self.wanted}"


def create_tables(settings: DynamoSettings, client: DynamoDBClient) -> list[str]:
    """Creates missing tables and settings, and waits until they can be used.

    Args:
        settings: Settings of the store.
        client: SDK client from `sdk_client` with the same settings.

    Returns:
        One line for each change; empty if there was none.

    Raises:
        pynamodb.exceptions.TableError: The store refused (rights, quota) or does not answer.
        botocore.exceptions.ClientError: The same, for the expiry attribute.
    """
    done: list[str] = []
    for model in models_for(settings).values():
        name = str(model.Meta.table_name)
        if not model.exists():
            _create(model)
            done.append(f"created table {name}")
        if _expiry(client, name) is None:
            _enable_expiry(client, name)
            done.append(f"set the expiry attribute of table {name} to {EXPIRY_ATTRIBUTE}")
    return done


def check_tables(settings: DynamoSettings, client: DynamoDBClient) -> list[Difference]:
    """Compares both tables with the state that `create_tables` creates, and changes nothing.

    Returns:
        The differences; empty if there are none.

    Raises:
        pynamodb.exceptions.TableError: The store does not answer, or refuses access.
        botocore.exceptions.ClientError: The same, for the expiry attribute.
    """
    return [difference for model in models_for(settings).values() for difference in _differences(model, client)]


def _create(model: type[TidegateTable]) -> None:
    try:
        model.create_table(wait=True, billing_mode=PAY_PER_REQUEST_BILLING_MODE)
    except TableError:
        # A concurrent init may have created the table, or is setting its expiry attribute, which is checked next. Here
        # it only matters that the table exists.
        if not model.exists():
            raise


def _enable_expiry(client: DynamoDBClient, name: str) -> None:
    client.get_waiter("table_exists").wait(
        TableName=name, WaiterConfig={"Delay": READY_POLL_S, "MaxAttempts": READY_POLLS_MAX}
    )
    try:
        client.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": EXPIRY_ATTRIBUTE}
        )
    except ClientError as refusal:
        # A concurrent init has enabled it since the check; DynamoDB refuses a repetition.
        if _expiry(client, name) != EXPIRY_ATTRIBUTE:
            raise refusal from None


def _differences(model: type[TidegateTable], client: DynamoDBClient) -> Iterator[Difference]:
    name = str(model.Meta.table_name)
    try:
        described: Mapping[str, Any] = model.describe_table()
    except TableDoesNotExist:
        yield Difference(name, "the table", "absent", "created by `tidegate init`")
        return
    found_keys = {part["AttributeName"]: part["KeyType"] for part in described["KeySchema"]}
    found_types = {part["AttributeName"]: part["AttributeType"] for part in described["AttributeDefinitions"]}
    # Tables made before DynamoDB knew on-demand billing have no summary and are provisioned.
    billing = described.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    state = described["TableStatus"]
    compared = (
        ("its state", READY if state in USABLE else state, READY),
        ("its key", found_keys, KEY_SCHEMA),
        ("the type of its key", {part: found_types.get(part) for part in KEY_TYPES}, KEY_TYPES),
        ("its billing mode", billing, PAY_PER_REQUEST_BILLING_MODE),
        ("its expiry attribute", _expiry(client, name), EXPIRY_ATTRIBUTE),
    )
    for what, found, wanted in compared:
        if found != wanted:
            yield Difference(name, what, str(found), str(wanted))


def _expiry(client: DynamoDBClient, name: str) -> str | None:
    """Returns the attribute by which items expire; None if they do not expire."""
    described = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if described.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
        return None
    return described.get("AttributeName")
