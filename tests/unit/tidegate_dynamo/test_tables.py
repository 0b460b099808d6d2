"""Which states of a table keep nodes from serving. The rest is compared with a real store, in `tests/conformance`."""

from typing import TYPE_CHECKING, Any, cast

import pytest
from botocore.session import Session

from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.table_models import EXPIRY_ATTRIBUTE, TidegateTable
from tidegate_dynamo.tables import check_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LOCAL = DynamoSettings(endpoint_url="http://127.0.0.1:1")


class _Client:
    def describe_time_to_live(self, **_: str) -> dict[str, Any]:
        return {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": EXPIRY_ATTRIBUTE}}


def _states_that_differ(state: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    described = {
        "TableStatus": state,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    }
    monkeypatch.setattr(Session, "get_credentials", lambda _: None)
    monkeypatch.setattr(TidegateTable, "describe_table", lambda: described)
    return [difference.found for difference in check_tables(LOCAL, cast("DynamoDBClient", _Client()))]


@pytest.mark.parametrize("state", ["ACTIVE", "UPDATING"])
def test_given_a_table_that_can_be_read_and_written_then_its_state_is_as_it_should_be(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provisioned one that scales by itself is being updated each time, for minutes: no reason to end a node that begins then."""
    assert _states_that_differ(state, monkeypatch) == []


@pytest.mark.parametrize("state", ["CREATING", "DELETING", "INACCESSIBLE_ENCRYPTION_CREDENTIALS", "ARCHIVED"])
def test_given_a_table_that_cannot_be_used_then_its_state_differs(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _states_that_differ(state, monkeypatch) == [state, state]
