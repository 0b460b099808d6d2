"""The watch of a cluster object: it polls, wakes on demand, and calls its listener after each read."""

from __future__ import annotations

from tests.support.builders import SECOND
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.commands.source_commands import SOURCES
from tidegate_core.engine.actor_inputs import Tick
from tidegate_core.engine.operations import Operation
from tidegate_core.ownership.cluster_object_watch import CHECK_MS, ClusterObjectWatch
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.source_list import Sources, StoredSources
from tidegate_core.rows.store_operations import Put

POLL_MS = CHECK_MS + CHECK_MS // 10 + SECOND // 10


class Watched:
    """A watch that runs in an actor, with the versions that its listener got."""

    def __init__(self) -> None:
        self.bench = ActorHarness()
        self.bench.run(SECOND)
        self.seen: list[int] = []
        self.watch = ClusterObjectWatch(self.bench.actor._host, SOURCES, self._listen)
        self.bench.actor._host.operations.start(self.watch.serve())
        self.bench.give(Tick())

    def _listen(self, sources: Sources, _: int) -> Operation[None]:
        self.seen.append(sources.version)
        yield from ()

    def store(self, version: int) -> None:
        item = to_item(StoredSources.of(Sources(version=version)), keys.SOURCES_KEY)
        self.bench.store.write([Put(keys.SOURCES_KEY, {**item, "rev": version})])


def test_given_a_change_without_a_wake_up_then_the_next_poll_finds_it() -> None:
    watched = Watched()
    assert watched.seen == [0]
    watched.store(3)
    watched.bench.run(POLL_MS)
    assert watched.seen == [0, 3]
    watched.bench.run(POLL_MS)
    assert watched.seen == [0, 3, 3]


def test_given_wake_ups_then_each_reads_at_once_and_none_adds_an_alarm() -> None:
    watched = Watched()
    for version in (1, 2, 3):
        watched.store(version)
        watched.watch.check()
        watched.bench.give(Tick())
    assert watched.seen == [0, 1, 2, 3]
    watched.bench.run(POLL_MS)
    assert watched.seen == [0, 1, 2, 3, 3]


def test_given_an_older_item_then_the_known_version_stays() -> None:
    watched = Watched()
    watched.store(2)
    watched.watch.check()
    watched.bench.give(Tick())
    watched.store(1)
    watched.watch.check()
    watched.bench.give(Tick())
    assert watched.seen == [0, 2, 2]


def test_given_it_is_closed_then_it_reads_nothing_more() -> None:
    watched = Watched()
    watched.watch.close()
    watched.bench.run(2 * POLL_MS)
    assert watched.seen == [0]
