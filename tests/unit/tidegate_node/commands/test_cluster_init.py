"""`tidegate init`: makes what is missing, changes nothing that is there, and `--check` only looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.keys import MAP_KEY, SCHEMA_KEY
from tidegate_core.rows.schema_version import FIRST, NEWEST, StoreSchema
from tidegate_core.rows.store_operations import Delete, Item, Key, Put, Transaction
from tidegate_core.writes.partition_map import map_of
from tidegate_memory.store import MemoryStore
from tidegate_node.commands.cluster_init import initialise_cluster
from tidegate_node.startup_checks import Difference, NotYet, StartRefused, TopicNames
from tidegate_ports.bus import Topic

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings

NAMES = TopicNames("r", "e", "p", "receipts", "runs", "r.dlq", "e.dlq", "runs.dlq")


@dataclass
class Bricks:
    """Counts what is made."""

    store: MemoryStore
    made: list[str] = field(default_factory=list)
    found: Sequence[Difference] = ()
    answer: Unavailable | None = None
    quicker: Transaction | None = None
    nodes_have: frozenset[int] | None = None

    def tables(self) -> Sequence[Difference]:
        return self.found

    def topics(self) -> Sequence[Difference]:
        return ()

    def make_tables(self) -> None:
        self.made.append("tables")

    def make_topics(self) -> None:
        self.made.append("topics")

    def held(self, topic: str) -> frozenset[int] | None:
        assert topic == NAMES.requests
        return self.nodes_have

    def items(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        return self.store.get(keys)

    def commit(self, transaction: Transaction) -> Committed | Refused | Unavailable:
        if self.answer is not None:
            return self.answer
        self.made.append(transaction.name)
        self.store.transact(transaction)
        return Committed()


def _run(around: Surroundings, bricks: Bricks, shards: int = 8, check: bool = False) -> list[Difference]:
    return initialise_cluster(shards, NAMES, bricks, around.bus, check=check)


def test_given_nothing_then_everything_is_made_and_a_second_time_nothing_changes(around: Surroundings) -> None:
    bricks = Bricks(around.store)

    assert _run(around, bricks) == []
    assert bricks.made == ["tables", "topics", "map"]
    assert _run(around, bricks, shards=64) == []

    assert bricks.made == ["tables", "topics", "map", "tables", "topics"]
    assert map_of(around.store.get([MAP_KEY])[MAP_KEY]).shards == 8


def test_given_a_check_then_nothing_is_made_and_what_is_missing_is_said(around: Surroundings) -> None:
    bricks = Bricks(around.store)

    (difference,) = _run(around, bricks, check=True)

    assert "MAP" in difference.text
    assert bricks.made == []


def test_given_unsafe_differences_then_no_map_is_made_on_top_of_them(around: Surroundings) -> None:
    wrong = Difference("topic r has the wrong time", unsafe=True)
    bricks = Bricks(around.store, found=[wrong])

    assert _run(around, bricks) == [wrong]
    assert around.store.get([MAP_KEY]) == {}


def test_given_safe_differences_then_the_map_is_made_and_they_are_returned(around: Surroundings) -> None:
    odd = Difference("retention is shorter", unsafe=False)

    assert _run(around, Bricks(around.store, found=[odd])) == [odd]
    assert MAP_KEY in around.store.get([MAP_KEY])


def test_given_too_few_shards_then_it_is_refused(around: Surroundings) -> None:
    with pytest.raises(StartRefused, match="shards is 3"):
        _run(around, Bricks(around.store), shards=3)


def test_given_topics_that_nodes_of_other_tables_read_then_no_map_is_made(around: Surroundings) -> None:
    """Found in review: another table prefix on the same Kafka made a second cluster in one group, each with half of the requests."""
    with pytest.raises(StartRefused, match=r"another cluster.*kafka\.topic_prefix, kafka\.group"):
        _run(around, Bricks(around.store, nodes_have=frozenset({0})))
    assert around.store.get([MAP_KEY]) == {}


def test_given_nodes_that_serve_then_init_runs_beside_them(around: Surroundings) -> None:
    _run(around, Bricks(around.store))

    assert _run(around, Bricks(around.store, nodes_have=frozenset({0, 1}))) == []


def test_given_an_unknown_fate_of_the_write_then_it_says_to_try_again(around: Surroundings) -> None:
    with pytest.raises(NotYet):
        _run(around, Bricks(around.store, answer=Unavailable("store")))


def _set_schema(bricks: Bricks, schema: StoreSchema | None) -> None:
    bricks.store.write([Delete(SCHEMA_KEY) if schema is None else Put(SCHEMA_KEY, to_item(schema, SCHEMA_KEY))])


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        pytest.param(None, "rows are written in version 1", id="of a release that knew of no versions"),
        pytest.param(StoreSchema(writes=NEWEST, rows_from=FIRST), "some may be of version 1", id="not all rows moved"),
    ],
)
def test_given_an_older_version_of_rows_then_a_check_names_migrate_and_init_goes_on(
    around: Surroundings, schema: StoreSchema | None, said: str
) -> None:
    bricks = Bricks(around.store)
    assert _run(around, bricks) == []
    _set_schema(bricks, schema)

    (difference,) = _run(around, bricks, check=True)

    assert said in difference.text
    assert "tidegate migrate --finish" in difference.text
    assert not difference.unsafe
    assert _run(around, bricks) == []


@pytest.mark.parametrize("check", [False, True])
def test_given_a_newer_version_of_rows_then_a_newer_release_is_named(around: Surroundings, check: bool) -> None:
    bricks = Bricks(around.store)
    _run(around, bricks)
    _set_schema(bricks, StoreSchema(writes=NEWEST + 1, rows_from=NEWEST))

    (difference,) = _run(around, bricks, check=check)

    assert "item SCHEMA" in difference.text
    assert "run the newer release" in difference.text
    assert difference.unsafe


def test_given_a_check_then_a_requests_topic_that_was_made_anew_is_said_and_nothing_is_written(
    around: Surroundings,
) -> None:
    bricks = Bricks(around.store)
    _run(around, bricks)
    made = list(bricks.made)
    before = around.store.get([MAP_KEY])
    count = map_of(before[MAP_KEY]).topic_partitions
    around.bus.topics[NAMES.requests] = Topic(NAMES.requests, "cd" * 16, count)

    (difference,) = _run(around, bricks, check=True)

    assert "is another one than the map's" in difference.text
    assert bricks.made == made
    assert around.store.get([MAP_KEY]) == before


def test_given_all_as_it_should_be_then_a_check_says_nothing(around: Surroundings) -> None:
    bricks = Bricks(around.store)
    _run(around, bricks)
    assert _run(around, bricks, check=True) == []
