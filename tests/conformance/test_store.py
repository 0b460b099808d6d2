"""Both stores keep the port's promises, and give every expression the same verdict.

Quirks of DynamoDB Local 2.6.1 that the store in memory does not copy, because AWS differs or is stricter:

- it takes `size` and a few other reserved words as bare attribute names;
- a page that ends exactly at its limit names no key to go on after when nothing follows (AWS names one).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.random_writes import RandomWrite, random_write
from tests.conformance.store_suite import StoreConformance
from tests.support.blocking_calls import BlockingStore, a_loop, called
from tests.support.tier import at_night
from tidegate_core.rows.store_operations import Action, Cancelled, Item, Key, Put, RawOutcome, Transaction
from tidegate_dynamo.async_store import AsyncDynamoStore
from tidegate_dynamo.client_factory import DynamoClient
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore
from tidegate_memory.expressions.attribute_types import is_same
from tidegate_memory.store import MemoryStore
from tidegate_ports.store import Store, StoreRequestInvalid

PAIRS = at_night(10_000, else_=1_500)
TRANSACTIONS = at_night(1_000, else_=300)
ACTIONS = 2
THREADS = 8


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        # The suite's transactions are about the store and have no witness to settle by.
        return MemoryStore(checks_witness=False)


class TestDynamoDb(StoreConformance):
    @pytest.fixture
    def store(self, dynamo_client: DynamoClient, dynamo_settings: DynamoSettings) -> Store:
        return DynamoStore(dynamo_client.items, dynamo_settings)


class TestDynamoDbOnALoop(StoreConformance):
    @pytest.fixture
    def store(self, dynamo_client: DynamoClient, dynamo_settings: DynamoSettings) -> Iterator[Store]:
        client = dynamo_client.on_loop
        assert client is not None
        with a_loop() as run:
            yield BlockingStore(run, AsyncDynamoStore(client, dynamo_settings))
            run(called(client.close))


@pytest.fixture
def stores(dynamo_client: DynamoClient, dynamo_settings: DynamoSettings) -> tuple[MemoryStore, DynamoStore]:
    return MemoryStore(checks_witness=False), DynamoStore(dynamo_client.items, dynamo_settings)


@pytest.mark.parametrize(
    ("transactions", "actions"),
    [
        pytest.param(PAIRS, 1, id="single writes"),
        pytest.param(TRANSACTIONS, ACTIONS, id="transactions of two"),
    ],
)
def test_given_random_items_and_expressions_then_both_stores_agree_on_verdict_and_result(
    stores: tuple[MemoryStore, DynamoStore], transactions: int, actions: int
) -> None:
    keys = [Key(f"R#{actions}#{number % 97}", f"{number:06}") for number in range(transactions * actions)]
    pairs = [random_write(number, key) for number, key in enumerate(keys)]
    groups = [pairs[start : start + actions] for start in range(0, len(pairs), actions)]
    remembered, real = (_verdicts(store, groups) for store in stores)
    items = [store.get(keys) for store in stores]

    verdicts = Counter(type(outcome).__name__ for outcome in remembered)
    assert min(verdicts.values()) > transactions / 20, f"the pairs are lopsided, so they prove little: {verdicts}"
    assert len(verdicts) == 3
    assert [
        (group, left, right)
        for group, left, right in zip(groups, remembered, real, strict=True)
        if not _is_same_outcome(left, right)
    ] == []
    assert [
        (pair, *(found.get(key) for found in items))
        for key, pair in zip(keys, pairs, strict=True)
        if not _is_same_item(*(found.get(key) for found in items))
    ] == []


def _verdicts(store: Store, groups: Sequence[Sequence[RandomWrite]]) -> list[RawOutcome | str]:
    befores = [Put(pair.action.key, pair.before) for group in groups for pair in group if pair.before is not None]
    assert not store.write(befores)

    def verdict(group: Sequence[RandomWrite]) -> RawOutcome | str:
        actions: tuple[Action, ...] = tuple(pair.action for pair in group)
        key = actions[0].key
        try:
            return store.transact(Transaction("random", actions, f"{key.pk}/{key.sk}", key))
        except StoreRequestInvalid:
            return "invalid"

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(verdict, groups))


def _is_same_outcome(left: RawOutcome | str, right: RawOutcome | str) -> bool:
    if not isinstance(left, Cancelled) or not isinstance(right, Cancelled):
        return left == right
    return [reason.code for reason in left.reasons] == [reason.code for reason in right.reasons] and all(
        _is_same_item(mine.item, other.item) for mine, other in zip(left.reasons, right.reasons, strict=True)
    )


def _is_same_item(left: Item | None, right: Item | None) -> bool:
    return is_same(left, right)
