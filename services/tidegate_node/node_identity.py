"""What a node knows about itself and its cluster once it has started; while it runs, nothing of it changes but the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate_core.engine.actor_inputs import Assignment, TopicFacts
from tidegate_core.language.definitions.quotas import Quotas
from tidegate_core.language.values.topic_namespaces import EVERYBODY, TopicNamespaces
from tidegate_core.rows.schema_version import NEWEST
from tidegate_core.writes.partition_map import ClusterMap


@dataclass(slots=True)
class NodeFacts:
    """Facts that the drivers of all holdings share; `follow` alone changes them.

    Attributes:
        owner: UUID of this process.
        name: For people.
        cluster: The map in force, as far as this process knows.
        requests, events, pokes: The topics that are read; of the requests topic what the map says.
        receipts, runs, requests_dlq, events_dlq, runs_dlq: Names of those that are written.
        minimum_period_ms: Shortest period of a time trigger.
        namespaces: Which namespaces the records of the requests and of the events topic may name.
        quotas: What namespaces may ask for.
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
        """Another map is in force: what is begun from now on is begun under it (`AssignedPartitions.follow`)."""
        self.cluster = cluster
        self.requests = TopicFacts(self.requests.name, cluster.topic_id, cluster.topic_partitions)

    def holding(self, topic_partition: int, tenure: int) -> Assignment:
        """The holding of an ownership topic partition.

        Args:
            topic_partition: p.
            tenure: Another one for each actor of this process, so that no token ever repeats.
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
        """Topic partitions of pokes that the holder of p reads.

        Each is read by one holder where there are as many as ownership topic partitions; once these have grown beyond it, the further holders
        read one beside the holder before them.
        """
        own = range(topic_partition, self.pokes.topic_partitions, self.cluster.topic_partitions)
        return own or (topic_partition % self.pokes.topic_partitions,)

    def holder_of(self, shard: int) -> int:
        """The ownership topic partition whose holder owns the shard."""
        return self.cluster.holder_of(shard)
