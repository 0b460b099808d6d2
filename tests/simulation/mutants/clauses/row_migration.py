"""Clauses of what `tidegate migrate` writes, and the two rules that keep releases apart which misread each other (decision 26)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unittest import mock

from tests.simulation.mutants.clauses.clause_mutant import dropped
from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.stories.stage import takes
from tests.support.builders import HOUR, MINUTE, NOW, SECOND, Doc, a_spec, an_apply
from tests.support.harness.actor_harness import Bench
from tests.support.harness.two_releases import TwoReleases
from tidegate_core.decisions.run_plane import control, fire
from tidegate_core.migrating import gate
from tidegate_core.migrating.moves import MOVES
from tidegate_core.records.codec import to_item
from tidegate_core.records.limits import Waiter
from tidegate_core.records.schema import BOUNDS, FIRST, Readable, StoreSchema
from tidegate_core.store import keys
from tidegate_core.store.values import Delete, Put, Transaction
from tidegate_core.transactions import unit_of_work
from tidegate_core.triggers.search import Search
from tidegate_memory.store import MemoryStore

WAITER = Waiter(limit="LIMIT#flights#program#x", job_id="0000-one", satisfied_at=NOW, most=1, asked_at=NOW)
KEY = WAITER.key(0)
SEVENS: Doc = {
    "type": "cron",
    "dialect": "unix6",
    "expression": "30 */7 * * * *",
    "exclude": [{"type": "cron", "expression": "10-39 * * * *"}],
}


def a_move(store: MemoryStore) -> Transaction:
    """As it was decided from what the store holds now."""
    item = store.peek(KEY)
    assert item is not None
    change = MOVES[0].change(item)
    assert change is not None
    return Transaction("migrate", (change,), "migrate/1", None)


def a_store_of_before() -> MemoryStore:
    store = MemoryStore()
    store.write([Put(KEY, {**to_item(WAITER, KEY), "rev": 1})])
    return store


def a_row_is_moved_that_has_gone() -> Iterable[str]:
    """Its job was admitted between the read and the write."""
    store = a_store_of_before()
    late = a_move(store)
    store.write([Delete(KEY)])
    takes(store, late)
    if store.peek(KEY) is not None:
        yield "I6: a job that is admitted is in the queue for ever, in a row that names nobody"


def a_row_is_moved_that_its_owner_has_written_anew() -> Iterable[str]:
    store = a_store_of_before()
    late = a_move(store)
    store.write([Put(KEY, {**to_item(WAITER, KEY), "order": NOW - 1, "rev": 2})])
    takes(store, late)
    found = store.peek(KEY)
    if found is None or found["order"] != NOW - 1:
        yield "I6: what its owner has written since is overwritten"


def a_node_takes_over_what_it_cannot_read() -> Iterable[str]:
    bench = Bench(readable=Readable(FIRST, FIRST), writes=FIRST)
    said = to_item(StoreSchema(closing=BOUNDS), keys.SCHEMA_KEY)
    bench.store.write([Put(keys.SCHEMA_KEY, {**said, "rev": 1})])
    bench.run(SECOND)
    if bench.actor.is_serving:
        yield "I6: an older node serves what others are about to write anew"


def an_older_node_takes_over_where_a_search_was_cut() -> Iterable[str]:
    def cut_soon(parts: int = 1) -> Search:
        return Search(3)

    with mock.patch.object(Search, "of_a_decision", cut_soon):
        bench = TwoReleases(StoreSchema())
        bench.run(SECOND)
        bench.request(an_apply(a_spec(trigger=SEVENS)))
        bench.run(10 * MINUTE)
        bench.is_taken_over(to_older=True)
        bench.run(HOUR)
    for row in bench.rows("L#"):
        nominal = row["nominal"]
        assert isinstance(nominal, int)
        if nominal % MINUTE != 30 * SECOND:
            yield f"I6: it fired at {nominal}, where a search was cut"


def saying_nothing(_: Any) -> Any:
    return lambda schema, readable=None: None


def leaving_bounds(_: Any) -> Any:
    return lambda unit, state, trigger: state


def holding_nothing(_: Any) -> Any:
    return lambda owners: {}


def finding_nothing_new(_: Any) -> Any:
    return lambda record, version: iter(())


CLAUSES_OF_MIGRATION = (
    dropped(
        "of_an_older_version",
        "attribute_exists(#pk)",
        "a row that was removed meanwhile comes back without a job",
        breaks="I6",
        scenario=a_row_is_moved_that_has_gone,
    ),
    dropped(
        "of_an_older_version",
        "attribute_not_exists(#added)",
        "a row that its owner has written anew is set back",
        breaks="I6",
        scenario=a_row_is_moved_that_its_owner_has_written_anew,
    ),
    Mutant(
        "no version asked",
        "a node of an older release takes shards over while the version of rows is raised",
        breaks="I6",
        patches=(Patch(StoreSchema, "refusal", saying_nothing),),
        scenario=a_node_takes_over_what_it_cannot_read,
    ),
    Mutant(
        "no gate",
        "a bound is written while nodes of an older release may take it for an instant",
        breaks="I6",
        patches=(Patch(fire, "as_all_read_it", leaving_bounds), Patch(control, "as_all_read_it", leaving_bounds)),
        beside=(Patch(unit_of_work, "newer_fields", finding_nothing_new),),
        scenario=an_older_node_takes_over_where_a_search_was_cut,
    ),
    Mutant(
        "leases unread",
        "a node of an older release that stands still is not counted: it goes on before anybody has taken over what it holds",
        breaks="I6",
        patches=(Patch(gate, "_by_owner", holding_nothing),),
        trap="two_releases",
        within=30,
        directed=(6,),
    ),
)
