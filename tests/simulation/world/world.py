"""One seed's world: everything in it, built and planned, nothing happened yet."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.monitors.class_monitor import ClassMonitor
from tests.simulation.monitors.limit_monitor import LimitMonitor
from tests.simulation.monitors.rate_monitor import RateMonitor
from tests.simulation.monitors.store_monitor import StoreMonitor
from tests.simulation.runner.swarm import Swarm
from tests.simulation.runner.trace import Trace
from tests.simulation.runner.world_drawing import source, swarm_of
from tests.simulation.users import absence_schedules, misbehaving_programs, timed_suspensions
from tests.simulation.users.event_producers import Producers
from tests.simulation.users.message_senders import SINKS, Senders
from tests.simulation.users.operator import TRAP as LOST_HOSTS
from tests.simulation.users.operator import Operator
from tests.simulation.users.recurring_messages import draw_recurring
from tests.simulation.users.reminders import draw_reminded
from tests.simulation.users.requests import Requests
from tests.simulation.users.schedule_definitions import crowd, draw, hurried, with_policies, with_retries
from tests.simulation.users.schedule_updates import TRAP as REDEFINED
from tests.simulation.users.schedule_updates import Wanted, Words, shapes_of
from tests.simulation.users.schedule_users import ScheduleUser, draw_users
from tests.simulation.users.scope_users import ControlUser, control_users
from tests.simulation.users.shared_limits import paced, with_shared_limits
from tests.simulation.users.source_users import SourceUser, source_users
from tests.simulation.users.tick_schedules import ticking
from tests.simulation.world import cluster as parts
from tests.simulation.world.broker import Broker
from tests.simulation.world.classic_coordinator import Coordinator
from tests.simulation.world.cluster import Cluster
from tests.simulation.world.fault_schedule import Troubles
from tests.simulation.world.kip848_coordinator import ConsumerCoordinator
from tests.simulation.world.launcher import Launcher
from tests.simulation.world.observations import Record
from tests.simulation.world.rolling_upgrade import left_out
from tests.simulation.world.store import SimStore
from tests.simulation.world.timeline import START, Timeline
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.writes.partition_map import Cut


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
    names = {"requests": parts.REQUESTS, "events": parts.EVENTS, "source": parts.SOURCE_TOPIC}
    opened = [(names[topic], when) for topic, when in drawn.topics.open_transactions]
    broker = Broker(timeline, trace, drawn.broker, drawn.topics.metadata_lag_ms, opened)
    store = SimStore(timeline, trace, drawn.store)
    kind = ConsumerCoordinator if drawn.group.protocol == "consumer" else Coordinator
    coordinator = kind(timeline, trace, drawn.topic_partitions, broker.is_down)
    cluster = Cluster(timeline, trace, drawn, store, broker, coordinator, record)
    cluster.launcher = Launcher(cluster)
    if misbehaving_programs.TRAP in drawn.traps:
        cluster.stubborn = misbehaving_programs.Stubborn(cluster, source(seed, "stubborn"))
    StoreMonitor(store, record)
    limits, rates = LimitMonitor(store, record, drawn), RateMonitor(store, record)
    classes = ClassMonitor(store, record, limits)
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
    definitions = absence_schedules.prepared(definitions, drawn, source(seed, "catch up"))
    has_ends, redefined = timed_suspensions.TRAP in drawn.traps, REDEFINED in drawn.traps
    users = draw_users(
        cluster,
        requests,
        definitions,
        timed_suspensions.Ends(cluster, source(seed, "ends")) if has_ends else None,
        Words(source(seed, "words")) if redefined else None,
        shapes_of(seed, definitions) if redefined else None,
    )
    limits.wanted = rates.wanted = classes.wanted = Wanted(store, {user.life.name: user.life for user in users})
    producers.plan(drawn.busy_ms)
    senders.plan(drawn)
    controllers = control_users(cluster, requests, seed)
    sources = source_users(cluster, requests, producers, seed)
    if LOST_HOSTS in drawn.traps:
        Operator(cluster, requests).begin()
    world = World(seed, cluster, requests, users, producers, senders, limits, controllers, sources)
    Troubles(world).plan()
    if cluster.stubborn is not None:
        misbehaving_programs.Impatient(cluster, requests, source(seed, "impatient")).begin()
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
