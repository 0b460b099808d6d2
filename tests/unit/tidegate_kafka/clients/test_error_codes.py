"""What error codes mean."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from tidegate_core.engine.membership_lease import ProbeVerdict
from tidegate_kafka.clients.error_codes import not_produced, probe_verdict


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._UNKNOWN_TOPIC, "refused"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "refused"),
        (KafkaError.MSG_SIZE_TOO_LARGE, "refused"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "refused"),
        (KafkaError._MSG_TIMED_OUT, "unavailable"),
        (KafkaError._PURGE_INFLIGHT, "unavailable"),
        (KafkaError._PURGE_QUEUE, "unavailable"),
        (KafkaError.NOT_ENOUGH_REPLICAS, "unavailable"),
        (KafkaError._FATAL, "unavailable"),
    ],
)
def test_given_delivery_error_then_the_record_is(code: int, kind: str) -> None:
    assert not_produced(KafkaError(code)).kind == kind


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (KafkaError.UNKNOWN_MEMBER_ID, ProbeVerdict.EXPELLED),
        (KafkaError.FENCED_INSTANCE_ID, ProbeVerdict.EXPELLED),
        (KafkaError.FENCED_MEMBER_EPOCH, ProbeVerdict.EXPELLED),
        (KafkaError.GROUP_ID_NOT_FOUND, ProbeVerdict.EXPELLED),
        (KafkaError.STALE_MEMBER_EPOCH, ProbeVerdict.UNSETTLED),
        (KafkaError.ILLEGAL_GENERATION, ProbeVerdict.UNSETTLED),
        (KafkaError.REBALANCE_IN_PROGRESS, ProbeVerdict.UNSETTLED),
        (KafkaError.COORDINATOR_NOT_AVAILABLE, ProbeVerdict.UNSETTLED),
        (KafkaError._WAIT_COORD, ProbeVerdict.UNSETTLED),
    ],
)
def test_given_answer_to_a_probe_then_its_verdict_is(code: int, verdict: ProbeVerdict) -> None:
    assert probe_verdict(KafkaError(code)) is verdict


def test_given_no_error_then_it_is_a_member() -> None:
    assert probe_verdict(None) is ProbeVerdict.MEMBER
