"""Times of one part that another part's safety rests on: which of two has to be the longer one, and by how much."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tidegate_core.admission import limit_coordinator
from tidegate_core.engine import membership_lease
from tidegate_core.messages import message_scheduler
from tidegate_core.runs.run_lifecycle import START_WITHIN_MS
from tidegate_core.shard.events import outbox
from tidegate_core.shard.launch_values import SUBMIT_WITHIN_MS
from tidegate_core.shard.limits import limit_queue_entry
from tidegate_launchers.local import folder_retention
from tidegate_node import steady_clock
from tidegate_node.effects import launch_effects, run_folder_retention
from tidegate_node.liveness import heartbeat
from tidegate_node.settings import GATE_WAIT_S_MAX, LauncherSection
from tidegate_spark import gate_client, run_identity, wrapper


def test_given_a_gate_that_is_away_then_a_program_gives_up_and_is_submitted_again_before_its_run_has_failed() -> None:
    """Found in review: a wait for the gate of 20 min made a run fail for good that with 10 min was tried for more than an hour."""
    assert GATE_WAIT_S_MAX * 1_000 + 60_000 <= START_WITHIN_MS
    assert LauncherSection().gate_wait_s <= run_identity.GATE_WAIT_S_DEFAULT < GATE_WAIT_S_MAX
    with pytest.raises(ValidationError, match="gate_wait_s"):
        LauncherSection(gate_wait_s=1_200)


def test_given_a_launcher_with_a_long_line_then_the_owner_hears_of_it_before_the_run_is_given_up() -> None:
    """What nobody has asked the launcher for is looked at with half of its time left (`CheckRun`)."""
    assert 2 * launch_effects.IN_LINE_S * 1_000 < SUBMIT_WITHIN_MS // 2


def test_given_a_program_that_is_told_to_end_then_it_reports_before_it_is_killed() -> None:
    assert LauncherSection().cancel_grace_s > wrapper.TERMINATED_WAIT_S + gate_client.REQUEST_TIMEOUT_S


def test_given_an_offer_then_who_holds_on_to_it_says_so_in_time() -> None:
    assert 2 * limit_queue_entry.KEEP_OFFER_MS < limit_coordinator.OFFER_MS


def test_given_a_folder_of_a_run_then_it_stays_until_the_owner_has_seen_the_end() -> None:
    assert folder_retention.AGE_S_MIN * 1_000 >= run_folder_retention.SEEN_AFTER_MS


def test_given_clocks_that_are_as_far_off_as_nodes_serve_with_then_each_part_reckons_with_that() -> None:
    off = heartbeat.CLOCK_OFFSET_MS_MAX
    assert off == steady_clock.STEP_MS_MAX == membership_lease.CLOCK_OFF_MS_MAX
    assert (
        2 * off
        == membership_lease.CLOCKS_APART_MS_MAX
        == message_scheduler.CLOCKS_APART_MS
        == outbox.ACTIVATION_SLACK_MS
    )
