"""The real DynamoDB Local: answers, keeps its tables in a folder, comes back where it was."""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from tests.support.servers.servers import stand_still
from tidegate_bricks.dynamodb_local import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, DynamoDbBrick
from tidegate_bricks.errors import BrickFailed
from tidegate_bricks.java_server import NICE_VARIABLE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Until = Callable[[Callable[[], bool], str], None]
NICENESS = 3
NICENESS_MAX = 19
REASON = "unable to open database file"
ITEM = {"id": {"S": "one"}, "count": {"N": "1"}}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamoDbBrick]:
    with DynamoDbBrick(tmp_path_factory.mktemp("dynamodb")) as running:
        yield running


@pytest.fixture
def kept(stored: DynamoDbBrick) -> DynamoDbBrick:
    """A server that runs and keeps its tables in a folder, whatever a failed test left it as."""
    stored.start()
    stored.resume()
    return stored


@pytest.fixture(scope="module")
def in_memory(stored: DynamoDbBrick) -> Iterator[DynamoDbBrick]:
    """A server that wants the port of `stored`, and that runs with `NICENESS` more than this process."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(NICE_VARIABLE, str(NICENESS))
        running = DynamoDbBrick(None, preferred_port=stored.port)
        running.start()
    yield running
    running.stop()


@pytest.fixture(params=["kept", "in_memory"])
def brick(request: pytest.FixtureRequest) -> DynamoDbBrick:
    running: DynamoDbBrick = request.getfixturevalue(request.param)
    return running


@pytest.fixture
def table() -> str:
    """The name of a table that is not made yet."""
    return f"things-{uuid.uuid4().hex}"


def client_of(brick: DynamoDbBrick) -> "DynamoDBClient":
    return boto3.client(
        "dynamodb",
        endpoint_url=brick.endpoint,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
        config=Config(connect_timeout=5, read_timeout=30, retries={"max_attempts": 1}),
    )


def create_table(brick: DynamoDbBrick, table: str) -> None:
    client = client_of(brick)
    client.create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.close()


def put(brick: DynamoDbBrick, table: str) -> None:
    client = client_of(brick)
    client.put_item(TableName=table, Item=ITEM)
    client.close()


def get(brick: DynamoDbBrick, table: str) -> object:
    client = client_of(brick)
    item = client.get_item(TableName=table, Key={"id": {"S": "one"}}, ConsistentRead=True).get("Item")
    client.close()
    return item


def test_given_item_then_it_is_read(brick: DynamoDbBrick, table: str) -> None:
    create_table(brick, table)
    put(brick, table)
    assert get(brick, table) == ITEM


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_given_folder_then_item_and_address_survive(kept: DynamoDbBrick, table: str, end: str) -> None:
    create_table(kept, table)
    put(kept, table)
    endpoint = kept.endpoint
    getattr(kept, end)()
    assert not kept.answers()
    kept.start()
    assert kept.endpoint == endpoint
    assert get(kept, table) == ITEM


def test_given_pause_then_server_is_mute_until_it_goes_on(kept: DynamoDbBrick, table: str) -> None:
    create_table(kept, table)
    stand_still(kept)
    assert not kept.answers()
    kept.resume()
    put(kept, table)
    assert get(kept, table) == ITEM


def test_given_two_servers_that_want_one_port_then_second_takes_another(
    kept: DynamoDbBrick, in_memory: DynamoDbBrick, until: Until
) -> None:
    assert in_memory.port != kept.port
    until(in_memory.answers, "the second answers")
    until(kept.answers, "and so does the first")


def test_given_tables_that_cannot_be_opened_then_error_shows_the_reason(tmp_path: Path) -> None:
    """It does not end for that: what is told is what it had said at the deadline, to which a busy machine may not have come."""
    (tmp_path / "shared-local-instance.db").mkdir()
    said: list[str] = []
    for patience_s in (6, 20, 60):
        with pytest.raises(BrickFailed) as failure:
            DynamoDbBrick(tmp_path).start(timeout_s=patience_s)
        said.append(str(failure.value))
        if REASON in said[-1]:
            break
    assert REASON in said[-1]


def test_given_a_niceness_then_the_server_runs_with_it(in_memory: DynamoDbBrick) -> None:
    """Of any sign: whoever may not lower it is not who sets it."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, in_memory.pid) == min(own + NICENESS, NICENESS_MAX)
