"""What is written of a rate that schedules share is taken by DynamoDB as by the store in memory, also where it is at its largest."""

from __future__ import annotations

from itertools import count

import pytest

from tests.support.builders import NOW
from tidegate_core.rows import keys
from tidegate_core.rows.shared_limit import GONE_MAX, SharedLimit
from tidegate_core.rows.store_operations import Applied, Transaction, Update
from tidegate_core.writes.limit_permits import mark_queue, offer_slots
from tidegate_core.writes.rate_counters import Counted, count_admission, take_back
from tidegate_dynamo.client_factory import DynamoClient
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore
from tidegate_memory.store import MemoryStore
from tidegate_ports.store import Store

RATE = keys.shared_rate("flights", "group", "conformance", 60_000, None)
TOKENS = count()


@pytest.fixture(params=["memory", "dynamodb"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore(checks_witness=False)
    client: DynamoClient = request.getfixturevalue("dynamo_client")
    settings: DynamoSettings = request.getfixturevalue("dynamo_settings")
    return DynamoStore(client.items, settings)


def takes(store: Store, update: Update) -> bool:
    return isinstance(store.transact(Transaction("admit", (update,), f"rates {next(TOKENS)}", None)), Applied)


def rate_in(store: Store) -> SharedLimit:
    return SharedLimit.of(store.get([RATE]).get(RATE))


def test_given_a_rate_at_its_largest_then_one_write_takes_all_out_that_counts_no_more(store: Store) -> None:
    for number in range(GONE_MAX):
        counted = Counted(RATE, NOW + number)
        assert takes(store, count_admission(counted, f"job-{number}", 1, SharedLimit(), NOW, forced=True))
    full = rate_in(store)
    assert (full.in_use, len(full.counts)) == (GONE_MAX, GONE_MAX)
    later = NOW + GONE_MAX
    assert takes(store, mark_queue(RATE, "mark"))
    assert takes(store, offer_slots(RATE, ["job"]))
    offered = rate_in(store)
    last = count_admission(Counted(RATE, later + 60_000), "job", 1, offered, later)
    assert takes(store, last)
    assert not takes(store, last)
    assert rate_in(store) == SharedLimit(in_use=1, counts={later + 60_000: 1}, queued="mark")
    assert takes(store, take_back(RATE, [Counted(RATE, later + 60_000, seen=1)]))
    assert not takes(store, take_back(RATE, [Counted(RATE, later + 60_000, seen=1)]))
    assert takes(store, offer_slots(RATE, ["next"], rate_in(store).expired(later)))
    assert rate_in(store) == SharedLimit(offered=frozenset({"next"}), queued="mark")
