"""The stores of the conformance suite: one server and one pair of tables for the whole session."""

import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest

pytest.register_assert_rewrite(
    "tests.conformance.store_suite", "tests.conformance.launcher_suite", "tests.conformance.bus_suite"
)

from tests.support.servers.servers import DynamoDbForTests  # noqa: E402 - likewise
from tidegate_dynamo.client_factory import DynamoClient, make_client, sdk_client  # noqa: E402 - asserts of the suite are rewritten before it is imported
from tidegate_dynamo.settings import DynamoSettings  # noqa: E402 - likewise
from tidegate_dynamo.tables import create_tables  # noqa: E402 - likewise


@pytest.fixture(scope="session")
def dynamo_settings(dynamodb: DynamoDbForTests) -> DynamoSettings:
    # The patience of a test machine: fifty items of 400 KB take DynamoDB Local seconds when others use the cores, too.
    return DynamoSettings(
        endpoint_url=dynamodb.endpoint_url,
        region=dynamodb.region,
        table_prefix=f"test-{uuid.uuid4().hex[:8]}-",
        connect_timeout_s=30.0,
        read_timeout_s=30.0,
    )


@pytest.fixture(scope="session")
def dynamo_client(dynamodb: DynamoDbForTests, dynamo_settings: DynamoSettings) -> Iterator[DynamoClient]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", dynamodb.access_key_id)
        environment.setenv("AWS_SECRET_ACCESS_KEY", dynamodb.secret_access_key)
        client = make_client(dynamo_settings)
        with closing(sdk_client(dynamo_settings)) as sdk:
            create_tables(dynamo_settings, sdk)
        yield client
        client.close()
