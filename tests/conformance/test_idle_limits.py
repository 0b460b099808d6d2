"""A limit of a key is removed by DynamoDB, as by the store in memory, when nobody uses it and nobody waits, and not before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import pytest

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Action, Applied, Key, Transaction
from tidegate_core.writes.limit_permits import (
    Permit,
    close_queue,
    mark_queue,
    offer_slots,
    remove_idle,
    return_permits,
    take_permit,
)
from tidegate_dynamo.client_factory import DynamoClient
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore
from tidegate_memory.store import MemoryStore
from tidegate_ports.store import Store

RUN = "0000-run"
TOKENS = count()


@pytest.fixture(params=["memory", "dynamodb"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore(checks_witness=False)
    client: DynamoClient = request.getfixturevalue("dynamo_client")
    settings: DynamoSettings = request.getfixturevalue("dynamo_settings")
    return DynamoStore(client.items, settings)


def takes(store: Store, *actions: Action) -> bool:
    return isinstance(store.transact(Transaction("idle", actions, f"idle {next(TOKENS)}", None)), Applied)


def used(limit: Key) -> Sequence[Action]:
    return take_permit(Permit.of(limit, RUN, 1), 1)


def given_back(limit: Key) -> Action:
    return return_permits(limit, [Permit.of(limit, RUN, 1)])


@pytest.mark.parametrize(
    ("story", "is_idle"),
    [
        pytest.param(lambda _: [], True, id="never used"),
        pytest.param(lambda limit: [*used(limit)], False, id="in use"),
        pytest.param(lambda limit: [*used(limit), given_back(limit)], True, id="given back"),
        pytest.param(lambda limit: [mark_queue(limit, "m")], False, id="waited for"),
        pytest.param(lambda limit: [*used(limit), mark_queue(limit, "m"), given_back(limit)], False, id="is offered"),
        pytest.param(
            lambda limit: [mark_queue(limit, "m"), close_queue(limit, "m")], True, id="not waited for any more"
        ),
        pytest.param(lambda limit: [offer_slots(limit, [RUN])], True, id="an offer that came late, for nobody"),
    ],
)
def test_given_a_limit_then_it_is_removed_when_it_is_idle_and_can_be_used_anew(
    store: Store, story: Callable[[Key], Sequence[Action]], is_idle: bool
) -> None:
    limit = keys.shared_limit("flights", "key", f"idle {next(TOKENS)}")
    for action in story(limit):
        assert takes(store, action)
    assert takes(store, remove_idle(limit)) == is_idle
    assert is_idle != (limit in store.get([limit]))
    if is_idle:
        assert takes(store, remove_idle(limit))
        assert takes(store, *used(limit))
