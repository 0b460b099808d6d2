"""Times of one part that another one goes by: each pair whose order matters, and is asserted nowhere else."""

from __future__ import annotations

from tidegate_core.engine.membership_lease import CLOCK_OFF_MS_MAX, MAP_TRUSTED_MS
from tidegate_core.messages.message_scheduler import CLOCKS_APART_MS
from tidegate_core.shard.map_transition import CHECK_MS, HAND_OVER_MS
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_node.assigned_partitions import SWITCH_MS
from tidegate_node.liveness.heartbeat import BEAT_EVERY_MS, CLOCK_OFFSET_MS_MAX, STORE_SILENCE_MS_MAX
from tidegate_node.liveness.heartbeat_loop import SEEN_EVERY_BEATS
from tidegate_node.steady_clock import STEP_MS_MAX
from tidegate_node.topics.partition_map_watch import READ_EVERY_S

KAFKA = KafkaSettings(allow_plaintext=True)


def test_given_two_clocks_that_may_be_gone_by_then_what_a_predecessor_may_have_sent_lies_within_their_distance() -> (
    None
):
    assert 2 * CLOCK_OFFSET_MS_MAX <= CLOCKS_APART_MS
    assert CLOCK_OFFSET_MS_MAX <= CLOCK_OFF_MS_MAX
    assert STEP_MS_MAX <= CLOCK_OFFSET_MS_MAX, "else a step that is followed would be one that ends the node"


def test_given_a_holder_that_hands_over_in_order_then_nobody_raises_its_position_before() -> None:
    assert READ_EVERY_S * 1_000 + SWITCH_MS + CHECK_MS < HAND_OVER_MS


def test_given_a_map_that_is_read_late_then_it_is_trusted_on() -> None:
    """The brokers may be asked for the topic between two reads."""
    assert 3 * (READ_EVERY_S * 1_000 + KAFKA.answer_ms_max) < MAP_TRUSTED_MS


def test_given_a_node_that_alone_has_lost_the_store_then_it_has_left_before_its_place_is_taken() -> None:
    assert STORE_SILENCE_MS_MAX + BEAT_EVERY_MS + KAFKA.stop_drain_ms_max < MAP_TRUSTED_MS


def test_given_a_take_over_then_it_is_no_outage() -> None:
    assert BEAT_EVERY_MS * SEEN_EVERY_BEATS + KAFKA.session_ms + KAFKA.stop_drain_ms_max < OUTAGE_GRACE_MS
