"""One seed's world: everything in it, built and planned, nothing happened yet."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.decisions.inputs import LogRecord
from tidegate_core.transactions.map import Cut
from tidegate_testkit.simulation import absences, ends, stubborn
from tidegate_testkit.simulation import cluster as parts
from tidegate_testkit.simulation.broker import Broker
from tidegate_testkit.simulation.cluster import Cluster
from tidegate_testkit.simulation.controls import ControlUser, control_users
from tidegate_testkit.simulation.definitions import crowd, draw, with_policies
from tidegate_testkit.simulation.drawing import source, swarm_of
from tidegate_testkit.simulation.events import Producers
from tidegate_testkit.simulation.group import Coordinator
from tidegate_testkit.simulation.group_consumer import ConsumerCoordinator
from tidegate_testkit.simulation.hurry import hurried
from tidegate_testkit.simulation.launcher import Launcher
from tidegate_testkit.simulation.limit_monitor import LimitMonitor
from tidegate_testkit.simulation.messages import SINKS, Senders
from tidegate_testkit.simulation.monitor import StoreMonitor
from tidegate_testkit.simulation.operating import TRAP as LOST_HOSTS
from tidegate_testkit.simulation.operating import Operator
from tidegate_testkit.simulation.pacing import paced
from tidegate_testkit.simulation.rate_monitor import RateMonitor
from tidegate_testkit.simulation.record import Record
from tidegate_testkit.simulation.recurring import draw_recurring
from tidegate_testkit.simulation.redefining import TRAP as REDEFINED
from tidegate_testkit.simulation.redefining import Wanted, Words, shapes_of
from tidegate_testkit.simulation.reminders import draw_reminded
from tidegate_testkit.simulation.requests import Requests
from tidegate_testkit.simulation.retrying import with_retries
from tidegate_testkit.simulation.schedules import ScheduleUser, draw_users
from tidegate_testkit.simulation.sharing import with_shared_limits
from tidegate_testkit.simulation.sources import SourceUser, source_users
from tidegate_testkit.simulation.store import SimStore
from tidegate_testkit.simulation.swarm import Swarm
from tidegate_testkit.simulation.ticking import ticking
from tidegate_testkit.simulation.timeline import START, Timeline
from tidegate_testkit.simulation.trace import Trace
from tidegate_testkit.simulation.troubles import Troubles
from tidegate_testkit.simulation.upgrading import left_out


@dataclass(slots=True)
class World:
    """Everything of one seed, for the checks.

    Attributes:
        at_rest: Whether it came to rest.
        ended_at: True time at which it was at rest, or was given up.
        came_late: What changed afterwards, when the last delayed writes arrived: nothing may.
    """

    seed: int
    cluster: Cluster
    requests: Requests
    users: list[ScheduleUser]
    producers: Producers
    senders: Senders
    limits: LimitMonitor
    controllers: list[ControlUser]
    sources: list[SourceUser]
    at_rest: bool = False
    ended_at: int = 0
    came_late: tuple[str, ...] = ()

    @property
    def trace(self) -> Trace:
        return self.cluster.trace


def build(
    seed: int, *, faults: bool = True, whole_trace: bool = False, hashed: bool = False, swarm: Swarm | None = None
) -> World:
    """Returns the world of a seed."""
    timeline = Timeline(seed)
    drawn = swarm or swarm_of(seed, faults=faults)
    trace = Trace(timeline, whole=whole_trace, hashed=hashed)
    record = Record()
    broker = Broker(timeline, trace, drawn.broker, drawn.topics.metadata_lag_ms)
    store = SimStore(timeline, trace, drawn.store)
    kind = ConsumerCoordinator if drawn.group.protocol == "consumer" else Coordinator
    coordinator = kind(timeline, trace, drawn.topic_partitions, broker.is_down)
    cluster = Cluster(timeline, trace, drawn, store, broker, coordinator, record)
    cluster.launcher = Launcher(cluster)
    if stubborn.TRAP in drawn.traps:
        cluster.stubborn = stubborn.Stubborn(cluster, source(seed, "stubborn"))
    StoreMonitor(store, record)
    limits, rates = LimitMonitor(store, record, drawn), RateMonitor(store, record)
    requests, producers = Requests(cluster), Producers(cluster)
    senders = Senders(cluster, requests)
    _create_topics(cluster, requests, producers, senders)
    cluster.maps.append(Cut(1, drawn.topic_partitions, broker.topics[parts.REQUESTS].id))
    trace.note("world", "swarm", drawn)
    definitions = draw(source(seed, "schedules"), START, drawn.busy_ms)
    definitions += crowd(source(seed, "crowd"), definitions, drawn.crowd)
    definitions += draw_reminded(source(seed, "reminders"), drawn)
    definitions += draw_recurring(source(seed, "recurring"), START, drawn.busy_ms)
    definitions = with_policies(source(seed, "policies"), hurried(definitions, drawn))
    definitions = with_shared_limits(source(seed, "shared limits"), definitions)
    definitions = paced(source(seed, "shared rate"), definitions, drawn)
    definitions = with_retries(source(seed, "retries"), definitions, drawn)
    definitions += ticking(drawn, source(seed, "ticks"))
    definitions += left_out(drawn)
    definitions = absences.prepared(definitions, drawn, source(seed, "catch up"))
    has_ends, redefined = ends.TRAP in drawn.traps, REDEFINED in drawn.traps
    users = draw_users(
        cluster,
        requests,
        definitions,
        ends.Ends(cluster, source(seed, "ends")) if has_ends else None,
        Words(source(seed, "words")) if redefined else None,
        shapes_of(seed, definitions) if redefined else None,
    )
    limits.wanted = rates.wanted = Wanted(store, {user.life.name: user.life for user in users})
    producers.plan(drawn.busy_ms)
    senders.plan(drawn)
    controllers = control_users(cluster, requests, seed)
    sources = source_users(cluster, requests, producers, seed)
    if LOST_HOSTS in drawn.traps:
        Operator(cluster, requests).begin()
    world = World(seed, cluster, requests, users, producers, senders, limits, controllers, sources)
    Troubles(world).plan()
    if cluster.stubborn is not None:
        stubborn.Impatient(cluster, requests, source(seed, "impatient")).begin()
    return world


def _create_topics(cluster: Cluster, requests: Requests, producers: Producers, senders: Senders) -> None:
    def requested(topic_partition: int, appended: LogRecord) -> None:
        requests.request_appended(topic_partition, appended)
        senders.request_appended(topic_partition, appended)

    create, drawn = cluster.broker.create, cluster.swarm
    create(parts.REQUESTS, drawn.topic_partitions, requested, is_of_users=True)
    create(parts.EVENTS, drawn.event_topic_partitions, producers.event_appended, is_of_users=True)
    create(parts.RECEIPTS, 2, requests.receipt_appended)
    create(parts.RUNS, 2)
    create(parts.REQUESTS_DLQ, 2)
    create(parts.EVENTS_DLQ, 2)
    create(parts.RUNS_DLQ, 2)
    for sink in SINKS:
        create(sink, 2, senders.delivered)
