"""A node process: its clock, its membership in the group, its guard, and the actors of what it was given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from tests.simulation.runner.swarm import HALF_SESSION_MS, SETTLE_MS
from tests.simulation.users.absence_schedules import SEEN_MS
from tests.simulation.world.assignment import Tenure
from tests.simulation.world.classic_member import MemberClient
from tests.simulation.world.cluster import REQUESTS, Cluster
from tests.simulation.world.hand_over import hand_over
from tests.simulation.world.kip848_coordinator import ConsumerCoordinator
from tests.simulation.world.kip848_member import ConsumerMember
from tests.simulation.world.older_release_client import OlderStoreClient
from tests.simulation.world.rolling_upgrade import Presence, is_outdated, readable_by
from tests.simulation.world.store_client import StoreClient
from tests.simulation.world.timeline import Process
from tidegate_core.engine.actor_inputs import TopicFacts, Woken
from tidegate_core.engine.membership_lease import MapLease, MembershipLease, ProbeVerdict
from tidegate_core.rows.schema_version import THIS_RELEASE
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_core.shard.outages.outage_recorder import heartbeat_row, sign_name

ProbeDone: TypeAlias = Callable[[ProbeVerdict], None]
PROBE_MS = 1_000


class Node:
    """One life of a node; a restart is another one, with another owner id.

    Attributes:
        owner: UUID of this life.
        offset_ms: How far its clock is off.
        readable: Versions of rows that it can read, by its release.
        tenures: Actors by ownership topic partition.
        maps: As it has read them.
        given: What the group has given and not taken, whether or not shards follow from it.
    """

    def __init__(self, cluster: Cluster, name: str, owner: str, offset_ms: int) -> None:
        self.cluster = cluster
        self.name = name
        self.owner = owner
        self.offset_ms = offset_ms
        self.process = Process(cluster.timeline, name)
        self.readable = readable_by(cluster, name)
        client = StoreClient if self.readable == THIS_RELEASE else OlderStoreClient
        self.store = client(self.process, cluster.store, owner)
        self.index = SubscriptionIndex()
        self.tenures: dict[int, Tenure] = {}
        coordinator = cluster.coordinator
        if isinstance(coordinator, ConsumerCoordinator):
            self.guard = MembershipLease(HALF_SESSION_MS, SETTLE_MS)
            self.member: MemberClient | ConsumerMember = ConsumerMember(self, coordinator)
        else:
            self.guard = MembershipLease(HALF_SESSION_MS)
            self.member = MemberClient(self, coordinator)
        self.map_guard = MapLease()
        self.maps = tuple(cluster.maps)
        self.given: set[int] = set()
        self._latest = 0
        self._tenures_begun = 0
        self._served: dict[str, int] = {}

    def clock(self) -> int:
        """The checked clock: the machine's, but it never goes back."""
        self._latest = max(self._latest, self.cluster.timeline.now + self.offset_ms)
        return self._latest

    @property
    def requests(self) -> TopicFacts:
        """Returns what the map says of the requests topic, as far as this node has read it."""
        return TopicFacts(REQUESTS, self.maps[-1].topic_id, self.maps[-1].topic_partitions)

    def guard_holds(self) -> bool:
        return self.guard.holds(self.cluster.timeline.now)

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.cluster.trace.note(self.name, "started", self.owner)
        if is_outdated(self):
            self.process.die()
            return
        if self.cluster.swarm.upgrade is not None:
            Presence(self).begin()
        self.member.join()
        self._probe()
        self._say_seen()

    def crash(self, why: str) -> None:
        self.cluster.trace.bit("crash", why)
        self.process.die()
        for tenure in list(self.tenures.values()):
            tenure.drop("crashed")
        self.tenures.clear()

    def go_on(self) -> None:
        """After a freeze: all that came meanwhile happens now."""
        self.cluster.trace.note(self.name, "goes on")
        self.member.went_on()
        self.process.go_on()

    def drain_and_leave(self) -> None:
        """SIGTERM: hands everything over, leaves the group, ends."""
        self.cluster.trace.bit("drain", "node")
        self.member.leave(self._end)

    def _end(self) -> None:
        self.process.die()
        self.cluster.trace.note(self.name, "ended")

    # -- what it holds ------------------------------------------------------------------------------------------------

    def begin(self, topic_partition: int) -> None:
        self.given.add(topic_partition)
        if topic_partition >= self.maps[-1].topic_partitions:
            # Newer than the map: no shard follows from it, and what comes there waits until the map has grown.
            self.cluster.trace.counted("beyond_the_map", self.name)
            return
        self._tenures_begun += 1
        self.tenures[topic_partition] = Tenure(self, topic_partition, self._tenures_begun)
        self.tenures[topic_partition].begin()

    def lose_all(self) -> None:
        """Membership is over: drop at once (DESIGN 3)."""
        self.given.clear()
        self.guard.membership_lost()
        if self.tenures:
            self.cluster.trace.counted("membership_lost", self.name)
        for tenure in list(self.tenures.values()):
            tenure.drop("lost")
        self.tenures.clear()

    def look_at_the_map(self) -> None:
        """Hands everything over to itself where a newer one is in force, as the node's holdings do."""
        if len(self.maps) == len(self.cluster.maps):
            return
        self.maps = tuple(self.cluster.maps)
        self.cluster.trace.counted("map_followed", self.name)
        former = dict(self.tenures)
        for number in sorted(self.given):
            if number in former:
                hand_over(self, [former[number]], partial(self._begin_again, number))
            else:
                self._begin_again(number)

    def _begin_again(self, number: int) -> None:
        if number in self.given and number not in self.tenures:
            self.begin(number)

    def poked(self, poke: Woken) -> None:
        """By the map in force, as the node's holdings do."""
        tenure = self.tenures.get(poke.shard % self.maps[-1].topic_partitions)
        if tenure is not None:
            tenure.take(poke)

    def _say_seen(self) -> None:
        """As the node's heartbeat loop does."""
        now = self.clock()
        for tenure in self.tenures.values():
            self.note_served(tenure)
        sign = heartbeat_row(self.owner, self.name, now, self._served, now // 1_000)
        self.store.write((sign,), lambda answer: None)
        self.process.after(SEEN_MS, self._say_seen)

    def note_served(self, tenure: Tenure) -> None:
        """As the node's holdings do, before a sign of life and as the tenure ends."""
        until = tenure.actor.served_until(self.clock())
        if until is not None:
            self._served[sign_name(tenure.map.version, tenure.topic_partition)] = until

    # -- membership probes --------------------------------------------------------------------------------------------

    def _probe(self) -> None:
        self.guard.awake(self.cluster.timeline.now)
        self.prove(lambda verdict: None)
        self.process.after(PROBE_MS, self._probe)

    def prove(self, done: ProbeDone) -> None:
        """Sends a commit probe; no answer within half a session is none."""
        number = self.guard.probe_sent(self.cluster.timeline.now)
        answered = [False]

        def answer(verdict: ProbeVerdict) -> None:
            if not answered[0]:
                answered[0] = True
                self.guard.probe_answered(number, verdict)
                done(verdict)

        self.member.commit(answer)
        self.process.after(HALF_SESSION_MS, lambda: answer(ProbeVerdict.UNSETTLED))
