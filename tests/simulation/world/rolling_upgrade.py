"""Two releases on one store: who is of which, what each of them can read, and `tidegate migrate --finish` as an operator calls it.

The command's steps are taken here at moments of their own, between which nodes do what they like; what it does when its calls fail is
tested with the command itself (`test_migration.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.monitors.store_monitor import OWNERLESS
from tests.simulation.users.schedule_definitions import Definition
from tests.simulation.world.timeline import START
from tidegate_core.engine.actor_inputs import Migrated
from tidegate_core.explain.migration_blockers import in_the_way
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Unavailable
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.keys import SCHEMA_KEY
from tidegate_core.rows.node_status import NodeStatus, all_cards, owner_of
from tidegate_core.rows.schema_version import FIRST, NEWEST, OLDEST, THIS_RELEASE, Readable, StoreSchema
from tidegate_core.rows.store_operations import Applied, Delete, Put, Transaction
from tidegate_core.writes.row_migration import move_schema
from tidegate_memory.store import BeforeImages

if TYPE_CHECKING:
    from tests.simulation.faults.node_faults import Trouble
    from tests.simulation.runner.swarm import Swarm
    from tests.simulation.world.cluster import Cluster
    from tests.simulation.world.node import Node

OLDER: Final = Readable(OLDEST, FIRST)
PRESENT_MS: Final = 1_000
"""How often a node says what it is, and reads what holds; production's does every 5 s, and is believed for longer."""
STEP_MS: Final = 600
"""At most between two steps of the command."""
AGAIN_MS: Final = 2_000
"""Between two calls of it."""
TAKES_OR_HANDS_OVER: Final = frozenset({"raise", "acquire", "cursor", *OWNERLESS})
"""What a process of the older release may still write: it takes a share before it reads that it must not, and a position that nobody has
taken over, as of a topic that was made anew, is moved once more by who had stood still. That only puts rows into inboxes, which all
releases read.
"""
LEFT_OUT: Final = "left-out"
"""The name of the schedule whose searches are cut."""
LEFT_OUT_MINUTES: Final = (14, *range(35, 57))
"""Of the hour: a world begins at 20 s past its minute 13, and ends before minute 35. The others make a comparison dear: one is all that a
decision may make."""


def left_out(swarm: Swarm) -> list[Definition]:
    """Returns the schedule that leaves a minute out: a search is cut at its end, where nothing is due; none in worlds of one release."""
    if swarm.upgrade is None:
        return []
    trigger = {
        "type": "cron",
        "expression": "2-59/3 * * * * *",
        "dialect": "unix6",
        "zone": "UTC",
        "exclude": [{"type": "cron", "expression": f"{minute} * * * *"} for minute in LEFT_OUT_MINUTES],
    }
    return [Definition(LEFT_OUT, trigger, most=None)]


def is_left_out(trigger: dict[str, Any], instant: int) -> bool:
    """Whether a trigger's exclusions name the minute of an instant, by the check's own arithmetic."""
    minutes = {int(each["expression"].split()[0]) for each in trigger.get("exclude", [])}
    return instant // 60_000 % 60 in minutes


def readable_by(cluster: Cluster, name: str) -> Readable:
    """Returns what a node that begins now can read, by its release."""
    upgrade = cluster.swarm.upgrade
    if upgrade is None or cluster.timeline.now - START >= upgrade.rolled[int(name.removeprefix("node"))]:
        return THIS_RELEASE
    return OLDER


def is_outdated(node: Node) -> bool:
    """Whether a node that starts now finds a store that it cannot read, and does not start."""
    item = node.cluster.store.memory.look(SCHEMA_KEY)
    return item is not None and StoreSchema.of(item).refusal(node.readable) is not None


def is_migrated(cluster: Cluster) -> bool:
    """Whether the command has done what it was called for; true in a world of one release."""
    return cluster.swarm.upgrade is None or StoreSchema.of(cluster.store.memory.look(SCHEMA_KEY)).writes == NEWEST


class Presence:
    """What a node of such a world says of itself, and reads, as the node's presence does."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def begin(self) -> None:
        """Says and reads from now on."""
        self._node.store.read((SCHEMA_KEY,), self._have_read)

    def _have_read(self, answer: Items | Unavailable) -> None:
        node = self._node
        if isinstance(answer, Items):
            schema = StoreSchema.of(answer.found.get(SCHEMA_KEY))
            if replace(schema, closing=None).refusal(node.readable) is not None:
                node.cluster.trace.counted("outdated", node.name)
                node.member.leave(node.process.die)
                return
            for tenure in list(node.tenures.values()):
                if tenure.actor.writes < schema.writes:
                    tenure.take(Migrated(schema.writes))
        card = NodeStatus(
            owner=node.owner,
            node=node.name,
            version="",
            tzdata="",
            started_at=0,
            seen=node.clock(),
            reads=node.readable.newest,
        )
        node.store.write(
            (Put(keys.node_status(node.owner), to_item(card, keys.node_status(node.owner))),), lambda _: None
        )
        node.process.after(PRESENT_MS, self.begin)


class Upgrading:
    """The roll and the command of a world; nothing in a world of one release.

    Args:
        cluster: Its parts.
        start: Starts a node by its name, if it does not run.
        befall: Has a trouble befall a node.
    """

    def __init__(
        self, cluster: Cluster, start: Callable[[str], None], befall: Callable[[Trouble, Node, str], None]
    ) -> None:
        self._cluster = cluster
        self._start = start
        self._befall = befall
        self._calls = 0

    def plan(self) -> None:
        upgrade, timeline = self._cluster.swarm.upgrade, self._cluster.timeline
        if upgrade is None:
            return
        self._save(None, StoreSchema())
        self._watch()
        for number, at in enumerate(upgrade.rolled):
            timeline.after(at, partial(self._roll, f"node{number}"))
        timeline.after(upgrade.finish, self._call)
        number, trouble = upgrade.straggler
        timeline.after(trouble.at, partial(self._straggle, f"node{number}", trouble))

    # -- the roll -----------------------------------------------------------------------------------------------------

    def _roll(self, name: str) -> None:
        node = self._cluster.nodes.get(name)
        if node is None or not node.process.alive:
            self._start(name)
        elif node.readable == OLDER and node.process.paused:
            self._cluster.timeline.after(AGAIN_MS, partial(self._roll, name))  # It hears nobody.
        elif node.readable == OLDER:
            self._cluster.trace.counted("rolled", name)
            node.drain_and_leave()
            self._cluster.timeline.after(AGAIN_MS, partial(self._roll, name))

    def _straggle(self, name: str, trouble: Trouble) -> None:
        node = self._cluster.nodes.get(name)
        if node is not None and node.process.alive and not node.process.paused and not self._cluster.healed:
            self._befall(trouble, node, "node")

    # -- the command --------------------------------------------------------------------------------------------------

    def _call(self) -> None:
        """Looks, says what it is about to do, looks once more, does it: at any moment between two steps it may be too late."""
        schema = self._schema()
        if schema.writes >= NEWEST:
            return
        if self._reasons():
            self._cluster.trace.counted("in_the_way", "at once")
            self._again(schema)
            return
        self._soon(self._close)

    def _close(self) -> None:
        self._save(self._item(), replace(self._schema(), closing=NEWEST))
        self._soon(self._raise)

    def _raise(self) -> None:
        schema = self._schema()
        if self._reasons():
            self._cluster.trace.counted("in_the_way", "closing")
            self._again(schema)
            return
        self._soon(self._raise_version)

    def _raise_version(self) -> None:
        self._save(self._item(), replace(self._schema(), writes=NEWEST, closing=None))
        self._cluster.trace.counted("migrated", "store")

    def _again(self, schema: StoreSchema) -> None:
        if schema.closing is not None:
            self._save(self._item(), replace(schema, closing=None))
        self._cluster.timeline.after(AGAIN_MS, self._call)

    def _soon(self, step: Callable[[], None]) -> None:
        self._cluster.timeline.after(self._cluster.timeline.between(1, STEP_MS), step)

    def _reasons(self) -> list[str]:
        memory, shards = self._cluster.store.memory, range(self._cluster.swarm.shards)
        cards = [from_item(NodeStatus, item) for item in memory.query(all_cards()).items]
        owners = {shard: owner_of(memory.look(keys.lease(shard))) for shard in shards}
        return in_the_way(cards, owners, NEWEST, self._cluster.timeline.now)

    def _item(self) -> Any:
        return self._cluster.store.memory.look(SCHEMA_KEY)

    def _schema(self) -> StoreSchema:
        return StoreSchema.of(self._item())

    def _save(self, before: Any, after: StoreSchema) -> None:
        self._calls += 1
        outcome = self._cluster.store.memory.transact(move_schema(before, after, f"migrate/0.0/{self._calls}"))
        assert isinstance(outcome, Applied), outcome

    # -- the judge ----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Once rows of the newer version may be there, a node of the older release decides nothing."""
        memory, record = self._cluster.store.memory, self._cluster.record
        before = memory.on_applied
        older: set[str] = set()

        def applied(written: Transaction | Sequence[Put | Delete], images: BeforeImages) -> None:
            if before is not None:
                before(written, images)
            older.update(node.owner for node in self._cluster.nodes.values() if node.readable == OLDER)
            if not isinstance(written, Transaction) or written.name in TAKES_OR_HANDS_OVER:
                return
            if written.token.split("/", 1)[0] in older and self._schema().writes >= NEWEST:
                record.failures.append(
                    f"I6: {written.name} {written.token} is of a release that cannot read what is written"
                )

        memory.on_applied = applied
