"""Settings of the Kafka clients: the one place with their units, defaults and reasons.

A service embeds `KafkaSettings` in its own settings class; nothing here reads the environment.
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
"""Client properties that carry an invariant: `extra` may not set them."""
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
"""Other names of what we set, by which `extra` could lead elsewhere or lengthen a record's life, and what makes a client another one."""


class KafkaSettings(KafkaSecurity):
    """How this process talks to Kafka."""

    bootstrap_servers: str = Field(
        default="127.0.0.1:9092", min_length=1, description="host:port, comma separated. The local broker's default."
    )
    topic_prefix: str = Field(
        default="tidegate",
        pattern=r"^[a-zA-Z0-9.-]{1,100}$",
        description="Topics are `<prefix>.requests` and so on, of one cluster alone. No `_`: Kafka's metrics mix it up with `.`.",
    )
    group: str = Field(
        default="tidegate", min_length=1, max_length=200, description="Consumer group of the nodes of one cluster."
    )
    client_id: str = Field(
        default="tidegate",
        min_length=1,
        max_length=100,
        description="Shown in the brokers' logs. Give each process its own: equal ones can loop in rebalances (librdkafka#4783).",
    )
    group_protocol: Literal["classic", "consumer"] = Field(
        default="classic",
        description="KIP-848 (`consumer`) is opt-in: with it the session is the brokers' setting, 45 s by default, and a node "
        "reads it when it starts. `classic` takes over sooner as long as nobody changed that.",
    )
    session_ms: int = Field(
        default=6_000,
        ge=1_000,
        le=300_000,
        description="A dead node's topic partitions move after this. Brokers refuse less than 6 s by default. With the protocol "
        "`consumer` what the brokers say takes its place.",
    )
    heartbeat_ms: int = Field(
        default=500,
        ge=100,
        description="A twelfth of the session: eleven may get lost, and others learn soon that somebody is gone. The brokers' "
        "as well with the protocol `consumer`.",
    )
    poll_gap_ms_max: int = Field(
        default=12_000,
        description="A thread that does not poll for so long leaves the group (`max.poll.interval.ms`); the guard ended long "
        "before. Also the time that a rebalance waits for a silent member, hence not the usual 5 min. With `classic` at least one and "
        "a half sessions, a drain and a heartbeat: a rebalance that waits for less gives away what a guard still holds.",
    )
    drain_ms_max: int = Field(
        default=2_500,
        ge=0,
        description="What a revocation waits for its owner at most; cut to what the guard has left.",
    )
    stop_drain_ms_max: int = Field(
        default=10_000,
        ge=0,
        description="What a planned stop waits: probes go on meanwhile, so the guard does not limit it.",
    )
    batch_records_max: int = Field(
        default=500,
        ge=1,
        le=10_000,
        description="Records taken from the client at once: 1 µs each instead of 60 µs one by one.",
    )
    batch_linger_ms: int = Field(
        default=2,
        ge=0,
        le=100,
        description="After a batch's first record, wait so long for more: a tenth of the lateness goal's p50.",
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
        description="A broker's longest wait for data: a newly assigned topic partition waits for it once.",
    )
    fetch_queue_kib: int = Field(
        default=16_384,
        ge=64,
        description="Prefetched by a consumer, KiB; records that were handed over are bounded by themselves (below, and 16 MiB "
        "for each topic partition).",
    )
    in_flight_records_max: int = Field(
        default=2_000,
        ge=1,
        description="Records of one topic partition that its owner has not finished; above it the flow pauses (and starts at half).",
    )
    metadata_age_ms: int = Field(
        default=30_000,
        ge=1_000,
        description="New topic partitions are seen within this; the client's 5 min is too long.",
    )
    linger_ms: int = Field(
        default=2,
        ge=0,
        le=100,
        description="Producers wait so long to fill a batch; a tenth of the lateness goal's p50.",
    )
    compression: Literal["none", "lz4"] = Field(
        default="none", description="Payloads are small; lz4 pays above about 1 KiB a batch."
    )
    delivery_ms_max: int = Field(
        default=10_000,
        ge=100,
        description="An unguarded record that is not acknowledged by then is `unavailable` (dead letters, receipts).",
    )
    queue_records_max: int = Field(
        default=100_000,
        ge=1,
        description="Records inside one producer (within 64 MiB); more are `unavailable` at once.",
    )
    record_bytes_max: int = Field(
        default=5 * MIB + 64 * 1024,
        ge=1024,
        description="Client's own limit: a dead letter of 5 MiB and its headers; topics limit further.",
    )
    answer_ms_max: int = Field(default=5_000, ge=100, description="Patience with one administrative question.")
    restart_wait_ms: int = Field(default=1_000, ge=10, description="A client that failed is made anew after this.")
    topic_partitions: int = Field(default=8, ge=1, le=10_000, description="Of topics that tidegate makes.")
    replication_factor: int = Field(
        default=-1, ge=-1, description="Of topics that tidegate makes; -1 = the broker's default."
    )
    retention_ms: int = Field(
        default=7 * 86_400_000, ge=60_000, description="Of topics that tidegate makes: 7 d; tombstones outlive it."
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
                f"{', '.join(taken)}: set by tidegate, because an invariant rests on it; remove it from extra"
            )
        if taken := sorted(SECURED & extra.keys()):
            raise ValueError(f"{', '.join(taken)}: has a setting of its own, with _ for . in its name; use that one")
        if taken := sorted(name for name in extra if any(word in name for word in SECRET_WORDS)):
            raise ValueError(f"{', '.join(taken)}: is a secret, and extra is no place for one")
        return extra

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        # With `consumer` session and heartbeat are the brokers', who see to it that they fit.
        if self.group_protocol == "classic" and self.heartbeat_ms * 3 > self.session_ms:
            raise ValueError(
                f"heartbeat_ms {self.heartbeat_ms} is more than a third of session_ms {self.session_ms}: one lost one would expel"
            )
        if self.group_protocol == "classic" and self.poll_gap_ms_max < self.classic_poll_gap_ms_min:
            raise ValueError(
                f"poll_gap_ms_max {self.poll_gap_ms_max} must be at least {self.classic_poll_gap_ms_min} ms, one and a half times session_ms "
                f"{self.session_ms}, drain_ms_max {self.drain_ms_max} and heartbeat_ms {self.heartbeat_ms}: a rebalance would give away "
                "what the guard still holds"
            )
        # With `consumer` that is known once the brokers have said what session and heartbeat are (`GroupSession.settings`).
        if self.group_protocol == "classic":
            self.check_drain()
        return self

    def check_drain(self) -> None:
        """Raises ValueError: a drain would outlast the guard."""
        of_what = (
            "half a session"
            if self.group_protocol == "classic"
            else "half of what a heartbeat leaves of a session, and of what it leaves itself of poll_gap_ms_max"
        )
        if self.drain_ms_max >= self.half_session_ms:
            raise ValueError(
                f"drain_ms_max {self.drain_ms_max} must stay below {of_what}, {self.half_session_ms} ms: the guard"
            )

    @property
    def classic_poll_gap_ms_min(self) -> int:
        """How long a rebalance has to wait for a member, so that whom it puts out has no guard left.

        While it waits, the coordinator takes commits of the generation before, and the guard counts them. A member that is frozen
        time and again is heard at the latest a session after the rebalance began, else its session runs out. It may have to drain
        first; then it joins, after the answer to a heartbeat, or is frozen until after that and commits nothing. What it committed
        last holds its guard for half a session more.
        """
        return self.session_ms + self.drain_ms_max + self.heartbeat_ms + self.session_ms // 2

    @property
    def half_session_ms(self) -> int:
        """The guard's length, and the longest life of a guarded record inside the producer.

        With KIP-848 the last heartbeat may be older than the commit that proves the member, by the time between two of them and by a freeze that is too
        short to be seen, of up to the guard's own length. And whom a rebalance asks to give something hears of it behind such a freeze,
        drains, and may have committed until then: that and a guard more fit into the poll gap.
        """
        if self.group_protocol == "classic":
            return self.session_ms // 2
        return min(self.poll_gap_ms_max - self.drain_ms_max, self.session_ms - self.heartbeat_ms) // 2

    @property
    def settle_ms(self) -> int:
        """How long the guard waits after a freeze of the process: with KIP-848 a commit does not keep a member.

        Three heartbeats at the brokers' default interval of 5 s; with half a session more it stays far below their 45 s.
        """
        return 15_000 if self.group_protocol == "consumer" else 0

    @property
    def joining_ms_max(self) -> int:
        """How long a client may take to come into its group while brokers answer: the end of a member that fell, and two rebalances that wait for a silent one."""
        return self.session_ms + 2 * self.poll_gap_ms_max

    @property
    def behind_former_life_ms(self) -> int:
        """How old a process that fell and came back at once shall be when it joins (`previous_incarnation.py`): the rebalance then waits for no more of its
        former session than the guards of all others last, of whom each has proven itself less than a probe ago, and hears of it within a heartbeat.
        """
        return self.session_ms - (self.half_session_ms - self.probe_every_ms - self.heartbeat_ms)

    @property
    def probe_every_ms(self) -> int:
        """Three probes fit into a guard: two may get lost."""
        return self.half_session_ms // 3

    def topic(self, name: str) -> str:
        """`requests` to `tidegate.requests`."""
        return f"{self.topic_prefix}.{name}"
