"""What a check looks at: the world after its end and what its store then holds, read once for all checks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tests.simulation.checks.request_history import KEEPING, SKEW_MS, Segment, Step, segments_of, steps_of
from tests.simulation.checks.scope_suspension import WideSpans
from tests.simulation.faults.small_limits import MAP_TRUSTED_MS
from tests.simulation.runner.swarm import HALF_SESSION_MS, SETTLE_MS
from tests.simulation.world.cluster import CLUSTER_ID, REQUESTS
from tests.simulation.world.fault_schedule import HEAL_AFTER_MS
from tests.simulation.world.guarded_produce import PRODUCE_PATIENCE_MS
from tests.simulation.world.kip848_coordinator import ConsumerCoordinator
from tests.simulation.world.node import PROBE_MS
from tests.simulation.world.observations import Author
from tests.simulation.world.timeline import START
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerPlace, LedgerRow
from tidegate_core.writes.cursor_moves import BETWEEN_RECORDS
from tidegate_core.writes.fencing import cursor_of

if TYPE_CHECKING:
    from tests.simulation.users.event_producers import Announced
    from tests.simulation.users.schedule_definitions import Definition
    from tests.simulation.users.schedule_users import Life
    from tests.simulation.world.fault_waits import FaultWait
    from tests.simulation.world.observations import Body, Stint
    from tests.simulation.world.world import World
    from tidegate_core.language.values.log_position import Position

Entry: TypeAlias = dict[str, Any]
Pause: TypeAlias = tuple[str, int, int]
"""A node that was frozen, from, to."""

SENDING_WAITS_FOR: Final = frozenset({"checkpoint", "hold", "retry"})
"""Transactions without which no position passes what was sent, so that sending stops at I8's bound."""
A_MESSAGE_WAITS_FOR: Final = SENDING_WAITS_FOR | {"cursor", "inboxed"}
"""The same, and those without which nobody may rely on its create."""
CALLS_BEFORE: Final = 100
"""Of the store, one after the other: what a shard, or who reads for it, does already goes first, in some worlds one decision
or one batch of requests at a time.
"""
LATE_NEWS_MS: Final = 4_000
"""A node that goes on learns within this that it has lost its membership."""


def ledger_rows(world: World) -> Iterator[LedgerRow]:
    for item in world.cluster.store.memory.stored("history"):
        if str(item["sk"]).startswith("L#"):
            yield from_item(LedgerRow, item)


def position_pk(record: Position) -> str:
    """Returns the partition key of how far the record's topic partition is dealt with."""
    return keys.topic_position(CLUSTER_ID, record.topic_id, record.topic_partition).pk


class Case:
    """One world that is judged.

    Attributes:
        lives: Of schedules with programs.
        recurring: Of schedules that send messages.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.record = world.cluster.record
        self.swarm = world.cluster.swarm
        lives = [user.life for user in world.users]
        self.lives = [life for life in lives if not life.definition.sends_messages]
        self.recurring = [life for life in lives if life.definition.sends_messages]
        self.wide = WideSpans(span for user in world.controllers for span in user.spans)
        self._steps: dict[str, list[Step]] = {}

    def steps(self, life: Life) -> list[Step]:
        if life.name not in self._steps:
            self._steps[life.name] = steps_of(
                life, self.record.upstreams_of(life.name), self.record.ends_of(life.name), self.record.answered
            )
        return self._steps[life.name]

    def life(self, name: str) -> Life:
        """Returns the schedule of this name that starts programs."""
        return next(life for life in self.lives if life.name == name)

    def shape(self, life: Life, version: int) -> Definition:
        """Returns what a schedule was in one of its versions."""
        if life.shapes is None:
            return life.definition
        return life.shape(self._variants(life).get(version, 0))

    def shape_of(self, body: Body) -> Definition:
        """Returns what the schedule of a program was in the version whose arguments that was given."""
        return self.life(body.schedule).shape(int(body.args[0].removeprefix("variant=")))

    def trigger_of_row(self, life: Life, row: LedgerRow) -> dict[str, Any]:
        """Returns the trigger that has made an occurrence: an update may have bound it to a later version."""
        return self.shape(life, self.record.jobs.get(row.job_id, row.version)).trigger

    def trigger_of(self, life: Life, evidence: str) -> dict[str, Any]:
        """Returns the trigger that has counted what is in a piece of evidence."""
        rows = self.rows_by_id.get(evidence)
        return self.shape(life, rows[0].version if rows else self.record.evidence[evidence].version).trigger

    def shapes(self, life: Life) -> list[Definition]:
        """Returns all that it was."""
        return [life.definition, *map(life.shape, self._variants(life).values())]

    def pending_timeouts(self, life: Life, versions: Iterable[int]) -> list[str]:
        """Returns those of its jobs of these versions, and of the ones before whose jobs were carried on: these keep the deadlines that
        they had.
        """
        found = (each.pending_timeout for version in versions for each in self._carried(life, version))
        return [each for each in found if each is not None]

    def _carried(self, life: Life, version: int) -> list[Definition]:
        found = [self.shape(life, version)]
        variants = self._variants(life)
        for step in reversed(self._updates(life)):
            if step.version == version:
                is_first = version - 1 not in variants  # Before it there was none, or a tombstone.
                if is_first or step.asked.document.get("on_update", "keep_due") not in KEEPING:
                    break
                version -= 1
                found.append(self.shape(life, version))
        return found

    def _variants(self, life: Life) -> dict[int, int]:
        return {step.version: step.variant for step in self._updates(life)}

    def _updates(self, life: Life) -> list[Step]:
        return [step for step in self.steps(life) if step.kind == "apply" and step.moves]

    @cached_property
    def forced(self) -> frozenset[str]:
        """Runs that were asked for whatever runs already."""
        asked = self.world.requests.asked.values()
        return frozenset(
            str(each.receipt.body["id"])
            for each in asked
            if each.document.get("force_overlap") and each.receipt is not None and each.status == "accepted"
        )

    def segments(self, life: Life) -> list[Segment]:
        return segments_of(self.steps(life))

    def limit(self, knob: str, known: int) -> int:
        """Returns a limit of production, as it is in this world."""
        return dict(self.swarm.knobs).get(knob, known)

    @property
    def queued_ms(self) -> int:
        """How long what came before may keep something waiting that is served: in the slowest store 20 s."""
        return int(CALLS_BEFORE * self.swarm.store.latency_ms)

    @property
    def scattered_ms(self) -> int:
        """How much longer that takes where the items of each batch, and of each read of several, come one after the other."""
        return CALLS_BEFORE * self.swarm.store.scattered_ms

    @property
    def unheard_ms(self) -> int:
        """The same, of answers to those before, where the broker loses what it is sent, or its word: each is tried until it has one."""
        broker = self.swarm.broker
        heard = (1 - broker.not_appended) * (1 - broker.lost_ack)
        return int(CALLS_BEFORE * PRODUCE_PATIENCE_MS * (1 - heard) / heard)

    def is_dealt_with(self, record: Position, by: int) -> bool:
        """Whether the store says that a message's create was through by then: its position is durable, and its inbox row, where it had
        one, is gone. Before that nothing of it is sent (DESIGN 5).
        """
        if not any(at <= by and position > record.offset for at, position in self.record.read[position_pk(record)]):
            return False
        gone = self.record.inboxed.get(record.text(), by)
        return gone is not None and gone <= by

    # -- who was in charge -----------------------------------------------------------------------------------------------

    def stints_of_shard(self, shard: int) -> list[Stint]:
        """Returns the stints of whoever owned it, in their order."""
        stints = self.record.stints.values()
        return [stint for stint in stints if shard % stint.map.topic_partitions == stint.topic_partition]

    def _stints_of(self, topic_partition: int) -> list[Stint]:
        return [stint for stint in self.record.stints.values() if stint.topic_partition == topic_partition]

    def emptied(self, shard: int, since: int) -> int | None:
        """Returns the first moment from `since` on at which nothing waits in the shard's inbox; None: that never came."""
        was_empty = True
        for at, is_empty in self.record.queues[shard]:
            if at > since and (was_empty or is_empty):
                return since if was_empty else at
            was_empty = is_empty
        return since if was_empty else None

    def is_served(self, shard: int, begin: int, end: int) -> bool:
        """Whether one stint of its owners lasted from `begin` to `end`, and its node might send: it was not frozen meanwhile, and
        its guard had settled, and it went by the map in force, or by one that it might trust.
        """
        return self.node_serving(shard, begin, end) is not None

    def node_serving(self, shard: int, begin: int, end: int) -> str | None:
        """Returns the node of such a stint, or None."""
        stints = [stint for stint in self.stints_of_shard(shard) if (self._distrusted_at(stint) or end) >= end]
        return self._lasting(stints, begin, end, self._silenced)

    def _distrusted_at(self, stint: Stint) -> int | None:
        """Returns from when on it sent nothing more, because its map had been read too long ago."""
        superseded = self.world.cluster.superseded.get(stint.map.version)
        return None if superseded is None else superseded + MAP_TRUSTED_MS

    def is_held(self, topic_partition: int, begin: int, end: int, topic_id: str | None = None) -> bool:
        """Whether somebody read it, and served its shards, from `begin` to `end` without a break; of the requests topic of this id, where
        one is named.
        """
        stints = self._stints_of(topic_partition)
        here = [stint for stint in stints if topic_id in (None, stint.map.topic_id)]
        return self._lasting(here, begin, end, self.record.pauses) is not None

    def is_gone(self, record: Position, *, open_too: bool = False) -> bool:
        """Whether a record of the requests topic is gone with one that was made anew: nobody ever moved the position behind it.

        Args:
            record: Where it lay.
            open_too: What was passed with its dead letter open is gone as well, where nobody can read it again.
        """
        cluster = self.world.cluster
        if record.topic_id == cluster.broker.topics[REQUESTS].id:
            return False
        key = keys.topic_position(CLUSTER_ID, record.topic_id, record.topic_partition)
        item = cluster.store.memory.look(key)
        if item is None:
            return True
        position = cursor_of(key, item)
        if record.offset >= position.next:
            return True
        return open_too and (record.offset in position.open or self._was_closed_unread(key.pk, record.offset))

    def _was_closed_unread(self, pk: str, offset: int) -> bool:
        """Whether a dead letter that a former holder had left open was closed once the topic was gone, by one to whom its record was
        never handed since it took the position: there was nothing that it could copy (docs/internals/protocol.md states it).
        """
        closed, recreated = self.record.closed.get((pk, offset)), self.swarm.topics.requests_recreated
        if closed is None or recreated is None or closed[0] < START + recreated[0]:
            return False
        author = closed[1]
        since = max((at for at, who in self.record.taken[pk] if author.follows(who)), default=0)
        handed = self.record.handed[pk, offset]
        return not any(at >= since and (owner, tenure) == author[:2] for at, owner, tenure in handed)

    def request_readable_at(self, appended: int) -> int:
        """Returns from when on nodes could read a request: at its append time, or at the end of an open transaction that it stands behind."""
        healed = START + self.swarm.busy_ms + HEAL_AFTER_MS
        ends = (
            min(START + end, healed)
            for topic, (begin, end) in self.swarm.topics.open_transactions
            if topic == "requests" and START + begin <= appended < START + end
        )
        return max([appended, *ends])

    def was_left_halfway(self, announced: Announced) -> bool:
        """Whether the topic of one of its records was made anew when that had been handed to some of its schedules only: a repeat of the
        event counts for none of the others.
        """
        for record in announced.records:
            key = keys.topic_position(CLUSTER_ID, record.topic_id, record.topic_partition)
            item = self.world.cluster.store.memory.look(key)
            position = None if item is None else cursor_of(key, item)
            if position is not None and position.next == record.offset and position.page != BETWEEN_RECORDS:
                return True
        return False

    def went_with_its_topic(self, announced: Announced, at: int) -> bool:
        """Whether nobody could know of it by then who waits for what the brokers tell of: they tell of nothing in a topic that is gone, which
        whoever had read it may hand on later.

        Args:
            announced: Something that became evidence.
            at: By the clock of whoever asked the brokers.
        """
        topics = self.swarm.topics
        gone_at = topics.source_recreated if announced.by_source else topics.recreated
        return announced.lost and gone_at is not None and at >= START + gone_at - SKEW_MS

    def topic_partitions(self, at: int) -> range:
        """Returns those of the requests topic, which may have grown by then."""
        topics = self.swarm.topics
        count = self.swarm.topic_partitions
        if (
            topics.requests_grown is not None
            and topics.map_follows is not None
            and START + topics.requests_grown[0] <= at
        ):
            count += topics.requests_grown[1]
        return range(count)

    def _lasting(self, stints: Sequence[Stint], begin: int, end: int, pauses: Sequence[Pause]) -> str | None:
        lasting = (
            stint.node
            for stint in stints
            if stint.serving is not None
            and stint.serving <= begin
            and (stint.ended is None or stint.ended >= end)
            and not any(node == stint.node and start <= end and begin <= goes_on for node, start, goes_on in pauses)
        )
        return next(lasting, None)

    @cached_property
    def _silenced(self) -> list[Pause]:
        """Pauses, each until its node could send again. With KIP-848 a probe proves nothing until the guard has settled behind a
        freeze of half a session, which a node notices as it probes.
        """
        if not isinstance(self.world.cluster.coordinator, ConsumerCoordinator):
            return self.record.pauses
        return [
            (node, start, goes_on + SETTLE_MS + PROBE_MS if goes_on - start > HALF_SESSION_MS - PROBE_MS else goes_on)
            for node, start, goes_on in self.record.pauses
        ]

    def is_disturbed(self, begin: int, end: int, waits_for: frozenset[str] = SENDING_WAITS_FOR) -> bool:
        """Whether store or broker were away, or stalled, at some time in between, or so much aimed at transactions of these names
        that they may have been.
        """
        store, broker = self.swarm.store, self.swarm.broker
        if not waits_for.isdisjoint(store.hunted):
            return True
        periods = (
            *(store.aimed_outs if not waits_for.isdisjoint(store.aimed) else ()),
            *store.brown_outs,
            *store.write_outs,
            *store.stalled_loads,
            *store.stalled_batches,
            *store.stalled_checkpoints,
            *broker.downs,
            *(period for _, period in broker.leaderless),
            *broker.refusals,
        )
        return any(START + start <= end and begin <= START + goes_on for start, goes_on in periods)

    def is_unsettled(self, begin: int, end: int) -> bool:
        """Whether the group made an assignment at some time in between, for so long that guards may have lapsed: a member that is gone
        without a word holds it up for a session.
        """
        coordinator = self.world.cluster.coordinator
        rounds = [] if isinstance(coordinator, ConsumerCoordinator) else coordinator.rounds
        return any(
            goes_on - start > HALF_SESSION_MS - PROBE_MS and start <= end and begin <= goes_on
            for start, goes_on in rounds
        )

    def lane_had(self, shard: int, begin: int, span: int) -> int:
        """Returns when the shard's lane has had so much time from `begin` on, without what passed while faults kept the fate of a
        transaction of its present owner from it: that one goes before all that waits (DESIGN 4).
        """
        pk = keys.shard_pk(shard)
        counted, end = begin, begin + span
        for wait in self.world.cluster.store.waits.lanes[pk]:
            if wait.begin < end and wait.end > counted and self._is_of_holder(pk, wait):
                end += wait.end - max(wait.begin, counted)
                counted = wait.end
        return end

    def records_had_since(self, pks: Iterable[str], end: int, span: int) -> int:
        """Returns since when those who deal with records under these partition keys have had so much time until `end`, without what passed
        while faults kept the fate of a transaction from them that all behind it waits for (DESIGN 5).
        """
        records = self.world.cluster.store.waits.records
        waits = [wait for pk in pks for wait in records[pk] if self._is_of_holder(pk, wait)]
        counted, begin = end, end - span
        for wait in sorted(waits, key=attrgetter("begin"), reverse=True):
            if wait.end > begin and wait.begin < counted:
                begin -= min(wait.end, counted) - wait.begin
                counted = wait.begin
        return begin

    def _is_of_holder(self, pk: str, wait: FaultWait) -> bool:
        """A former one waits in vain, and nobody waits for it."""
        holder = max(((at, who) for at, who in self.record.taken[pk] if at <= wait.begin), default=None)
        return holder is not None and Author.of(wait.token).follows(holder[1])

    def last_act(self, stint: Stint) -> int:
        """Returns when the stint could send for the last time: a frozen node learns of its end later, or before its guard has settled."""
        ends = (self.world.ended_at if stint.ended is None else stint.ended, self._distrusted_at(stint))
        end = min(each for each in ends if each is not None)
        frozen = [
            start
            for node, start, goes_on in self._silenced
            if node == stint.node and start <= end <= goes_on + LATE_NEWS_MS
        ]
        return min([end, *frozen])

    # -- the ledger and what was counted -------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> list[LedgerRow]:
        """All entries of the ledger."""
        return list(ledger_rows(self.world))

    @cached_property
    def found_by_id(self) -> set[str]:
        """Jobs whose entry is found by their id alone."""
        stored = {str(item["sk"]): item for item in self.world.cluster.store.memory.stored("history")}
        places = [from_item(LedgerPlace, item) for sk, item in stored.items() if sk.startswith("LJ#")]
        return {
            place.job_id for place in places if place.entry in stored and stored[place.entry]["job_id"] == place.job_id
        }

    @cached_property
    def rows_of(self) -> dict[str, list[LedgerRow]]:
        """By schedule."""
        return _grouped((row.name, row) for row in self.rows)

    @cached_property
    def rows_by_id(self) -> dict[str, list[LedgerRow]]:
        """By job, which is also the run and the evidence that it was."""
        return _grouped((row.job_id, row) for row in self.rows)

    @cached_property
    def made_as(self) -> dict[str, int]:
        """The places of jobs in the order in which they were made."""
        return {job_id: place for place, job_id in enumerate(self.record.jobs)}

    @cached_property
    def bodies_by_run(self) -> dict[str, list[Body]]:
        return _grouped((body.run_id, body) for body in self.record.bodies)

    @cached_property
    def entries_of(self) -> dict[str, dict[str, list[Entry]]]:
        """What each schedule has counted, by schedule and evidence, which bears the id of the job that it becomes."""
        found: dict[str, dict[str, list[Entry]]] = {}
        for evidence, seen in self.record.evidence.items():
            entries = [entry for chunk in seen.chunks for entry in json.loads(chunk)]
            rows = self.rows_by_id.get(evidence)
            schedule = seen.schedule or (rows[0].name if rows else "")
            if entries:
                found.setdefault(schedule, {})[evidence] = entries
        return found

    @cached_property
    def open_evidence(self) -> dict[str, list[Evidence]]:
        """By schedule."""
        items = (item for item in self.world.cluster.store.memory.items() if str(item["sk"]).startswith("E#"))
        return _grouped((evidence.name, evidence) for evidence in (from_item(Evidence, item) for item in items))


def _grouped(pairs: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    grouped: dict[str, list[Any]] = {}
    for name, each in pairs:
        grouped.setdefault(name, []).append(each)
    return grouped
