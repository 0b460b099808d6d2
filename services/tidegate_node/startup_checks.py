"""What must be true before a node serves: tables, topics and map, and that they belong together.

Each answer is one of three: facts to go on with, "not yet" (a brick does not answer: ask again), or a refusal that only a
person can end, with the sentence that says how.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.language.values.topic_namespaces import TopicNamespaces
from tidegate_core.rows.effects import Unavailable
from tidegate_core.rows.keys import MAP_KEY, SCHEMA_KEY
from tidegate_core.rows.schema_version import StoreSchema
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.writes.partition_map import MapUnreadable, map_of, misfits
from tidegate_node.node_identity import NodeFacts
from tidegate_node.settings import NodeSettings
from tidegate_ports.bus import Notices, Topics
from tidegate_ports.clock import Clock
from tidegate_ports.common.daemon_threads import apart
from tidegate_ports.common.run_tokens import SecretUnusable, read_secrets
from tidegate_ports.store import Store, StoreRequestInvalid, StoreUnavailable

EXIT_BUG: Final = 70
EXIT_TRY_LATER: Final = 75
EXIT_CONFIGURATION: Final = 78
"""As in sysexits.h: EX_SOFTWARE, EX_TEMPFAIL, EX_CONFIG."""
ASK_AGAIN_S: Final = 1.0
START: Final = "tidegate-start"
"""Thread of a look at a brick. What gives keys, or names of hosts, may hang in it, and an order to end waits for neither."""
INITIALISE: Final = "run `tidegate init` first"

Answer = TypeVar("Answer")


class StartRefused(Exception):
    """The node does not serve as things are (exit 78)."""


class NotYet(Exception):
    """A brick does not answer; ask again (exit 75 after the start's patience)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as planned; `unsafe` when the node must not serve with it."""

    text: str
    unsafe: bool


class Inspector(Protocol):
    """Looks at the bricks. Blocking; each raises NotYet when there is no answer."""

    def tables(self) -> Sequence[Difference]: ...

    def topics(self) -> Sequence[Difference]: ...

    def items(self, keys: Sequence[Key]) -> Mapping[Key, Item]: ...


class BrokerFacts(Topics, Protocol):
    """`Topics`, and which cluster they are on."""

    async def cluster_id(self) -> str | Unavailable: ...


@dataclass(frozen=True, slots=True)
class TopicNames:
    """Full names of tidegate's own topics."""

    requests: str
    events: str
    pokes: str
    receipts: str
    runs: str
    requests_dlq: str
    events_dlq: str
    runs_dlq: str

    @classmethod
    def by(cls, full: Callable[[str], str]) -> TopicNames:
        """Names them; `full` puts the prefix before a short name."""
        return cls(
            requests=full("requests"),
            events=full("events"),
            pokes=full("pokes"),
            receipts=full("receipts"),
            runs=full("runs"),
            requests_dlq=full("requests.dlq"),
            events_dlq=full("events.dlq"),
            runs_dlq=full("runs.dlq"),
        )


async def patiently(
    work: Callable[[], Awaitable[Answer]],
    patience_s: float,
    clock: Clock,
    notices: Notices,
    pause_s: float = ASK_AGAIN_S,
) -> Answer:
    """Repeats what is not answered yet, until the patience is over.

    Raises:
        NotYet: The last one.
    """
    until = clock.monotonic_ms() + patience_s * 1000
    while True:
        try:
            return await work()
        except NotYet as silence:
            if clock.monotonic_ms() >= until:
                raise
            notices("waiting_for", message=str(silence))
        await asyncio.sleep(pause_s)


async def node_facts(
    settings: NodeSettings, names: TopicNames, inspector: Inspector, brokers: BrokerFacts, notices: Notices
) -> NodeFacts:
    """Checks everything and returns what the drivers need.

    Raises:
        StartRefused: Tables, topics or map are missing, unsafe, or of another cluster; or rows are of versions that are not read here.
        NotYet: Something does not answer.
    """
    for look in (inspector.tables, inspector.topics):
        _judge(await apart(look, START), notices)
    items = await apart(partial(_read_items, inspector), START)
    stored, schema = items.get(MAP_KEY), StoreSchema.of(items.get(SCHEMA_KEY))
    if stored is None:
        raise StartRefused(f"the cluster's map (item MAP) is not there: {INITIALISE}")
    if (refusal := schema.refusal()) is not None:
        raise StartRefused(refusal)
    topics = await described(names, brokers)
    cluster_id = answered(await brokers.cluster_id())
    try:
        cluster = map_of(stored)
    except MapUnreadable as unreadable:
        raise StartRefused(str(unreadable)) from unreadable
    if wrong := misfits(cluster, topics[names.requests], cluster_id):
        raise StartRefused("; ".join(wrong))
    return NodeFacts(
        owner=str(uuid.uuid4()),
        name=settings.node,
        cluster=cluster,
        # As the map says: what the topic has more than that, and another one of its name, is followed once the node runs (`map_watch`).
        requests=TopicFacts(names.requests, cluster.topic_id, cluster.topic_partitions),
        events=topics[names.events],
        pokes=topics[names.pokes],
        receipts=names.receipts,
        runs=names.runs,
        requests_dlq=names.requests_dlq,
        events_dlq=names.events_dlq,
        runs_dlq=names.runs_dlq,
        minimum_period_ms=settings.minimum_period_ms,
        namespaces=TopicNamespaces(settings.namespaces.requests, settings.namespaces.events),
        quotas=settings.quotas,
        writes=schema.writes,
    )


async def described(names: TopicNames, brokers: Topics) -> Mapping[str, TopicFacts]:
    """The topics that are read, as the brokers know them.

    Raises:
        StartRefused: One is missing.
        NotYet: The brokers do not answer.
    """
    wanted = (names.requests, names.events, names.pokes)
    found = answered(await brokers.describe(wanted))
    if missing := [name for name in wanted if name not in found]:
        raise StartRefused(f"topics {', '.join(missing)} do not exist: {INITIALISE}")
    return {name: TopicFacts(name, topic.id, topic.topic_partitions) for name, topic in found.items()}


def answered(answer: Answer | Unavailable) -> Answer:
    """The answer. Raises NotYet when there is none."""
    if isinstance(answer, Unavailable):
        raise NotYet(answer.what)
    return answer


def gate_secret(file: Path | None) -> bytes:
    """Reads the secret that signs the runs' tokens: the first of those in the file.

    Raises:
        StartRefused: It is not named, not readable, or one of them is too short.
    """
    try:
        return read_secrets(file)[0]
    except SecretUnusable as refusal:
        raise StartRefused(str(refusal)) from refusal


def _read_items(inspector: Inspector) -> Mapping[Key, Item]:
    try:
        return inspector.items([MAP_KEY, SCHEMA_KEY])
    except StoreUnavailable as silence:
        raise NotYet(f"store: {silence}") from silence
    except StoreRequestInvalid as refusal:
        raise StartRefused(store_refuses(refusal)) from refusal


def _judge(differences: Sequence[Difference], notices: Notices) -> None:
    if unsafe := [difference.text for difference in differences if difference.unsafe]:
        raise StartRefused(f"{'; '.join(unsafe)}: {INITIALISE}, or repair it by hand where it says no more")
    for difference in differences:
        notices("topic_differs", message=difference.text)


def store_refuses(refusal: StoreRequestInvalid) -> str:
    """Returns what to tell whoever started a process whose request the store never takes."""
    return f"the store refuses what it is asked: {refusal}: are its tables tidegate's, made by `tidegate init`?"


def shards_of(store: Store) -> int:
    """Returns how many shards the cluster has. Raises StartRefused, StoreRequestInvalid, StoreUnavailable."""
    item = store.get((MAP_KEY,)).get(MAP_KEY)
    if item is None:
        raise StartRefused(f"the store holds no map: {INITIALISE}")
    try:
        return map_of(item).shards
    except MapUnreadable as unreadable:
        raise StartRefused(str(unreadable)) from unreadable
