"""Settings of the Kafka clients, with their units, defaults and reasons.

A service embeds `KafkaSettings` in its own settings class. This module does not read the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from tidegate_kafka.clients.security import SECRET_WORDS, SECURED, KafkaSecurity

MIB = 1024 * 1024

OURS = frozenset(
    {
        "acks",
        "auto.offset.reset",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.poll.interval.ms",
        "message.timeout.ms",
        "partition.assignment.strategy",
        "partitioner",
        "session.timeout.ms",
    }
)
"""Client properties that guarantees of tidegate depend on: `extra` must not set them."""
ALIASES = frozenset(
    {
        "auto.commit.enable",
        "bootstrap.servers",
        "delivery.timeout.ms",
        "metadata.broker.list",
        "request.required.acks",
        "transactional.id",
    }
)
"""Aliases of properties that tidegate sets, with which `extra` could redirect a client or lengthen a record's life; and
`transactional.id`, which changes the kind of client."""


class KafkaSettings(KafkaSecurity):
    """Connection, group, consumer and producer settings of this process."""

    bootstrap_servers: str = Field(
        default="127.0.0.1:9092", min_length=1, description="host:port, comma separated. Default: the local broker."
    )
    topic_prefix: str = Field(
        default="tidegate",
        pattern=r"^[a-zA-Z0-9.-]{1,100}$",
        description="Topics are `<prefix>.requests` and so on, of one tidegate cluster only. No `_`: Kafka's metrics confuse it with `.`.",
    )
    group: str = Field(
        default="tidegate", min_length=1, max_length=200, description="Consumer group of the nodes of one cluster."
    )
    client_id: str = Field(
        default="tidegate",
        min_length=1,
        max_length=100,
        description="Shown in the brokers' logs. Give each process its own: equal ids can cause endless rebalances (librdkafka#4783).",
    )
    group_protocol: Literal["classic", "consumer"] = Field(
        default="classic",
        description="`consumer` (KIP-848) is opt-in: the brokers then set the session, 45 s by default, and a node reads it when it "
        "starts. With its default settings `classic` takes over sooner.",
    )
    session_ms: int = Field(
        default=6_000,
        ge=1_000,
        le=300_000,
        description="A dead node's topic partitions move after this. Brokers refuse less than 6 s by default. With the protocol "
        "`consumer` the brokers' value applies instead.",
    )
    heartbeat_ms: int = Field(
        default=500,
        ge=100,
        description="A twelfth of the session: eleven heartbeats may be lost, and other members soon learn of a lost one. With the "
        "protocol `consumer` the brokers' value applies instead.",
    )
    poll_gap_ms_max: int = Field(
        default=12_000,
        description="A thread that does not poll for this long leaves the group (`max.poll.interval.ms`); its membership lease lapsed "
        "long before. A rebalance waits this long for a silent member, hence not the usual 5 min. With `classic`: at least one and a "
        "half sessions, a drain and a heartbeat, or a rebalance would give away topic partitions that a lease still covers.",
    )
    drain_ms_max: int = Field(
        default=2_500,
        ge=0,
        description="Longest wait of a revocation for the owner's drain; cut to the rest of the membership lease.",
    )
    stop_drain_ms_max: int = Field(
        default=10_000,
        ge=0,
        description="Longest drain of a planned stop. Probes go on during it, so the membership lease does not limit it.",
    )
    batch_records_max: int = Field(
        default=500,
        ge=1,
        le=10_000,
        description="Most records taken from the client at once: 1 µs per record instead of 60 µs one by one.",
    )
    batch_linger_ms: int = Field(
        default=2,
        ge=0,
        le=100,
        description="Wait for more records after a batch's first one: a tenth of the lateness goal's p50.",
    )
    poll_wait_ms: int = Field(
        default=20,
        ge=1,
        le=500,
        description="Idle wait of a consumer's thread: the delay of a command, at 50 wake-ups a second (0.3 % of a core).",
    )
    fetch_wait_ms: int = Field(
        default=100,
        ge=1,
        le=500,
        description="Longest wait of a broker for data; a newly assigned topic partition waits for it once.",
    )
    fetch_queue_kib: int = Field(
        default=16_384,
        ge=64,
        description="Prefetch queue of a consumer, KiB. Records already handed over have their own limits (below, and 16 MiB for "
        "each topic partition).",
    )
    in_flight_records_max: int = Field(
        default=2_000,
        ge=1,
        description="Records of one topic partition that its owner has not finished. At this number reading pauses; at half it resumes.",
    )
    metadata_age_ms: int = Field(
        default=30_000,
        ge=1_000,
        description="Age of the metadata: new topic partitions are seen within it. The client's default of 5 min is too long.",
    )
    linger_ms: int = Field(
        default=2,
        ge=0,
        le=100,
        description="Wait of a producer to fill a batch; a tenth of the lateness goal's p50.",
    )
    compression: Literal["none", "lz4"] = Field(
        default="none", description="Payloads are small; lz4 saves bytes only above about 1 KiB a batch."
    )
    delivery_ms_max: int = Field(
        default=10_000,
        ge=100,
        description="An unguarded record that is not acknowledged by then is `unavailable` (dead letters, receipts).",
    )
    queue_records_max: int = Field(
        default=100_000,
        ge=1,
        description="Records inside one producer (within 64 MiB); further ones are `unavailable` at once.",
    )
    record_bytes_max: int = Field(
        default=5 * MIB + 64 * 1024,
        ge=1024,
        description="Limit of the client: a dead letter of 5 MiB and its headers. Topics have lower limits.",
    )
    answer_ms_max: int = Field(default=5_000, ge=100, description="Time-out of one administrative query.")
    restart_wait_ms: int = Field(default=1_000, ge=10, description="Wait before a failed client is recreated.")
    topic_partitions: int = Field(default=8, ge=1, le=10_000, description="Count for topics that tidegate creates.")
    replication_factor: int = Field(
        default=-1, ge=-1, description="Replicas of topics that tidegate creates; -1 = the broker's default."
    )
    retention_ms: int = Field(
        default=7 * 86_400_000,
        ge=60_000,
        description="Retention of topics that tidegate creates: 7 d; tombstones outlive it.",
    )
    extra: Mapping[str, str] = Field(
        default_factory=dict,
        description="Further librdkafka properties for all clients, such as `client.rack`; no secrets.",
    )

    @field_validator("extra")
    @classmethod
    def _leaves_ours_alone(cls, extra: Mapping[str, str]) -> Mapping[str, str]:
        if taken := sorted((OURS | ALIASES) & extra.keys()):
            raise ValueError(
                f"{', '.join(taken)}: tidegate sets it because a guarantee depends on it; remove it from extra"
            )
        if taken := sorted(SECURED & extra.keys()):
            raise ValueError(f"{', '.join(taken)}: has its own setting, with _ for . in its name; use that one")
        if taken := sorted(name for name in extra if any(word in name for word in SECRET_WORDS)):
            raise ValueError(f"{', '.join(taken)}: extra must hold no secrets; remove it")
        return extra

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        # With `consumer` the brokers set session and heartbeat, and check that they fit.
        if self.group_protocol == "classic" and self.heartbeat_ms * 3 > self.session_ms:
            raise ValueError(
                f"heartbeat_ms {self.heartbeat_ms} is more than a third of session_ms {self.session_ms}: a lost heartbeat would expel "
                "the member; lower it"
            )
        if self.group_protocol == "classic" and self.poll_gap_ms_max < self.classic_poll_gap_ms_min:
            raise ValueError(
                f"poll_gap_ms_max {self.poll_gap_ms_max} must be at least {self.classic_poll_gap_ms_min} ms: one and a half times "
                f"session_ms {self.session_ms}, drain_ms_max {self.drain_ms_max} and heartbeat_ms {self.heartbeat_ms}. With less, a "
                "rebalance would give away topic partitions that a membership lease still covers"
            )
        # With `consumer` the drain is checked once the brokers have reported session and heartbeat
        # (`GroupSession.settings`).
        if self.group_protocol == "classic":
            self.check_drain()
        return self

    def check_drain(self) -> None:
        """Raises ValueError if a drain would outlast the membership lease."""
        of_what = (
            "half a session"
            if self.group_protocol == "classic"
            else "half of the smaller of (session - heartbeat) and (poll_gap_ms_max - drain_ms_max)"
        )
        if self.drain_ms_max >= self.half_session_ms:
            raise ValueError(
                f"drain_ms_max {self.drain_ms_max} must stay below {of_what}, {self.half_session_ms} ms: the membership lease"
            )

    @property
    def classic_poll_gap_ms_min(self) -> int:
        """Shortest time that a rebalance must wait for a member, so that an expelled member has no membership lease
        left.

        During the rebalance the coordinator accepts commits of the generation before, and the lease counts them. A
        member that freezes repeatedly reaches the coordinator at the latest a session after the rebalance began;
        otherwise its session ends. It may first have to drain, and it joins after the answer to a heartbeat. If it
        freezes instead, it commits nothing. Its last commit keeps its lease for half a session more.
        """
        return self.session_ms + self.drain_ms_max + self.heartbeat_ms + self.session_ms // 2

    @property
    def half_session_ms(self) -> int:
        """Length of the membership lease, and the longest life of a guarded record inside the producer.

        With KIP-848 the last heartbeat may be older than the commit that proves the member. The difference is one
        heartbeat interval, plus a freeze too short to be detected: up to the lease's length. A member that must give up
        topic partitions may learn of it after such a freeze, then drains, and may commit until the end. That time and
        one more lease fit into the poll gap.
        """
        if self.group_protocol == "classic":
            return self.session_ms // 2
        return min(self.poll_gap_ms_max - self.drain_ms_max, self.session_ms - self.heartbeat_ms) // 2

    @property
    def settle_ms(self) -> int:
        """Wait after a freeze of the process until a proof counts again: with KIP-848 a commit does not keep a member.

        The value is three heartbeats at the brokers' default interval of 5 s. With half a session more it stays far
        below their 45 s.
        """
        return 15_000 if self.group_protocol == "consumer" else 0

    @property
    def joining_ms_max(self) -> int:
        """Longest time to join while brokers answer: the end of a dead member's session, and two rebalances that wait
        for a silent member.
        """
        return self.session_ms + 2 * self.poll_gap_ms_max

    @property
    def behind_former_life_ms(self) -> int:
        """Age at which a process that restarted at once may join (`previous_incarnation.py`).

        From this age on, the rebalance waits for the former session no longer than the leases of the other members
        last. Each of them has proven itself within a probe interval, and learns of the rebalance within a heartbeat.
        """
        return self.session_ms - (self.half_session_ms - self.probe_every_ms - self.heartbeat_ms)

    @property
    def probe_every_ms(self) -> int:
        """Interval of the probes. Three probes fit into a membership lease: two may be lost."""
        return self.half_session_ms // 3

    def topic(self, name: str) -> str:
        """Returns the full name of a topic: `requests` becomes `tidegate.requests`."""
        return f"{self.topic_prefix}.{name}"
