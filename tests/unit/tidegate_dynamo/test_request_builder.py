import pytest

from tidegate_core.rows.store_operations import Check, Condition, Delete, Key, Put, RangeRead, Transaction, Update
from tidegate_dynamo.request_builder import TableNames, action_request, query_request, transaction_request
from tidegate_ports.store import StoreRequestInvalid

TABLES: TableNames = {"main": "x-tidegate", "history": "x-tidegate-history"}
KEY = Key("SH#0042", "LEASE")
WIRE_KEY = {"pk": {"S": "SH#0042"}, "sk": {"S": "LEASE"}}
HOLDS = Condition("#epoch = :epoch", {"#epoch": "epoch"}, {":epoch": 3})
WIRE_HOLDS = {
    "ConditionExpression": "#epoch = :epoch",
    "ExpressionAttributeNames": {"#epoch": "epoch"},
    "ExpressionAttributeValues": {":epoch": {"N": "3"}},
}
COMMON = {"TableName": "x-tidegate", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def test_given_a_check_then_its_condition_goes_out_as_it_is() -> None:
    assert action_request(Check(KEY, HOLDS), TABLES) == ("ConditionCheck", COMMON | {"Key": WIRE_KEY} | WIRE_HOLDS)


def test_given_a_put_without_placeholders_then_no_empty_mapping_is_sent() -> None:
    put = Put(KEY, {"pk": KEY.pk, "sk": KEY.sk}, Condition("attribute_not_exists(pk)"))
    wanted = COMMON | {"Item": WIRE_KEY, "ConditionExpression": "attribute_not_exists(pk)"}
    assert action_request(put, TABLES) == ("Put", wanted)


def test_given_a_delete_in_the_other_table_then_it_goes_there() -> None:
    name, request = action_request(Delete(Key("a", "b", "history")), TABLES)
    assert (name, request["TableName"]) == ("Delete", "x-tidegate-history")
    assert "ConditionExpression" not in request


def test_given_an_update_then_both_expressions_share_their_placeholders() -> None:
    update = Update(KEY, "SET #epoch = :next", {"#epoch": "epoch"}, {":next": 4}, HOLDS)
    assert action_request(update, TABLES) == (
        "Update",
        COMMON
        | WIRE_HOLDS
        | {
            "Key": WIRE_KEY,
            "UpdateExpression": "SET #epoch = :next",
            "ExpressionAttributeValues": {":next": {"N": "4"}, ":epoch": {"N": "3"}},
        },
    )


def test_given_a_placeholder_with_two_meanings_then_the_author_hears_of_it() -> None:
    with pytest.raises(StoreRequestInvalid, match=":epoch"):
        action_request(Update(KEY, "SET #epoch = :epoch", {"#epoch": "epoch"}, {":epoch": 4}, HOLDS), TABLES)


def test_given_an_item_under_another_key_then_the_author_hears_of_it() -> None:
    with pytest.raises(StoreRequestInvalid, match="other"):
        action_request(Put(KEY, {"pk": KEY.pk, "sk": "other"}), TABLES)


def test_given_equal_transactions_then_they_are_equal_requests_with_a_short_token() -> None:
    def request(token: str, prefix: str = "x-") -> dict[str, object]:
        tables: TableNames = {table: name.replace("x-", prefix) for table, name in TABLES.items()}
        update = Update(KEY, "ADD holders :run", {}, {":run": frozenset("abcdef")})
        return transaction_request(Transaction("admit", (Check(KEY, HOLDS), update), token, KEY), tables)

    long = "token of an author who likes long tokens " * 3
    assert request(long) == request(long)
    assert len(str(request(long)["ClientRequestToken"])) <= 36
    tokens = {
        request("a")["ClientRequestToken"],
        request("b")["ClientRequestToken"],
        request("a", "y-")["ClientRequestToken"],
    }
    assert len(tokens) == 3


def test_given_a_range_then_it_is_read_consistently_from_where_the_last_page_ended() -> None:
    assert query_request(RangeRead("SH#0042", "D#1", "D#9", 50, "D#5", "history", newest_first=True), TABLES) == {
        "TableName": "x-tidegate-history",
        "ConsistentRead": True,
        "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
        "ExpressionAttributeValues": {":pk": {"S": "SH#0042"}, ":low": {"S": "D#1"}, ":high": {"S": "D#9"}},
        "Limit": 50,
        "ScanIndexForward": False,
        "ExclusiveStartKey": {"pk": {"S": "SH#0042"}, "sk": {"S": "D#5"}},
    }


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(RangeRead("p", "b", "a"), id="bounds the wrong way round"),
        pytest.param(RangeRead("p", "", ""), id="empty bounds"),
        pytest.param(RangeRead("p", "a", "c", after="c"), id="at the end"),
        pytest.param(RangeRead("p", "a", "c", after="d"), id="behind the end"),
        pytest.param(RangeRead("p", "a", "c", after="a", newest_first=True), id="at the beginning, backwards"),
        pytest.param(RangeRead("p", "b", "c", after="a", newest_first=True), id="before the beginning, backwards"),
    ],
)
def test_given_a_range_that_is_empty_for_certain_then_nothing_is_asked(wanted: RangeRead) -> None:
    assert query_request(wanted, TABLES) is None
