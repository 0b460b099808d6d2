"""Tables are made once, whoever asks how often, and a wrong one is described."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tidegate_dynamo.client_factory import DynamoClient, sdk_client
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.tables import check_tables, create_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def sdk(settings: DynamoSettings, dynamo_client: DynamoClient) -> "Iterator[DynamoDBClient]":
    with closing(sdk_client(settings)) as client:
        yield client


@pytest.fixture
def settings(dynamo_settings: DynamoSettings) -> DynamoSettings:
    return replace(dynamo_settings, table_prefix=f"tables-{uuid.uuid4().hex[:8]}-")


def test_given_no_tables_then_they_are_made_once(settings: DynamoSettings, sdk: "DynamoDBClient") -> None:
    prefix = settings.table_prefix
    assert [str(difference) for difference in check_tables(settings, sdk)] == [
        f"table {prefix}{name}: the table is absent; it should be created by `tidegate init`"
        for name in ("tidegate", "tidegate-history")
    ]
    done = create_tables(settings, sdk)
    assert done == [f"created table {prefix}tidegate", f"created table {prefix}tidegate-history"]
    assert create_tables(settings, sdk) == []
    assert check_tables(settings, sdk) == []


def test_given_four_that_begin_at_once_then_all_succeed(settings: DynamoSettings, sdk: "DynamoDBClient") -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: create_tables(settings, sdk), range(4)))
    assert check_tables(settings, sdk) == []


def test_given_a_table_that_somebody_else_made_then_each_difference_is_named(
    settings: DynamoSettings, sdk: "DynamoDBClient"
) -> None:
    name = settings.table_name("main")
    sdk.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "N"}],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    create_tables(settings, sdk)
    differences = check_tables(settings, sdk)
    assert {difference.table for difference in differences} == {name}
    assert [difference.what for difference in differences] == ["its key", "the type of its key", "its billing mode"]


def test_given_a_table_whose_rows_do_not_expire_then_init_mends_it(
    settings: DynamoSettings, sdk: "DynamoDBClient"
) -> None:
    create_tables(settings, sdk)
    name = settings.table_name("history")
    sdk.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": False, "AttributeName": "expires_at"})
    assert [str(difference) for difference in check_tables(settings, sdk)] == [
        f"table {name}: its expiry attribute is None; it should be expires_at"
    ]
    assert create_tables(settings, sdk) == [f"set the expiry attribute of table {name} to expires_at"]
    assert check_tables(settings, sdk) == []
