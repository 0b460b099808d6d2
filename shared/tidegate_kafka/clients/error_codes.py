"""Maps the client's error codes to our outcomes: one table for produced records, one for membership probes."""

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
"""Errors that another record of the same batch may have caused (`unbatched_topics.py`)."""

WILL_NOT_WORK = OF_THE_BATCH | frozenset(
    {
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - the client's own public codes begin so
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - a public code of the client
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
        KafkaError._INVALID_ARG,  # noqa: SLF001 - a public code of the client
    }
)
"""Errors that a second attempt with the same record meets again. The client reports an unknown topic only after the
brokers' metadata has lacked it for `topic.metadata.propagation.max.ms`. After any other error, the record may or may
not be in the log, and a retry may succeed."""

NOT_A_MEMBER = frozenset(
    {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.GROUP_ID_NOT_FOUND,
    }
)
"""Errors that say that the member was expelled. `ILLEGAL_GENERATION`, `REBALANCE_IN_PROGRESS` and KIP-848's
`STALE_MEMBER_EPOCH` are absent: they come from a rebalance, or from a member epoch that changed during the probe, and
the member keeps its assignment. A group that does not exist has no members (KIP-848; the classic protocol answers
`UNKNOWN_MEMBER_ID` or `ILLEGAL_GENERATION`)."""


def not_produced(error: KafkaError) -> NotProduced:
    return NotProduced(REFUSED if error.code() in WILL_NOT_WORK else UNAVAILABLE, f"{error.name()}: {error.str()}")


def probe_verdict(error: KafkaError | None) -> ProbeVerdict:
    if error is None:
        return ProbeVerdict.MEMBER
    return ProbeVerdict.EXPELLED if error.code() in NOT_A_MEMBER else ProbeVerdict.UNSETTLED
