"""What the conformance suite cannot make DynamoDB Local do: leftovers, throttling, foreign answers."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from tidegate_core.rows.store_operations import (
    Applied,
    Check,
    Condition,
    Delete,
    Key,
    Lost,
    Page,
    Put,
    RangeRead,
    Throttled,
    Transaction,
)
from tidegate_dynamo.item_client import ItemsClient
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore
from tidegate_dynamo.store_calls import GET_PAUSES_S, KEYS_PER_CALL_MAX
from tidegate_ports.store import PartlyRead, StoreRequestInvalid, StoreUnavailable

Answer: TypeAlias = Mapping[str, Any] | Exception
OK: Mapping[str, Any] = {"ResponseMetadata": {"RequestId": "1"}}
WRITTEN: Mapping[str, Any] = {**OK, "UnprocessedItems": {}}
THROTTLED = ClientError({"Error": {"Code": "ThrottlingException"}}, "any")
NO_ANSWER = ReadTimeoutError(endpoint_url="http://store.test")
REFUSED = EndpointConnectionError(endpoint_url="http://store.test")
KEYS = [Key("SH#0001", f"D#{n:03}", "history" if n % 2 else "main") for n in range(60)]
PUTS = [Put(key, {"pk": key.pk, "sk": key.sk}) for key in KEYS]


class ScriptedClient:
    """Answers each call with what comes next, and keeps what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def call(self, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((operation, request))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def store_on(client: ScriptedClient, **settings: Any) -> DynamoStore:
    return DynamoStore(cast(ItemsClient, client), DynamoSettings(**settings))


def attributes(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def test_given_one_action_then_it_is_a_plain_write_at_half_the_price() -> None:
    client = ScriptedClient(OK, OK)
    store = store_on(client)
    absent = Condition("attribute_not_exists(pk)")
    assert store.transact(Transaction("one", (Put(KEYS[0], PUTS[0].item, absent),), "t", KEYS[0])) == Applied()
    two = (Delete(KEYS[0]), Delete(KEYS[1]))
    assert store.transact(Transaction("two", two, "t", KEYS[0])) == Applied()
    assert [operation for operation, _ in client.asked] == ["put_item", "transact_write_items"]
    assert "ClientRequestToken" in client.asked[1][1]


def test_given_only_a_check_then_nothing_is_sent() -> None:
    client = ScriptedClient()
    check = Check(KEYS[0], Condition("attribute_exists(pk)"))
    with pytest.raises(StoreRequestInvalid):
        store_on(client).transact(Transaction("check", (check,), "t", KEYS[0]))
    assert client.asked == []


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(NO_ANSWER, Lost(), id="no answer"),
        pytest.param(REFUSED, Throttled(), id="no connection"),
        pytest.param({"ResponseMetadata": {}}, Lost(), id="a proxy's page with status 200"),
        pytest.param({**OK, "message": "{"}, Lost(), id="an answer that broke off"),
        pytest.param({}, Lost(), id="nothing that DynamoDB would say"),
    ],
)
def test_given_trouble_on_the_way_then_a_transaction_is_sent_once_and_says_what_is_known(
    answer: Answer, outcome: object
) -> None:
    client = ScriptedClient(answer)
    transaction = Transaction("two", (Delete(KEYS[0]), Delete(KEYS[1])), "t", KEYS[0])
    assert store_on(client).transact(transaction) == outcome
    assert len(client.asked) == 1


def test_given_unprocessed_writes_then_exactly_those_come_back() -> None:
    left = {
        "tidegate": [{"PutRequest": {"Item": attributes(KEYS[2])}}],
        "tidegate-history": [{"DeleteRequest": {"Key": attributes(KEYS[3])}}],
    }
    client = ScriptedClient({**OK, "UnprocessedItems": left}, WRITTEN)
    actions: list[Put | Delete] = [*PUTS[:3], Delete(KEYS[3]), *PUTS[4:30]]
    assert store_on(client).write(actions) == [PUTS[2], Delete(KEYS[3])]
    assert [sum(map(len, asked["RequestItems"].values())) for _, asked in client.asked] == [25, 5]


@pytest.mark.parametrize("turned_away", [THROTTLED, REFUSED])
def test_given_a_chunk_that_is_turned_away_then_the_rest_is_not_tried(turned_away: Exception) -> None:
    client = ScriptedClient(WRITTEN, turned_away)
    assert store_on(client).write(PUTS) == PUTS[25:]


def test_given_a_chunk_without_an_answer_then_the_batch_is_unknown() -> None:
    with pytest.raises(StoreUnavailable):
        store_on(ScriptedClient(WRITTEN, NO_ANSWER)).write(PUTS)


def test_given_unprocessed_keys_then_they_are_read_within_the_call() -> None:
    first = {
        **OK,
        "Responses": {"x.tidegate": [attributes(KEYS[0])]},
        "UnprocessedKeys": {"x.tidegate-history": {"Keys": [attributes(KEYS[1])], "ConsistentRead": True}},
    }
    second = {**OK, "Responses": {"x.tidegate-history": [attributes(KEYS[1])]}, "UnprocessedKeys": {}}
    client = ScriptedClient(first, second)
    found = store_on(client, table_prefix="x.").get(KEYS[:3])
    assert found == {key: {"pk": key.pk, "sk": key.sk} for key in KEYS[:2]}
    assert client.asked[1][1]["RequestItems"] == first["UnprocessedKeys"]


def leftover(*wanted: Key) -> dict[str, Any]:
    return {"tidegate": {"Keys": [attributes(key) for key in wanted], "ConsistentRead": True}}


def test_given_keys_that_stay_unprocessed_then_the_read_gives_up_after_its_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("tidegate_dynamo.store.time.sleep", pauses.append)
    never = {**OK, "Responses": {}, "UnprocessedKeys": leftover(KEYS[0])}
    client = ScriptedClient(*[never] * 100)
    with pytest.raises(StoreUnavailable, match="1 of 1 keys"):
        store_on(client).get(KEYS[:1])
    assert tuple(pauses) == GET_PAUSES_S
    assert len(client.asked) == 1 + len(pauses)


def test_given_a_few_keys_each_time_then_what_was_found_is_kept_until_all_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidegate_dynamo.store.time.sleep", lambda _: None)
    first, second = KEYS[0], KEYS[2]
    nothing = {**OK, "Responses": {}, "UnprocessedKeys": leftover(first, second)}
    one = {**OK, "Responses": {"tidegate": [attributes(first)]}, "UnprocessedKeys": leftover(second)}
    still = {**OK, "Responses": {}, "UnprocessedKeys": leftover(second)}
    last = {**OK, "Responses": {"tidegate": [attributes(second)]}, "UnprocessedKeys": {}}
    assert list(store_on(ScriptedClient(nothing, nothing, one, still, last)).get([first, second])) == [first, second]


@pytest.mark.parametrize(
    "stays",
    [
        pytest.param({**OK, "Responses": {}, "UnprocessedKeys": leftover(KEYS[2])}, id="left over each time"),
        pytest.param(THROTTLED, id="turned away once it is alone"),
        pytest.param(NO_ANSWER, id="no answer"),
    ],
)
def test_given_a_key_that_stays_unread_then_it_is_told_what_the_others_are(
    monkeypatch: pytest.MonkeyPatch, stays: Answer
) -> None:
    monkeypatch.setattr("tidegate_dynamo.store.time.sleep", lambda _: None)
    first = {**OK, "Responses": {"tidegate": [attributes(KEYS[0])]}, "UnprocessedKeys": leftover(KEYS[2])}
    with pytest.raises(PartlyRead) as partly:
        store_on(ScriptedClient(first, *[stays] * 10)).get([KEYS[0], KEYS[2], KEYS[4]])
    assert partly.value.found == {KEYS[0]: {"pk": KEYS[0].pk, "sk": KEYS[0].sk}}
    assert partly.value.unread == {KEYS[2]}


def test_given_a_key_that_stays_unread_then_what_lies_behind_its_chunk_is_not_asked_for() -> None:
    wanted = [Key("SH#0001", f"D#{number:03}") for number in range(KEYS_PER_CALL_MAX + 50)]
    client = ScriptedClient({**OK, "Responses": {}, "UnprocessedKeys": leftover(wanted[7])}, THROTTLED)
    with pytest.raises(PartlyRead) as partly:
        store_on(client).get(wanted)
    assert partly.value.unread == {wanted[7], *wanted[KEYS_PER_CALL_MAX:]}
    assert len(client.asked) == 2


@pytest.mark.parametrize("trouble", [THROTTLED, REFUSED, NO_ANSWER])
def test_given_trouble_on_the_way_then_reads_say_that_nothing_is_known(trouble: Exception) -> None:
    with pytest.raises(StoreUnavailable):
        store_on(ScriptedClient(trouble)).get(KEYS[:1])
    with pytest.raises(StoreUnavailable):
        store_on(ScriptedClient(trouble)).query(RangeRead("SH#0001", "D#", "D#~"))


def test_given_a_refused_read_then_its_author_hears_of_it() -> None:
    refusal = ClientError({"Error": {"Code": "ValidationException", "Message": "no"}}, "any")
    with pytest.raises(StoreRequestInvalid):
        store_on(ScriptedClient(refusal)).query(RangeRead("SH#0001", "D#", "D#~"))


@pytest.mark.parametrize("answer", [{}, OK, {**OK, "message": '{"Responses": {"tidegate": [{"pk"'}])
def test_given_an_answer_that_is_not_whole_then_it_does_not_read_as_nothing_there(answer: Answer) -> None:
    with pytest.raises(StoreUnavailable):
        store_on(ScriptedClient(answer)).get(KEYS[:1])
    with pytest.raises(StoreUnavailable):
        store_on(ScriptedClient(answer)).query(RangeRead("SH#0001", "D#", "D#~"))
    with pytest.raises(StoreUnavailable):
        store_on(ScriptedClient(answer)).write(PUTS[:1])


def test_given_a_page_with_more_behind_it_then_the_position_is_its_last_key() -> None:
    client = ScriptedClient({**OK, "Items": [attributes(KEYS[0])], "LastEvaluatedKey": attributes(KEYS[0])})
    page = store_on(client).query(RangeRead("SH#0001", "D#", "D#~", limit=1))
    assert page == Page(({"pk": KEYS[0].pk, "sk": KEYS[0].sk},), KEYS[0].sk)


def test_given_calls_then_the_observer_hears_of_each_with_its_outcome() -> None:
    heard: list[tuple[str, str]] = []
    client = ScriptedClient(OK, THROTTLED, {})
    store = DynamoStore(
        cast(ItemsClient, client), DynamoSettings(), lambda operation, outcome, _: heard.append((operation, outcome))
    )
    for _ in range(3):
        store.transact(Transaction("one", (Delete(KEYS[0]),), "t", KEYS[0]))
    assert heard == [("delete_item", "ok"), ("delete_item", "ThrottlingException"), ("delete_item", "ForeignAnswer")]


class Heard:
    """Adds up what calls cost."""

    def __init__(self, *answers: Answer) -> None:
        self.client = ScriptedClient(*answers)
        self.units: dict[tuple[str, str, str], float] = {}
        self.store = DynamoStore(cast(ItemsClient, self.client), DynamoSettings(), units=self._hear)

    def _hear(self, operation: str, table: str, kind: str, units: float) -> None:
        self.units[operation, table, kind] = self.units.get((operation, table, kind), 0) + units


def consumed(table: str, units: float) -> dict[str, Any]:
    return {"TableName": table, "CapacityUnits": units}


def test_given_somebody_who_listens_then_the_store_is_asked_what_calls_cost() -> None:
    both = [consumed("tidegate", 4.0), consumed("tidegate-history", 3.0)]
    heard = Heard(
        {**WRITTEN, "ConsumedCapacity": both},
        {**OK, "Items": [], "ConsumedCapacity": consumed("tidegate", 2.5)},
        {**OK, "ConsumedCapacity": consumed("tidegate", 1.0)},
    )
    heard.store.write(PUTS[:2])
    heard.store.query(RangeRead("SH#0001", "D#", "D#~"))
    heard.store.transact(Transaction("one", (Delete(KEYS[0]),), "t", KEYS[0]))
    assert [request["ReturnConsumedCapacity"] for _, request in heard.client.asked] == ["TOTAL"] * 3
    assert heard.units == {
        ("batch_write_item", "main", "write"): 4.0,
        ("batch_write_item", "history", "write"): 3.0,
        ("query", "main", "read"): 2.5,
        ("delete_item", "main", "write"): 1.0,
    }


def test_given_nobody_who_listens_then_no_figures_are_asked_for() -> None:
    client = ScriptedClient(OK)
    store_on(client).transact(Transaction("one", (Delete(KEYS[0]),), "t", KEYS[0]))
    assert "ReturnConsumedCapacity" not in client.asked[0][1]


def test_given_a_transaction_then_its_units_follow_from_its_sizes_and_not_from_the_answer() -> None:
    """DynamoDB Local gives the same figure whatever was written."""
    large = Put(KEYS[0], {**PUTS[0].item, "payload": "x" * 2_000})
    heard = Heard({**OK, "ConsumedCapacity": [consumed("tidegate", 12.0)]})
    heard.store.transact(Transaction("two", (large, Delete(KEYS[1])), "t", KEYS[0]))
    assert heard.units == {
        ("transact_write_items", "main", "write"): 4.0,
        ("transact_write_items", "history", "write"): 2.0,
    }


def test_given_a_refused_condition_then_it_is_charged_for_and_what_never_arrived_is_not() -> None:
    refused = ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "any")
    heard = Heard(refused, REFUSED, THROTTLED)
    for _ in range(3):
        heard.store.transact(Transaction("one", (Delete(KEYS[0]),), "t", KEYS[0]))
    assert heard.units == {("delete_item", "main", "write"): 1.0}
