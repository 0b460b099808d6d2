"""Rows that `tidegate migrate` writes, and the two rules that keep releases apart which misread each other (decision 26)."""

from __future__ import annotations

from unittest import mock

from tests.simulation.stories.stage import takes
from tests.support.builders import HOUR, MINUTE, NOW, SECOND, Doc, a_spec, an_apply
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.two_releases import TwoReleases
from tidegate_core.language.triggers.search import Search
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.schema_version import BOUNDS, FIRST, Readable, StoreSchema
from tidegate_core.rows.shared_limit import QueueEntry
from tidegate_core.rows.store_operations import Delete, Put, Transaction
from tidegate_core.writes.row_migration import MOVES
from tidegate_memory.store import MemoryStore

WAITER = QueueEntry(limit="LIMIT#flights#program#x", job_id="0000-one", satisfied_at=NOW, most=1, asked_at=NOW)
KEY = WAITER.key(0)
SEVENS: Doc = {
    "type": "cron",
    "dialect": "unix6",
    "expression": "30 */7 * * * *",
    "exclude": [{"type": "cron", "expression": "10-39 * * * *"}],
}


def a_migration(store: MemoryStore) -> Transaction:
    """Decided from what the store holds now, sent later."""
    item = store.peek(KEY)
    assert item is not None
    change = MOVES[0].change(item)
    assert change is not None
    return Transaction("migrate", (change,), "migrate/1", None)


def a_store_of_an_older_release() -> MemoryStore:
    store = MemoryStore()
    store.write([Put(KEY, {**to_item(WAITER, KEY), "rev": 1})])
    return store


def test_given_a_waiter_that_was_admitted_when_its_migration_arrives_then_the_row_stays_away() -> None:
    store = a_store_of_an_older_release()
    late = a_migration(store)
    store.write([Delete(KEY)])
    takes(store, late)
    assert store.peek(KEY) is None, "I6: an admitted job stays in the queue for ever, in a row that names nobody"


def test_given_a_row_that_its_owner_has_rewritten_when_its_migration_arrives_then_the_owners_row_stays() -> None:
    store = a_store_of_an_older_release()
    late = a_migration(store)
    store.write([Put(KEY, {**to_item(WAITER, KEY), "order": NOW - 1, "rev": 2})])
    takes(store, late)
    found = store.peek(KEY)
    assert found is not None
    assert found["order"] == NOW - 1, "I6: what the owner has written since is overwritten"


def test_given_a_version_that_is_being_raised_then_an_older_node_takes_no_shard_over() -> None:
    bench = ActorHarness(readable=Readable(FIRST, FIRST), writes=FIRST)
    said = to_item(StoreSchema(closing=BOUNDS), keys.SCHEMA_KEY)
    bench.store.write([Put(keys.SCHEMA_KEY, {**said, "rev": 1})])
    bench.run(SECOND)
    assert not bench.actor.is_serving, "I6: an older node serves what others are about to rewrite"


def test_given_a_search_that_was_cut_when_an_older_node_takes_over_then_nothing_fires_at_the_cut() -> None:
    def cut_soon(parts: int = 1) -> Search:
        return Search(3)

    with mock.patch.object(Search, "of_a_decision", cut_soon):
        bench = TwoReleases(StoreSchema())
        bench.run(SECOND)
        bench.request(an_apply(a_spec(trigger=SEVENS)))
        bench.run(10 * MINUTE)
        bench.is_taken_over(to_older=True)
        bench.run(HOUR)
    nominals = [row["nominal"] for row in bench.rows("L#")]
    wrong = [nominal for nominal in nominals if isinstance(nominal, int) and nominal % MINUTE != 30 * SECOND]
    assert wrong == [], "I6: a schedule fired where a search was cut"
