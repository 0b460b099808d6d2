"""What the client's error codes mean to us: one table for produced records, one for probes."""

from __future__ import annotations

from confluent_kafka import KafkaError

from tidegate_core.engine.membership_lease import ProbeVerdict
from tidegate_core.rows.effects import NotProduced

GUARD = "guard"
REFUSED = "refused"
UNAVAILABLE = "unavailable"

OF_THE_BATCH = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.POLICY_VIOLATION,
    }
)
"""What a broker says of a record may be due to another one of its batch (`unbatched_topics.py`)."""

WILL_NOT_WORK = OF_THE_BATCH | frozenset(
    {
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - the client's own public codes begin so
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - likewise
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
        KafkaError._INVALID_ARG,  # noqa: SLF001 - likewise
    }
)
"""Sent again as it is, it would be refused again. The client reports an unknown topic only once the brokers' metadata said
so for `topic.metadata.propagation.max.ms`. Everything else may pass, and the record may or may not be in the log."""

NOT_A_MEMBER = frozenset(
    {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.GROUP_ID_NOT_FOUND,
    }
)
"""`ILLEGAL_GENERATION`, `REBALANCE_IN_PROGRESS` and KIP-848's `STALE_MEMBER_EPOCH` are not among them: a rebalance is under
way, or the member's epoch moved while the probe was, and the member keeps what it holds until it is told otherwise. A group
that is not there has no members (KIP-848; the classic protocol says `UNKNOWN_MEMBER_ID` or `ILLEGAL_GENERATION`)."""


def not_produced(error: KafkaError) -> NotProduced:
    return NotProduced(REFUSED if error.code() in WILL_NOT_WORK else UNAVAILABLE, f"{error.name()}: {error.str()}")


def probe_verdict(error: KafkaError | None) -> ProbeVerdict:
    if error is None:
        return ProbeVerdict.MEMBER
    return ProbeVerdict.EXPELLED if error.code() in NOT_A_MEMBER else ProbeVerdict.UNSETTLED
