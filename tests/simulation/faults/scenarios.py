"""Traps: a load and the faults that meet it, for moments that chance alone hardly makes.

Each is a function from a world to that world with the trap in it. `swarm_of` sets a trap in a share of the worlds, beside what
they have already; `tests/simulation/test_traps.py` sets each in worlds that are calm otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from tests.simulation.faults.absence_scenarios import black_out, silence
from tests.simulation.faults.broker_faults import LAST_TOPIC
from tests.simulation.faults.host_scenarios import copies, lost_hosts
from tests.simulation.faults.misbehaving_scenarios import rarest, stubborn
from tests.simulation.faults.node_faults import Trouble, strikes
from tests.simulation.faults.random_draws import period
from tests.simulation.faults.rare_scenarios import (
    fallen_at,
    rare_expiries,
    rare_moments,
    rare_outages,
    rare_refusals,
    rare_reminders,
    rare_resumes,
    rare_suspends,
    rare_voids,
)
from tests.simulation.faults.topic_scenarios import open_transactions, requests_topic_made_anew
from tests.simulation.faults.upgrade_faults import two_releases
from tests.simulation.runner.swarm import CONSUMER_SESSION_MS, Burst, Swarm
from tests.simulation.users.misbehaving_programs import TRAP as STUBBORN
from tests.simulation.users.operator import TRAP as LOST_HOSTS
from tests.simulation.users.reminders import REMINDERS
from tests.simulation.users.schedule_definitions import FAILURES, NAMESPACE, PACE
from tests.simulation.users.schedule_updates import TRAP as REDEFINED
from tests.simulation.users.shared_limits import RATES
from tests.simulation.users.tick_schedules import KNOBS as TICKS_KNOBS
from tests.simulation.users.timed_suspensions import TRAP as ENDS
from tests.simulation.world.transaction_names import OF_SOURCES, OF_TICKS
from tidegate_core.rows import keys
from tidegate_core.writes.limit_permits import owner_shard_of

SetTrap: TypeAlias = Callable[[Swarm, Random], Swarm]

WINDOW_MS = 60_000
"""How far ahead an owner holds timer rows in memory; it reads on when half of it has passed."""
FIRST_LOADS_MS = 4_000
"""By now every shard has an owner that has loaded its first window."""
SPREAD = 28
"""Messages that reach most shards of a world."""
SLOW_MS = 200
"""Mean latency of a slow store."""
SLOW_START_MS = 8_000
"""Longest start of a program: long enough for a queue before its limit."""
CROWD = 3
"""Schedules that keep a queue before a limit of one to three runs for most of the time."""
FLOOD = 1_150
"""Above the 1,000 messages that may be sent again."""
NUMBER_OF_RUNS_DLQ = 6
"""In the order in which a world makes its topics."""


@dataclass(frozen=True, slots=True)
class Trap:
    """A trap, and how often it is set.

    Attributes:
        share: Of the worlds that have it. One with a flood costs several others. With 0 it is in those alone that ask for it.
        bites: The kind of fault that it is about; None where it only makes load and pace.
    """

    set: SetTrap
    share: float
    bites: str | None = None


def stalled_loads(swarm: Swarm, chance: Random) -> Swarm:
    """The second window is not read for longer than its first messages wait, while new ones behind them come and fire.

    Nothing that lies in the part that was not read may be passed by a checkpoint; a node that is told to end meanwhile has
    sent what its last checkpoint cannot pass.
    """
    begin = WINDOW_MS // 2 - 4_000
    end = WINDOW_MS + 18_000
    unread = Burst(SPREAD, (FIRST_LOADS_MS + 14_000, begin), (WINDOW_MS + FIRST_LOADS_MS, WINDOW_MS + 10_000))
    fresh = Burst(SPREAD, (begin + 12_000, WINDOW_MS - 6_000), (WINDOW_MS + 6_000, WINDOW_MS + 14_000))
    store = replace(swarm.store, stalled_loads=((begin, end),), slow_loads=chance.random() < 0.3)
    end_told = Trouble(end - 2_000, "drain", chance.randint(200, 9_000))
    node = replace(swarm.node, trouble=(*swarm.node.trouble, end_told))
    return _with(replace(swarm, store=store, node=node), unread, fresh)


def stalled_batches(swarm: Swarm, chance: Random) -> Swarm:
    """Creates beyond the window are not written until others behind them have fired; once they are, their owner falls.

    Nothing that is not written yet may be passed by a checkpoint.
    """
    begin = WINDOW_MS // 2 - 3_500
    end = WINDOW_MS + 18_000
    behind = Burst(SPREAD, (FIRST_LOADS_MS + 12_000, begin - 500), (WINDOW_MS + 7_000, WINDOW_MS + 11_000))
    hanging = Burst(SPREAD, (begin + 200, begin + 3_000), (WINDOW_MS + FIRST_LOADS_MS, WINDOW_MS + 6_500))
    store = replace(swarm.store, stalled_batches=((begin, end),))
    falls = tuple(
        Trouble(end, "crash", chance.randint(200, 9_000), once_applied=chance.choice(("cursor", "inboxed")))
        for _ in range(2)
    )
    node = replace(swarm.node, trouble=(*swarm.node.trouble, *falls))
    return _with(replace(swarm, store=store, node=node), behind, hanging)


def stalled_checkpoints(swarm: Swarm, chance: Random) -> Swarm:
    """More messages than may be sent again come due in one shard while no checkpoint gets through; then its owner falls."""
    shard = chance.randrange(swarm.shards)
    flood = Burst(FLOOD, (8_000, 22_000), (32_000, 44_000), in_shard=shard)
    store = replace(swarm.store, stalled_checkpoints=((30_000, 52_000),))
    fall = Trouble(47_000, "crash", 9_000, holder_of=shard % swarm.topic_partitions)
    node = replace(swarm.node, trouble=(*swarm.node.trouble, fall))
    return _with(replace(swarm, store=store, node=node), flood)


def contention(swarm: Swarm, chance: Random) -> Swarm:
    """Programs take long to start, so that jobs wait for limits, and the store takes long to answer: whatever is decided was
    read long before it is written, and others have written meanwhile.
    """
    store = replace(swarm.store, latency_ms=SLOW_MS, timeout_ms=10 * SLOW_MS, conflicts=True)
    return replace(swarm, store=store, launcher=replace(swarm.launcher, slow_start_ms=SLOW_START_MS))


def queues(swarm: Swarm, chance: Random) -> Swarm:
    """More schedules share a program than its limit lets run, and the limit's home changes hands while they queue: it
    falls at the moment at which it has offered a slot, is frozen while offers stand, and is told to end.
    """
    home = owner_shard_of(keys.shared_limit(NAMESPACE, "program", "tool"), swarm.shards) % swarm.topic_partitions
    troubles = (
        Trouble(chance.randint(8_000, 20_000), "crash", chance.randint(200, 9_000), once_applied="offer"),
        Trouble(chance.randint(22_000, 30_000), "pause", chance.choice((1_500, 5_000, 9_000)), holder_of=home),
        Trouble(chance.randint(38_000, 48_000), "drain", chance.randint(200, 6_000), holder_of=home),
    )
    return replace(
        swarm,
        node=replace(swarm.node, trouble=(*swarm.node.trouble, *troubles)),
        launcher=replace(swarm.launcher, slow_start_ms=SLOW_START_MS // 2),
        broker=replace(swarm.broker, lost_pokes=0.5),
        crowd=2 * CROWD,
    )


def rates(swarm: Swarm, chance: Random) -> Swarm:
    """Schedules share a rate (`paced`), programs are slow to start, so that runs are stopped before they have, and owners
    fall as they admit, park and end runs, and as they offer what time gives back; in some worlds writes come again, later.
    """
    home = (
        owner_shard_of(keys.shared_rate(NAMESPACE, "group", PACE, 5_000, None), swarm.shards) % swarm.topic_partitions
    )
    steps = ("admit", "admit", "offer", "park", "end_pending", "cancel_run")
    falls = tuple(
        Trouble(chance.randint(6_000, 40_000), "crash", chance.randint(200, 9_000), once_applied=chance.choice(steps))
        for _ in range(3)
    )
    frozen = Trouble(chance.randint(20_000, 40_000), "pause", chance.choice((1_500, 5_000)), holder_of=home)
    if chance.random() < 0.3:
        swarm = replace(swarm, store=replace(swarm.store, duplicate=0.3, remembers_tokens=False))
    return replace(
        swarm,
        node=replace(swarm.node, trouble=(*swarm.node.trouble, *falls, frozen)),
        launcher=replace(swarm.launcher, slow_start_ms=SLOW_START_MS // 2),
        crowd=max(swarm.crowd, CROWD),
    )


def echoes(swarm: Swarm, chance: Random) -> Swarm:
    """Half of all writes come again, up to a minute later, when the store has forgotten that it has seen them, and shards
    change hands meanwhile.
    """
    drains = tuple(Trouble(at, "drain", chance.randint(200, 9_000)) for at in (20_000, 35_000, 50_000))
    return replace(
        swarm,
        store=replace(swarm.store, duplicate=0.5, remembers_tokens=False),
        node=replace(swarm.node, trouble=(*swarm.node.trouble, *drains)),
    )


def frozen_heartbeats(swarm: Swarm, chance: Random) -> Swarm:
    """KIP-848: nodes freeze for nearly a session and go on; their commits are there at once, their heartbeats are late.

    The coordinator answers such a commit, and puts its sender out a moment later: nothing irreversible may rest on it.
    """
    most = CONSUMER_SESSION_MS
    freezes = tuple(
        Trouble(at, "pause", most - chance.randint(100, 1_100)) for at in range(12_000, swarm.busy_ms - 4_000, 14_000)
    )
    group = replace(swarm.group, protocol="consumer", late_heartbeat_ms=4_000)
    due = Burst(8 * SPREAD, (1_000, 8_000), (12_000, swarm.busy_ms))
    node = replace(swarm.node, trouble=(*swarm.node.trouble, *freezes))
    return replace(swarm, group=group, node=node, bursts=(*swarm.bursts, due))


def wide_controls(swarm: Swarm, chance: Random) -> Swarm:
    """Owners fall at the very steps of a suspend and of a resume, with messages due in between; in some worlds writes come
    again when all is over, in some nobody hears a poke.
    """
    steps = ("move_controls", "controls", "controls", "controls_done", "hold", "let_go", "end_covered")
    falls = tuple(Trouble(0, "crash", chance.randint(200, 9_000), once_applied=chance.choice(steps)) for _ in range(3))
    due = Burst(SPREAD, (2_000, 40_000), (6_000, 60_000))
    if chance.random() < 0.5:
        swarm = replace(swarm, store=replace(swarm.store, duplicate=0.5, remembers_tokens=False))
    if chance.random() < 0.5:
        swarm = replace(swarm, broker=replace(swarm.broker, lost_pokes=1.0))
    return replace(swarm, node=replace(swarm.node, trouble=(*swarm.node.trouble, *falls)), bursts=(*swarm.bursts, due))


def suspends_until(swarm: Swarm, chance: Random) -> Swarm:
    """Suspensions that end by themselves (`ends.py`): owners fall, or stand still, at the steps of a suspend and of a resume; in some worlds
    the store is silent for a while as well, so that some of the ends come meanwhile.
    """
    steps = ("control", "control", "control", "recurring", "end_pending", "park", "release")
    falls = strikes(chance, steps, 4)
    if chance.random() < 0.5:
        silent = tuple(period(chance, swarm.busy_ms - 8_000, 2_000, 12_000) for _ in range(2))
        swarm = replace(swarm, store=replace(swarm.store, brown_outs=(*swarm.store.brown_outs, *silent)))
    if chance.random() < 0.15:
        swarm = silence(swarm, chance)
    return replace(swarm, node=replace(swarm.node, trouble=(*swarm.node.trouble, *falls)))


def redefined(swarm: Swarm, chance: Random) -> Swarm:
    """Updates that change limits, policies and tries, and requests with all their words (`redefining.py`): owners fall, or stand still, at the
    steps of an update, and as they admit by what was before it.
    """
    steps = ("control", "control", "end_pending", "admit", "offer", "trigger")
    falls = strikes(chance, steps, 4)
    crowd = max(swarm.crowd, CROWD) if chance.random() < 0.5 else swarm.crowd
    return replace(swarm, node=replace(swarm.node, trouble=(*swarm.node.trouble, *falls)), crowd=crowd)


def refusals(swarm: Swarm, chance: Random) -> Swarm:
    """One sink refuses all for half a minute, and owners fall as soon as they have stopped or changed a schedule: what waits for
    its next attempt by then is its successor's to leave alone.
    """
    broker = replace(swarm.broker, refusals=((8_000, 38_000),))
    falls = tuple(
        Trouble(at, "crash", chance.randint(200, 3_000), once_applied="control") for at in range(12_000, 48_000, 4_000)
    )
    return replace(swarm, broker=broker, node=replace(swarm.node, trouble=(*swarm.node.trouble, *falls)))


def sources(swarm: Swarm, chance: Random) -> Swarm:
    """A topic of the users' own: owners fall at the steps of its source, and as soon as they have moved a position; in some worlds
    nobody hears a poke, in others nobody leads the topic for a while.
    """
    steps = ("move_sources", "move_sources", "cursor", "cursor", "raise")
    falls = tuple(
        Trouble(chance.randint(0, 40_000), "crash", chance.randint(200, 9_000), once_applied=chance.choice(steps))
        for _ in range(4)
    )
    held = tuple(fallen_at("move_sources", chance.randint(0, 40_000), chance) for _ in range(3))
    store = replace(swarm.store, aimed=tuple(sorted({*swarm.store.aimed, *OF_SOURCES})))
    if chance.random() < 0.3:
        swarm = replace(swarm, broker=replace(swarm.broker, lost_pokes=1.0))
    if chance.random() < 0.4:
        silent = (LAST_TOPIC, period(chance, swarm.busy_ms, 2_000, 20_000))  # A source's is made behind all others.
        swarm = replace(swarm, broker=replace(swarm.broker, leaderless=(*swarm.broker.leaderless, silent)))
    return replace(swarm, store=store, node=replace(swarm.node, trouble=(*swarm.node.trouble, *falls, *held)))


def ticks(swarm: Swarm, chance: Random) -> Swarm:
    """Composites with a leaf of time: owners fall, or stand still, as soon as a tick has latched; in some worlds what would say
    how far the events are read takes effect late, and a decision takes few of the ticks that have come meanwhile.
    """
    steps = (*OF_TICKS, *OF_TICKS, "count", "mixed", "cursor")
    falls = strikes(chance, steps, 5, within=(0, 40_000))
    store = replace(swarm.store, aimed=tuple(sorted({*swarm.store.aimed, *OF_TICKS})))
    knobs = tuple((name, chance.choice(values)) for name, values in TICKS_KNOBS.items())
    node = replace(swarm.node, trouble=(*swarm.node.trouble, *falls))
    return replace(swarm, store=store, node=node, knobs=(*swarm.knobs, *knobs))


def failures(swarm: Swarm, chance: Random) -> Swarm:
    """Programs die more often than they may, so that tries are used up, and the topic of those dead letters takes some of them
    late, others without saying so. All schedules try again (`with_retries`), pokes are lost, and some programs are cancelled when
    they have just failed (`troubles.py`).
    """
    launcher = replace(swarm.launcher, early_death=0.4, silent_death=0.4)
    silent = tuple((NUMBER_OF_RUNS_DLQ, period(chance, swarm.busy_ms, 6_000, 20_000)) for _ in range(2))
    broker = swarm.broker
    broker = replace(
        broker,
        lost_ack=max(broker.lost_ack, 0.4),
        not_appended=max(broker.not_appended, 0.3),
        lost_pokes=max(broker.lost_pokes, 0.5),
        leaderless=(*broker.leaderless, *silent),
    )
    return replace(swarm, launcher=launcher, broker=broker)


def _with(swarm: Swarm, *bursts: Burst) -> Swarm:
    return replace(swarm, busy_ms=max(swarm.busy_ms, WINDOW_MS + 24_000), bursts=(*swarm.bursts, *bursts))


TRAPS: Mapping[str, Trap] = {
    "stalled_loads": Trap(stalled_loads, 0.08, "stalled_load"),
    "stalled_batches": Trap(stalled_batches, 0.08, "stalled_batch"),
    "stalled_checkpoints": Trap(stalled_checkpoints, 0.01, "stalled_checkpoint"),
    "contention": Trap(contention, 0.02),
    "frozen_heartbeats": Trap(frozen_heartbeats, 0.02, "pause"),
    "queues": Trap(queues, 0.02, "crash"),
    RATES: Trap(rates, 0.12, "crash"),
    "wide_controls": Trap(wide_controls, 0.06),
    "sources": Trap(sources, 0.08),
    "ticks": Trap(ticks, 0.14),
    "black_out": Trap(black_out, 0.05, "black_out"),
    "silence": Trap(silence, 0.03, "brown_out"),
    "echoes": Trap(echoes, 0.02, "duplicate_refused"),
    "refusals": Trap(refusals, 0.02, "refused"),
    "rare_moments": Trap(rare_moments, 0.28),
    "rare_suspends": Trap(rare_suspends, 0.14),
    "rare_resumes": Trap(rare_resumes, 0.1),
    "rare_voids": Trap(rare_voids, 0.2),
    "rare_expiries": Trap(rare_expiries, 0.14),
    "rare_outages": Trap(rare_outages, 0.1, "brown_out"),
    "rare_refusals": Trap(rare_refusals, 0.1, "refused"),
    REMINDERS: Trap(rare_reminders, 0.12),
    FAILURES: Trap(failures, 0.06, "early_death"),
    "copies": Trap(copies, 0.04, "early_death"),
    "requests_topic_made_anew": Trap(requests_topic_made_anew, 0.045, "recreated"),
    "open_transactions": Trap(open_transactions, 0.03, "open_transaction"),
    "two_releases": Trap(two_releases, 0.06),
    ENDS: Trap(suspends_until, 0.12),
    REDEFINED: Trap(redefined, 0.12),
    LOST_HOSTS: Trap(lost_hosts, 0.04, "silent_death"),
    STUBBORN: Trap(stubborn, 0.06, "rejected"),
    "rarest": Trap(rarest, 0.0),
}
