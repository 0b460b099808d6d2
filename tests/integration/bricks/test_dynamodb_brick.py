"""The real DynamoDB Local: answers, keeps its tables in a folder, comes back where it was."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from tests.support.servers.servers import stand_still
from tidegate_bricks.dynamodb import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, DynamoDbBrick
from tidegate_bricks.errors import BrickFailed
from tidegate_bricks.java_server import NICE_VARIABLE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Until = Callable[[Callable[[], bool], str], None]
NICENESS_MAX = 19
REASON = "unable to open database file"
ITEM = {"id": {"S": "one"}, "count": {"N": "1"}}


@pytest.fixture(params=["in a folder", "in memory"])
def brick(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DynamoDbBrick]:
    with DynamoDbBrick(tmp_path if request.param == "in a folder" else None) as running:
        yield running


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[DynamoDbBrick]:
    """One that keeps its tables in a folder."""
    with DynamoDbBrick(tmp_path) as running:
        yield running


def client_of(brick: DynamoDbBrick) -> "DynamoDBClient":
    return boto3.client(
        "dynamodb",
        endpoint_url=brick.endpoint,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
        config=Config(connect_timeout=5, read_timeout=30, retries={"max_attempts": 1}),
    )


def create_table(brick: DynamoDbBrick) -> None:
    client = client_of(brick)
    client.create_table(
        TableName="things",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.close()


def put(brick: DynamoDbBrick) -> None:
    client = client_of(brick)
    client.put_item(TableName="things", Item=ITEM)
    client.close()


def get(brick: DynamoDbBrick) -> object:
    client = client_of(brick)
    item = client.get_item(TableName="things", Key={"id": {"S": "one"}}, ConsistentRead=True).get("Item")
    client.close()
    return item


def test_given_item_then_it_is_read(brick: DynamoDbBrick) -> None:
    create_table(brick)
    put(brick)
    assert get(brick) == ITEM


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_given_folder_then_item_and_address_survive(kept: DynamoDbBrick, end: str) -> None:
    create_table(kept)
    put(kept)
    endpoint = kept.endpoint
    getattr(kept, end)()
    assert not kept.answers()
    kept.start()
    assert kept.endpoint == endpoint
    assert get(kept) == ITEM


def test_given_pause_then_server_is_mute_until_it_goes_on(kept: DynamoDbBrick) -> None:
    create_table(kept)
    stand_still(kept)
    assert not kept.answers()
    kept.resume()
    put(kept)
    assert get(kept) == ITEM


def test_given_two_servers_that_want_one_port_then_second_takes_another(kept: DynamoDbBrick, until: Until) -> None:
    with DynamoDbBrick(None, preferred_port=kept.port) as second:
        assert second.port != kept.port
        until(second.answers, "the second answers")
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


def test_given_a_niceness_then_the_server_runs_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any sign: whoever may not lower it is not who sets it."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    monkeypatch.setenv(NICE_VARIABLE, "3")
    with DynamoDbBrick(None) as brick:
        assert os.getpriority(os.PRIO_PROCESS, brick.pid) == min(own + 3, NICENESS_MAX)
