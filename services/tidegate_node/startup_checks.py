"""Checks before a node serves: tables, topics and map exist and belong together.

Called by `bootstrap.py` and by the operator commands. It reads only. Each check has one of three results: facts to
continue with; `NotYet`, when the store or a broker does not answer; or `StartRefused`, with a sentence that says what a
person must do.
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
from tidegate_core.language.values.names import TopicNamespaces
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
"""Name of the threads that query the store and the brokers. Sources of credentials and host names may hang there, but
an order to end does not wait for them."""
INITIALISE: Final = "run `tidegate init` first"

Answer = TypeVar("Answer")


class StartRefused(Exception):
    """The node cannot serve in this state (exit 78)."""


class NotYet(Exception):
    """The store or a broker does not answer; ask again (exit 75 after `startup_wait_s`)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference from the plan; `unsafe` if the node must not serve with it."""

    text: str
    unsafe: bool


class Inspector(Protocol):
    """Inspects the store and the topics. Blocking; each method raises NotYet when there is no answer."""

    def tables(self) -> Sequence[Difference]: ...

    def topics(self) -> Sequence[Difference]: ...

    def items(self, keys: Sequence[Key]) -> Mapping[Key, Item]: ...


class BrokerFacts(Topics, Protocol):
    """`Topics`, with the id of the Kafka cluster."""

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
        """Builds the names; `full` adds the prefix to a short name."""
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
    """Repeats unanswered work until the patience is over.

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
    """Checks everything and returns the facts that the drivers need.

    Raises:
        StartRefused: Tables, topics or map are missing, unsafe, or of another cluster; or this release cannot read the
            version of the rows.
        NotYet: The store or a broker does not answer.
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
        # As the map says. A larger or recreated requests topic is followed once the node runs
        # (`partition_map_watch.py`).
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
    """Returns the topics that are read, as the brokers describe them.

    Raises:
        StartRefused: A topic is missing.
        NotYet: The brokers do not answer.
    """
    wanted = (names.requests, names.events, names.pokes)
    found = answered(await brokers.describe(wanted))
    if missing := [name for name in wanted if name not in found]:
        raise StartRefused(f"topics {', '.join(missing)} do not exist: {INITIALISE}")
    return {name: TopicFacts(name, topic.id, topic.topic_partitions) for name, topic in found.items()}


def answered(answer: Answer | Unavailable) -> Answer:
    """Returns the answer. Raises NotYet if there is none."""
    if isinstance(answer, Unavailable):
        raise NotYet(answer.what)
    return answer


def gate_secret(file: Path | None) -> bytes:
    """Reads the secret that signs the runs' tokens: the first one in the file.

    Raises:
        StartRefused: The file is not named or not readable, or a secret is too short.
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
        raise StartRefused(f"{'; '.join(unsafe)}: {INITIALISE}, or repair manually if that does not help")
    for difference in differences:
        notices("topic_differs", message=difference.text)


def store_refuses(refusal: StoreRequestInvalid) -> str:
    """Returns the message for a process whose request the store always refuses."""
    return f"the store refuses the request: {refusal}; check that its tables were created by `tidegate init`"


def shards_of(store: Store) -> int:
    """Returns the number of shards of the cluster. Raises StartRefused, StoreRequestInvalid, StoreUnavailable."""
    item = store.get((MAP_KEY,)).get(MAP_KEY)
    if item is None:
        raise StartRefused(f"the store holds no map: {INITIALISE}")
    try:
        return map_of(item).shards
    except MapUnreadable as unreadable:
        raise StartRefused(str(unreadable)) from unreadable
