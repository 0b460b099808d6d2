"""Our client for items and the SDK's are told the same by DynamoDB Local, whatever they ask: answers and refusals."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import pytest
from botocore.exceptions import ClientError

from tests.conformance.sdk_item_client import SdkItems
from tidegate_core.rows.store_operations import (
    Action,
    Check,
    Condition,
    Delete,
    Key,
    Put,
    RangeRead,
    Transaction,
    Update,
)
from tidegate_dynamo.attribute_values import encoded_item
from tidegate_dynamo.client_factory import DynamoClient
from tidegate_dynamo.item_client import OPERATIONS
from tidegate_dynamo.request_builder import (
    TableNames,
    action_request,
    key_attributes,
    query_request,
    transaction_request,
)
from tidegate_dynamo.settings import TABLE_NAMES, DynamoSettings
from tidegate_dynamo.write_outcomes import outcome_of

Request: TypeAlias = tuple[str, Mapping[str, Any]]
Script: TypeAlias = Callable[[str, TableNames], list[Request]]
VALUES: dict[str, Any] = {
    "text": 'Grüße, 世界 \U0001f600 \x01\u2028"\\/',
    "empty": "",
    "n": -(10**37),
    "b": bytes(range(256)),
    "none": None,
    "yes": True,
    "set": frozenset({"a", "ö"}),
    "list": [1, [b"", {"m": "x"}]],
    "map": {"q\"'": {"deep": [frozenset({"z"})]}},
}
ABSENT = Condition("attribute_not_exists(pk)")
EPOCH = Condition("#e = :seen", {"#e": "epoch"}, {":seen": 1})


def keys(who: str) -> list[Key]:
    return [Key(f"{who}#é", f"{number:03}", "history" if number % 2 else "main") for number in range(30)]


def item(key: Key, **more: Any) -> dict[str, Any]:
    return {"pk": key.pk, "sk": key.sk, **more}


def single(names: TableNames, action: Action) -> Request:
    kind, request = action_request(action, names)
    return f"{kind.lower()}_item", {**request, "ReturnConsumedCapacity": "TOTAL"}


def together(names: TableNames, token: str, *actions: Action) -> Request:
    return "transact_write_items", transaction_request(Transaction("t", actions, token, None), names)


def single_writes(who: str, names: TableNames) -> list[Request]:
    key = keys(who)[0]
    put = single(names, Put(key, item(key, epoch=1, **VALUES), ABSENT))
    raised = Update(key, "SET #e = #e + :one", {"#e": "epoch"}, {":one": 1}, EPOCH)
    return [
        put,
        put,
        *[single(names, raised)] * 2,
        single(names, Update(key, "SET gone.deep = :x", {}, {":x": "x"}, None)),
        single(names, Delete(key, EPOCH)),
        single(names, Delete(key)),
        single(names, Delete(key, Condition("nonsense ("))),
        ("put_item", {"TableName": "nobody-has-it", "Item": encoded_item(item(key))}),
        ("put_item", {"TableName": names["main"], "Item": {"pk": {"S": "only"}}}),
        ("put_item", {"TableName": names["main"], "Item": {"pk": {"X": "no type"}}}),
        ("put_item", {}),
    ]


def transactions(who: str, names: TableNames) -> list[Request]:
    first, second, third = keys(who)[:3]
    both = (Put(first, item(first, epoch=1, **VALUES), ABSENT), Put(second, item(second, epoch=2), ABSENT))
    update = Update(first, "SET #e = :two", {"#e": "epoch"}, {":two": 2}, EPOCH)
    return [
        together(names, f"{who}1", *both),
        together(names, f"{who}1", *both),
        together(names, f"{who}1", *both[::-1]),
        together(names, f"{who}2", *both),
        together(names, f"{who}3", update, Check(second, EPOCH), Delete(third)),
        together(names, f"{who}4", update, Check(second, ABSENT), Put(third, item(third))),
        together(names, f"{who}5", update, Check(third, Condition("attribute_exists(pk)"))),
        together(names, f"{who}6", Delete(first), Delete(first)),
        together(names, f"{who}7", *(Put(key, item(key, filler="x" * 3_000)) for key in keys(who)[3:])),
    ]


def batches_and_reads(who: str, names: TableNames) -> list[Request]:
    written = keys(who)[:25]
    puts = [{"PutRequest": {"Item": encoded_item(item(key, **VALUES))}} for key in written if key.table == "main"]
    gone = [{"DeleteRequest": {"Key": key_attributes(key)}} for key in written if key.table == "history"]
    wanted = {names["main"]: {"Keys": [key_attributes(key) for key in written], "ConsistentRead": True}}
    whole = RangeRead(written[0].pk, "", "999", limit=7)
    queries = [whole, RangeRead(f"{who}#nobody", "", "~"), RangeRead(whole.pk, "0", "~", newest_first=True, limit=100)]
    asked = [query_request(each, names) for each in queries]
    return [
        ("batch_write_item", {"RequestItems": {names["main"]: puts, names["history"]: gone}}),
        ("batch_write_item", {"RequestItems": {names["main"]: puts + puts}}),
        ("batch_write_item", {"RequestItems": {}}),
        ("batch_get_item", {"RequestItems": wanted, "ReturnConsumedCapacity": "TOTAL"}),
        ("batch_get_item", {"RequestItems": {"nobody-has-it": {"Keys": [key_attributes(written[0])]}}}),
        *[("query", {**each, "ReturnConsumedCapacity": "TOTAL"}) for each in asked if each is not None],
        ("query", {"TableName": names["main"], "KeyConditionExpression": "sk = :no"}),
    ]


def large_answers(who: str, names: TableNames) -> list[Request]:
    rows = [key for key in keys(who) if key.table == "main"]
    whole = query_request(RangeRead(rows[0].pk, "", "~"), names)
    assert whole is not None
    return [
        *[single(names, Put(key, item(key, payload="ü" * 100_000))) for key in rows],
        # A page ends at a megabyte: more than one piece of a socket's, and more than one page.
        ("query", whole),
    ]


@pytest.fixture
def names(dynamo_settings: DynamoSettings) -> TableNames:
    return {table: dynamo_settings.table_name(table) for table in TABLE_NAMES}


@pytest.fixture
def sdk(dynamo_client: DynamoClient, dynamo_settings: DynamoSettings) -> Iterator[SdkItems]:
    client = SdkItems(dynamo_settings)
    yield client
    client.close()


def told(client: Any, who: str, operation: str, request: Mapping[str, Any]) -> Any:
    """What a call came to, without what differs from call to call."""
    try:
        answer = dict(client.call(operation, request))
    except ClientError as refused:
        try:
            outcome = repr(outcome_of(refused, len(request.get("TransactItems", "1"))))
        except Exception as invalid:  # noqa: BLE001 - its class and text are what is compared
            outcome = repr(invalid)
        parts = {name: refused.response.get(name) for name in ("Error", "CancellationReasons", "Item")}
        answer = {"refused": parts, "text": str(refused), "outcome": outcome, "operation": refused.operation_name}
    else:
        assert answer.pop("ResponseMetadata")["RequestId"]
        if operation == "batch_get_item":
            # In whatever order the store found them.
            answer["Responses"] = {name: sorted(items, key=repr) for name, items in answer["Responses"].items()}
    # The SDK also says how often it tried.
    text = json.dumps(answer, sort_keys=True).replace(" (reached max retries: 0)", "")
    return json.loads(text.replace(who, "who"))


@pytest.mark.parametrize("script", [single_writes, transactions, batches_and_reads, large_answers])
def test_given_the_same_requests_then_both_clients_are_told_the_same(
    dynamo_client: DynamoClient, sdk: SdkItems, names: TableNames, script: Script
) -> None:
    asked = set()
    ours = [told(dynamo_client.items, "ours", *request) for request in script("ours", names)]
    theirs = [told(sdk, "sdks", *request) for request in script("sdks", names)]
    for mine, its, (operation, _) in zip(ours, theirs, script("ours", names), strict=True):
        assert mine == its, operation
        asked.add(operation)
    assert asked <= OPERATIONS.keys()


def test_given_the_scripts_then_each_operation_of_the_store_is_in_one(names: TableNames) -> None:
    scripts = (single_writes, transactions, batches_and_reads, large_answers)
    assert {operation for script in scripts for operation, _ in script("x", names)} == set(OPERATIONS)
