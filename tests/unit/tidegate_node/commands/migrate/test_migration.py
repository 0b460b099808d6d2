"""`tidegate migrate` on a store in memory: killed anywhere, beside owners that write, with processes of two releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest

from tidegate_core.rows import keys
from tidegate_core.rows.effects import Committed, Refused, Unavailable
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.keys import SCHEMA_KEY
from tidegate_core.rows.node_status import NODES_MAX, SILENT_MS, NodeStatus
from tidegate_core.rows.schema_version import FIRST, NEWEST, Readable, StoreSchema
from tidegate_core.rows.shared_limit import QueueEntry
from tidegate_core.rows.store_operations import Delete, Item, Key, Put, Transaction
from tidegate_core.writes.row_migration import Place
from tidegate_core.writes.settlement import Settlement
from tidegate_memory.store import MemoryStore
from tidegate_node.commands.migrate import migration
from tidegate_node.commands.migrate.migrate_command import told
from tidegate_node.commands.migrate.migration import PAGE, InTheWay, Migration
from tidegate_node.startup_checks import NotYet, StartRefused

NOW = 1_763_000_000_000
SHARDS = 3
LIMIT = Key("LIMIT#flights#program#x", "LIMIT")
OLDER, NEWER = {"reads": FIRST, "writes": FIRST}, {"reads": NEWEST, "writes": NEWEST}


class Killed(BaseException):
    """The process ended there."""


@dataclass
class Cluster:
    """A store of the first version, with rows of queues in it.

    Attributes:
        before: Called before each transaction that a migration sends.
        kill_after: So many calls of the store later the process is killed.
        waits: What happens while it waits for nodes, look by look; then its patience is over.
    """

    store: MemoryStore = field(default_factory=MemoryStore)
    before: Callable[[Transaction], None] = lambda _: None
    kill_after: int | None = None
    waits: list[Callable[[], None]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    calls: int = 0
    tokens: Iterator[int] = field(default_factory=count)

    def migration(self, **more: Any) -> Migration:
        return Migration(
            self.store,
            self.settle,
            SHARDS,
            pause=self._called,
            wait=self._wait,
            now=lambda: NOW,
            token=lambda: f"t{next(self.tokens)}",
            say=self.said.append,
            **more,
        )

    def settle(self, transaction: Transaction) -> Committed | Refused | Unavailable:
        self.before(transaction)
        self._called()
        _, verdict = Settlement(transaction).answered(self.store.transact(transaction))
        assert isinstance(verdict, Committed | Refused | Unavailable)
        return verdict

    def _called(self) -> None:
        self.calls += 1
        if self.kill_after is not None and self.calls > self.kill_after:
            raise Killed

    def _wait(self) -> bool:
        if not self.waits:
            return False
        self.waits.pop(0)()
        return True

    # -- what is there ----------------------------------------------------------------------------------------------------

    def lay(self, shard: int, job_id: str, **fields: Any) -> Key:
        row = QueueEntry(limit=LIMIT.pk, job_id=job_id, satisfied_at=NOW, most=2, asked_at=NOW, **fields)
        self.store.write([Put(row.key(shard), {**to_item(row, row.key(shard)), "rev": 1, "w": "owner"})])
        return row.key(shard)

    def node(self, owner: str, *shards: int, seen: int = NOW, **card: Any) -> None:
        """A process with a card, and shards."""
        found = NodeStatus(owner=owner, node=f"n-{owner}", version="0", tzdata="", started_at=0, seen=seen, **card)
        self.store.write([Put(keys.node_status(owner), to_item(found, keys.node_status(owner)))])
        self.has(owner, *shards)

    def has(self, owner: str, *shards: int) -> None:
        for key in map(keys.lease, shards):
            self.store.write([Put(key, {"pk": key.pk, "sk": key.sk, "owner": owner, "epoch": 1})])

    def is_gone(self, owner: str) -> None:
        self.store.write([Delete(keys.node_status(owner))])

    @property
    def schema(self) -> StoreSchema:
        return StoreSchema.of(self.store.peek(SCHEMA_KEY))

    def waiters(self) -> list[Item]:
        return sorted(
            (item for item in self.store.items("main") if str(item["sk"]).startswith("IW#")),
            key=lambda item: (str(item["pk"]), str(item["sk"])),
        )


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    for shard in range(SHARDS):
        for number in range(3):
            made.lay(shard, f"job-{number}")
    made.lay(1, "job-new", order=NOW + 7)
    return made


def done(cluster: Cluster) -> None:
    assert cluster.schema == StoreSchema(writes=NEWEST, rows_from=NEWEST)
    rows = cluster.waiters()
    assert [row["order"] for row in rows if row["job_id"] != "job-new"] == [NOW] * 9
    assert [row["order"] for row in rows if row["job_id"] == "job-new"] == [NOW + 7]


# -- rows -----------------------------------------------------------------------------------------------------------------


def test_given_rows_of_an_older_version_then_they_are_moved_and_their_owners_writes_still_fit(cluster: Cluster) -> None:
    before = cluster.waiters()
    migration = cluster.migration()
    assert migration.run(finish=False) == StoreSchema()
    assert migration.moved == {"order of waiters": 9}
    assert [{**item, "order": None} for item in cluster.waiters()] == [{**item, "order": None} for item in before]
    assert [from_item(QueueEntry, item).order for item in cluster.waiters()].count(None) == 0
    again = cluster.migration()
    again.run(finish=False)
    assert again.moved == {}


def test_given_a_dry_run_then_it_says_what_it_would_do_and_nothing_is_written(cluster: Cluster) -> None:
    cluster.node("b", 0, 1, 2, **NEWER)
    before = sorted(map(str, cluster.store.items("main")))
    migration = cluster.migration(dry_run=True)
    schema = migration.run(finish=True)
    assert sorted(map(str, cluster.store.items("main"))) == before
    assert told(migration, schema)[0] == "9 rows would be moved: order of waiters"
    assert "would write version" in cluster.said[0]


def test_given_more_rows_than_a_page_then_all_are_moved() -> None:
    cluster = Cluster()
    for number in range(2 * PAGE + 5):
        cluster.lay(2, f"job-{number:04d}")
    migration = cluster.migration()
    migration.run(finish=False)
    assert migration.moved.total() == 2 * PAGE + 5
    assert all("order" in row for row in cluster.waiters())


def test_given_owners_that_write_or_remove_a_row_meanwhile_then_theirs_stands(cluster: Cluster) -> None:
    rows = [Key(str(item["pk"]), str(item["sk"])) for item in cluster.waiters()]

    def meanwhile(transaction: Transaction) -> None:
        key = transaction.actions[0].key
        if key == rows[0]:
            cluster.store.write([Delete(key)])
        elif key == rows[1]:
            item = cluster.store.peek(key)
            assert item is not None
            cluster.store.write([Put(key, {**item, "order": 99, "rev": 2})])

    cluster.before = meanwhile
    migration = cluster.migration()
    migration.run(finish=False)
    assert migration.moved.total() == 7
    assert cluster.store.peek(rows[0]) is None
    assert cluster.waiters()[0]["order"] == 99


def test_given_a_silent_store_then_it_is_to_be_run_again(cluster: Cluster) -> None:
    migration = cluster.migration()
    migration.settle = lambda _: Unavailable("away")
    with pytest.raises(NotYet, match="away"):
        migration.run(finish=False)


# -- killed ---------------------------------------------------------------------------------------------------------------


def _calls_of(finish: bool) -> int:
    cluster = Cluster()
    for shard in range(SHARDS):
        for number in range(3):
            cluster.lay(shard, f"job-{number}")
    cluster.lay(1, "job-new", order=NOW + 7)
    cluster.node("b", 0, 1, 2, **NEWER)
    cluster.migration().run(finish=finish)
    return cluster.calls


def test_given_a_kill_at_any_call_then_what_is_run_next_comes_to_the_same_end(cluster: Cluster) -> None:
    calls = _calls_of(finish=True)
    assert calls > 25
    for kill_after in range(calls):
        killed = Cluster(kill_after=kill_after)
        killed.store.write([Put(_key(item), item) for item in cluster.store.items("main")])
        killed.node("b", 0, 1, 2, **NEWER)
        with pytest.raises(Killed):
            killed.migration().run(finish=True)
        # Never said before it is true: rows of before are there as long as it says so.
        assert killed.schema.rows_from == FIRST or all("order" in row for row in killed.waiters())
        killed.kill_after = None
        killed.migration().run(finish=kill_after % 2 == 0 or killed.schema.writes == FIRST)
        done(killed)


def _key(item: Item) -> Key:
    return Key(str(item["pk"]), str(item["sk"]))


def test_given_a_kill_in_the_middle_of_many_rows_then_the_next_one_goes_on_behind_what_was_done() -> None:
    cluster = Cluster()
    for number in range(2 * PAGE):
        cluster.lay(1, f"job-{number:04d}")
    cluster.kill_after = 2 * PAGE + 50  # Two calls a row.
    with pytest.raises(Killed):
        cluster.migration().run(finish=False)
    assert Place.parse(cluster.schema.cursor or "").shard == 1
    cluster.kill_after, before = None, cluster.calls
    cluster.migration().run(finish=False)
    assert cluster.calls - before < 2 * PAGE + 50
    assert cluster.schema == StoreSchema()
    assert all("order" in row for row in cluster.waiters())


def test_given_a_pass_that_was_cut_before_the_version_was_raised_then_rows_that_older_nodes_wrote_behind_it_move_too(
    cluster: Cluster,
) -> None:
    cluster.kill_after = 25
    with pytest.raises(Killed):
        cluster.migration().run(finish=False)
    assert cluster.schema.cursor is not None
    cluster.kill_after = None
    cluster.lay(0, "job-0")  # An older node writes it anew.
    cluster.node("b", 0, 1, 2, **NEWER)
    cluster.migration().run(finish=True)
    done(cluster)


# -- the gate -------------------------------------------------------------------------------------------------------------


def test_given_only_nodes_of_the_newer_release_then_the_version_is_raised_and_rows_of_before_are_gone(
    cluster: Cluster,
) -> None:
    cluster.node("b", 0, 1, 2, **NEWER)
    cluster.migration().run(finish=True)
    done(cluster)
    again = cluster.migration()
    assert told(again, again.run(finish=True)) == [f"all rows are of version {NEWEST}, the newest of this release"]


@pytest.mark.parametrize(
    ("owner", "card", "said"),
    [
        pytest.param("a", OLDER, "n-a", id="an older node lives"),
        pytest.param("a", {**OLDER, "seen": NOW - 2 * SILENT_MS}, "says nothing", id="a silent one holds a shard"),
        pytest.param("c", None, "says nothing", id="a shard's owner has no card"),
    ],
)
def test_given_an_older_process_then_nothing_is_raised_and_it_is_named(
    cluster: Cluster, owner: str, card: dict[str, int] | None, said: str
) -> None:
    cluster.node("b", 0, 1, **NEWER)
    if card is None:
        cluster.has(owner, 2)
    else:
        cluster.node(owner, 2, **card)
    with pytest.raises(InTheWay, match=said):
        cluster.migration().run(finish=True)
    assert cluster.schema == StoreSchema()


def test_given_an_older_process_behind_a_page_of_cards_of_the_dead_then_nothing_is_raised(cluster: Cluster) -> None:
    """Found in review: of more cards than a page holds the rest was not looked at."""
    for number in range(NODES_MAX):
        cluster.node(f"0{number:04d}", seen=NOW - 2 * SILENT_MS, **NEWER)
    cluster.node("a", **OLDER)
    cluster.node("b", 0, 1, 2, **NEWER)
    with pytest.raises(InTheWay, match="n-a"):
        cluster.migration().run(finish=True)
    assert cluster.schema == StoreSchema()


def test_given_more_cards_than_are_read_then_it_does_not_say_that_none_of_them_is_in_the_way(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "PAGES_MAX", 1)
    for number in range(NODES_MAX + 1):
        cluster.node(f"0{number:04d}", seen=NOW - 2 * SILENT_MS, **NEWER)
    with pytest.raises(NotYet, match="cards of processes"):
        cluster.migration().run(finish=True)
    assert cluster.schema == StoreSchema()


def test_given_a_silent_older_process_that_holds_nothing_then_it_is_not_in_the_way(cluster: Cluster) -> None:
    cluster.node("a", seen=NOW - 2 * SILENT_MS, **OLDER)
    cluster.node("b", 0, 1, 2, **NEWER)
    cluster.migration().run(finish=True)
    done(cluster)


def test_given_an_older_node_that_takes_over_while_the_version_is_raised_then_it_is_taken_back(
    cluster: Cluster,
) -> None:
    """It read the item before it said `closing`, so its lease is there by now."""
    cluster.node("b", 0, 1, 2, **NEWER)

    def meanwhile(transaction: Transaction) -> None:
        if transaction.name == "schema":
            cluster.before = lambda _: None
            cluster.node("a", 2, **OLDER)

    cluster.before = meanwhile
    with pytest.raises(InTheWay, match="n-a"):
        cluster.migration().run(finish=True)
    assert cluster.schema == StoreSchema()


def test_given_a_word_that_was_left_by_one_that_was_killed_then_it_is_taken_back_where_an_older_node_lives(
    cluster: Cluster,
) -> None:
    cluster.node("a", 0, 1, 2, **OLDER)
    cluster.store.write([Put(SCHEMA_KEY, {**to_item(StoreSchema(closing=NEWEST), SCHEMA_KEY), "rev": 4})])
    with pytest.raises(InTheWay):
        cluster.migration().run(finish=True)
    assert cluster.schema == StoreSchema()


def test_given_nodes_that_have_not_heard_yet_then_it_waits_before_it_says_that_nothing_of_before_is_written(
    cluster: Cluster,
) -> None:
    cluster.node("b", 0, 1, 2, reads=NEWEST, writes=FIRST)
    cluster.waits = [
        lambda: assert_writes(cluster),
        lambda: cluster.node("b", 0, 1, 2, **NEWER),
    ]
    cluster.migration().run(finish=True)
    assert cluster.waits == []
    done(cluster)


def assert_writes(cluster: Cluster) -> None:
    assert (cluster.schema.writes, cluster.schema.rows_from) == (NEWEST, FIRST)
    cluster.lay(0, "job-0")  # That node's, still in the older form.


def test_given_nodes_that_never_hear_then_it_says_who_and_is_run_again_without_a_gate(cluster: Cluster) -> None:
    cluster.node("b", 0, 1, 2, reads=NEWEST, writes=FIRST)
    with pytest.raises(NotYet, match="n-b"):
        cluster.migration().run(finish=True)
    assert (cluster.schema.writes, cluster.schema.rows_from) == (NEWEST, FIRST)
    cluster.node("b", 0, 1, 2, **NEWER)
    cluster.migration().run(finish=False)
    done(cluster)


def test_given_another_migration_at_work_then_one_of_them_stops(cluster: Cluster) -> None:
    cluster.node("b", 0, 1, 2, **NEWER)

    def meanwhile(transaction: Transaction) -> None:
        if transaction.name == "schema":
            cluster.before = lambda _: None
            cluster.migration().run(finish=True)

    cluster.before = meanwhile
    with pytest.raises(NotYet, match="another"):
        cluster.migration().run(finish=True)
    done(cluster)


@pytest.mark.parametrize("finish", [True, False])
def test_given_a_release_that_does_not_fit_then_it_changes_nothing(cluster: Cluster, finish: bool) -> None:
    newer = StoreSchema(writes=NEWEST + 1, rows_from=NEWEST)
    cluster.store.write([Put(SCHEMA_KEY, {**to_item(newer, SCHEMA_KEY), "rev": 1})])
    with pytest.raises(StartRefused, match="newer release"):
        cluster.migration().run(finish=finish)
    assert cluster.schema == newer
    older = replace(newer, writes=FIRST, rows_from=FIRST)
    cluster.store.write([Put(SCHEMA_KEY, {**to_item(older, SCHEMA_KEY), "rev": 1})])
    with pytest.raises(StartRefused, match="release before this one"):
        cluster.migration(readable=Readable(NEWEST, NEWEST + 1)).run(finish=finish)
    assert cluster.schema == older
