"""The audit of finished worlds: whatever befell them, it reports no difference; and one as soon as a row of them is gone.

Stronger than it looks: production's own invariants are judged from what users saw, and these from what the store says of itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.simulation.faults.small_limits import ALWAYS_TURNED
from tests.simulation.runner import runner
from tests.simulation.runner.runner import run
from tests.simulation.world.cluster import CLUSTER_ID
from tests.simulation.world.world import World, build
from tests.support.tier import at_night
from tidegate_core.explain.audit.audit_shard import asked_for, exit_code_of, judge_shard
from tidegate_core.explain.audit.delivered_records import Seen
from tidegate_core.explain.audit.findings import Findings
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.messages.wire import checkpoints
from tidegate_core.rows.store_operations import Delete, Key, Put
from tidegate_core.writes.partition_map import ClusterMap, put_first_map
from tidegate_node.commands.audit.message_reader import read_messages
from tidegate_node.commands.audit.shard_reader import Reader, read_shard

SEEDS_PER_TEST = at_night(5, else_=2)
SEEDS = range(0, at_night(20, else_=2), SEEDS_PER_TEST)
COUNTED_MIN = 4 * SEEDS_PER_TEST
"""Of each kind: where fewer were counted, the audit has looked at nothing."""
SETTLED_MS = 2_000
TALLY_MS = 3_000
"""A world is too short for several minutes; the length of a tally's span changes nothing else."""


@pytest.fixture
def short_tallies(monkeypatch: pytest.MonkeyPatch) -> None:
    span = (f"{checkpoints.__name__.removeprefix('tidegate_core.')}:TALLY_MS", TALLY_MS)
    monkeypatch.setattr(runner, "ALWAYS_TURNED", (*ALWAYS_TURNED, span))


@pytest.mark.usefixtures("short_tallies")
@pytest.mark.parametrize("first", SEEDS)
def test_given_finished_worlds_then_nothing_differs(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + SEEDS_PER_TEST):
        found = audit(finished(seed))
        assert found.differences == [], seed
        assert found.behind == [], seed
        assert exit_code_of(found) == 0, seed
        counts += found.counts
    assert all(counts[name] > COUNTED_MIN for name in ("launched", "cancelled", "passed", "taken_back", "seen")), counts


def test_given_a_finished_world_then_each_row_that_is_removed_is_found() -> None:
    world = finished(8)
    for sort_key, expected in removals(world):
        found = {each.kind for each in audit_without(world, sort_key).differences}
        assert expected in found, (sort_key, found)


def removals(world: World) -> Iterator[tuple[Key, str]]:
    """Yields a row of each kind, and what its absence is called."""
    ended = list(world.cluster.store.memory.stored("history"))
    history = [Key(str(item["pk"]), str(item["sk"]), "history") for item in ended]
    timed = {str(item["job_id"]) for item in ended if str(item["sk"]).startswith("L#") and item["trigger"] == "time"}
    yield next(key for key in history if key.sk.startswith("L#") and key.sk.rsplit("#", 1)[1] in timed), "missing"
    yield next(key for key in history if key.sk.startswith("L#")), "entry_gone"
    yield next(key for key in history if key.sk.startswith("LJ#")), "place_gone"
    yield next(key for key in history if key.sk.startswith("R#")), "run_gone"
    yield next(key for key in history if key.sk.startswith("RE#")), "end_gone"
    rows = [Key(str(item["pk"]), str(item["sk"])) for item in world.cluster.store.memory.stored()]
    yield next(key for key in rows if key.sk.startswith("S#")), "state_gone"
    live = {str(item["id"]) for item in world.cluster.store.memory.stored() if str(item["sk"]).startswith("G#")}
    yield next(key for key in rows if key.sk.startswith("D#") and key.sk.split("#")[2] not in live), "message_lost"


def finished(seed: int) -> World:
    world = run(build(seed))
    assert world.at_rest
    _write_map(world)
    return world


def _write_map(world: World) -> None:
    """Nodes of a world are told the map; whoever audits reads it from the store."""
    swarm, maps = world.cluster.swarm, world.cluster.maps
    last = maps[-1]
    present = ClusterMap(last.version, last.topic_partitions, swarm.shards, last.topic_id, CLUSTER_ID, tuple(maps))
    put = put_first_map(present, "audited").actions[0]
    assert isinstance(put, Put)
    world.cluster.store.memory.write([replace(put, condition=None)])


def audit_without(world: World, key: Key) -> Findings:
    """Returns what is found while a row is gone."""
    memory = world.cluster.store.memory
    item = memory.peek(key)
    assert item is not None
    memory.write([Delete(key)])
    found = audit(world)

    memory.write([Put(key, item)])
    return found


def audit(world: World) -> Findings:
    now, store = world.cluster.timeline.now, world.cluster.store.memory
    asked, _ = asked_for(Window(now - 6 * 3_600_000, now - SETTLED_MS), now)
    seen = seen_in(world)
    found = Findings()
    for shard in range(world.cluster.swarm.shards):
        reader = Reader(store, now, lambda: None)
        messages = read_messages(reader, shard, None)
        found.add(judge_shard(read_shard(reader, shard, asked.window, None), messages, seen, asked))
    return found


def seen_in(world: World) -> dict[str, Seen]:
    """Returns what the sinks have."""
    seen: dict[str, Seen] = {}
    for each in world.cluster.record.deliveries:
        if each.id in seen:
            seen[each.id].count += 1
        else:
            first, last = each.covered or (None, None)
            seen[each.id] = Seen(each.nominal, covered_from=first, covered_to=last)
    return seen
