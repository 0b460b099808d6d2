"""Facts that a node knows about itself and its cluster after its start. Only the partition map changes later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate_core.engine.actor_inputs import Assignment, TopicFacts
from tidegate_core.language.definitions.quotas import Quotas
from tidegate_core.language.values.names import EVERYBODY, TopicNamespaces
from tidegate_core.rows.schema_version import NEWEST
from tidegate_core.writes.partition_map import ClusterMap


@dataclass(slots=True)
class NodeFacts:
    """Facts that the drivers of all assignments share; only `follow` changes them.

    Attributes:
        owner: UUID of this process.
        name: Name for people.
        cluster: Partition map in force, as far as this process knows.
        requests, events, pokes: Topics that are read; of the requests topic the state in the map.
        receipts, runs, requests_dlq, events_dlq, runs_dlq: Names of topics that are written.
        minimum_period_ms: Shortest period of a time trigger.
        namespaces: Namespaces that records of the requests and events topics may name.
        quotas: Bounds on the schedules of each namespace.
        writes: Version in which rows were written when the process started.
    """

    owner: str
    name: str
    cluster: ClusterMap
    requests: TopicFacts
    events: TopicFacts
    pokes: TopicFacts
    receipts: str
    runs: str
    requests_dlq: str
    events_dlq: str
    runs_dlq: str
    minimum_period_ms: int
    namespaces: TopicNamespaces = EVERYBODY
    quotas: Quotas = field(default_factory=dict)
    writes: int = NEWEST

    def follow(self, cluster: ClusterMap) -> None:
        """Sets a new map. Later assignments begin under it (`AssignedPartitions.follow`)."""
        self.cluster = cluster
        self.requests = TopicFacts(self.requests.name, cluster.topic_id, cluster.topic_partitions)

    def holding(self, topic_partition: int, tenure: int) -> Assignment:
        """Returns the assignment of an ownership topic partition.

        Args:
            topic_partition: Number of the topic partition.
            tenure: Number that is unique for each actor of this process, so that no token repeats.
        """
        return Assignment(
            owner=self.owner,
            node=self.name,
            topic_partition=topic_partition,
            topic_partitions=self.cluster.topic_partitions,
            map_version=self.cluster.version,
            shards=self.cluster.shards,
            cluster_id=self.cluster.cluster_id,
            requests=self.requests,
            events_topic=self.events.name,
            receipts_topic=self.receipts,
            runs_topic=self.runs,
            requests_dlq_topic=self.requests_dlq,
            events_dlq_topic=self.events_dlq,
            runs_dlq_topic=self.runs_dlq,
            minimum_period_ms=self.minimum_period_ms,
            namespaces=self.namespaces,
            quotas=self.quotas,
            writes=min(self.writes, NEWEST),
            tenure=tenure,
            former_maps=self.cluster.former,
        )

    def pokes_of(self, topic_partition: int) -> Sequence[int]:
        """Returns the wake-up topic partitions that the owner of this ownership topic partition reads.

        With equal numbers each has one reader. If there are more ownership topic partitions, several owners read the
        same one.
        """
        own = range(topic_partition, self.pokes.topic_partitions, self.cluster.topic_partitions)
        return own or (topic_partition % self.pokes.topic_partitions,)

    def holder_of(self, shard: int) -> int:
        """Returns the ownership topic partition whose owner owns the shard."""
        return self.cluster.holder_of(shard)
