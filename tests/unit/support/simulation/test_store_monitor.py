"""The judge of the store's writes trusts no condition: it objects to a former owner's write that the store took."""

from __future__ import annotations

import pytest

from tests.simulation.faults.store_faults import calm_store
from tests.simulation.monitors.store_monitor import StoreMonitor
from tests.simulation.runner.trace import Trace
from tests.simulation.world.observations import Record
from tests.simulation.world.store import SimStore
from tests.simulation.world.timeline import Timeline
from tidegate_core.rows.keys import lease, shard_pk
from tidegate_core.rows.store_operations import Item, Key, Put, Transaction

PRESENT, LATER, FORMER = "present/0.2/1", "present/0.2/2", "former/0.1/1"


@pytest.fixture
def record() -> Record:
    return Record()


@pytest.fixture
def store(record: Record) -> SimStore:
    timeline = Timeline(0)
    made = SimStore(timeline, Trace(timeline), calm_store())
    StoreMonitor(made, record)
    return made


def wrote(store: SimStore, name: str, token: str, key: Key, **fields: int) -> None:
    item: Item = {"pk": key.pk, "sk": key.sk, "w": token, **fields}
    store.memory.transact(Transaction(name, (Put(key, item),), token, key))


def test_given_a_write_of_a_former_owner_that_the_store_took_then_it_is_found(store: SimStore, record: Record) -> None:
    wrote(store, "acquire", PRESENT, lease(3), epoch=2)
    wrote(store, "admit", LATER, Key(shard_pk(3), "X#mine"))
    assert record.failures == []
    wrote(store, "admit", FORMER, Key(shard_pk(3), "X#late"))
    assert [each for each in record.failures if each.startswith(f"I5: admit {FORMER} was accepted")]


def test_given_an_epoch_that_goes_back_then_it_is_found(store: SimStore, record: Record) -> None:
    wrote(store, "acquire", PRESENT, lease(3), epoch=2)
    wrote(store, "acquire", FORMER, lease(3), epoch=1)
    assert [each for each in record.failures if "took epoch of" in each]
