"""The local guard: what extends it, what ends it, what changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.engine.membership_lease import PROBES_OPEN_MAX, MembershipLease, ProbeVerdict

HALF_SESSION_MS = 3_000


@pytest.fixture
def guard() -> MembershipLease:
    return MembershipLease(HALF_SESSION_MS)


def test_given_no_probe_answered_then_it_does_not_hold(guard: MembershipLease) -> None:
    assert not guard.holds(0)
    guard.probe_sent(0)
    assert not guard.holds(1)


def test_given_success_then_it_holds_from_the_sending_and_not_from_the_answer(guard: MembershipLease) -> None:
    probe = guard.probe_sent(1_000)
    assert guard.probe_answered(probe, ProbeVerdict.MEMBER)
    assert guard.holds(1_000 + HALF_SESSION_MS - 1)
    assert not guard.holds(1_000 + HALF_SESSION_MS)
    assert guard.remaining_ms(2_000) == HALF_SESSION_MS - 1_000


def test_given_answer_later_than_half_a_session_then_it_proves_nothing(guard: MembershipLease) -> None:
    probe = guard.probe_sent(0)
    assert guard.probe_answered(probe, ProbeVerdict.MEMBER)
    assert not guard.holds(HALF_SESSION_MS + 1)


def test_given_unsettled_answer_then_it_neither_extends_nor_drops(guard: MembershipLease) -> None:
    guard.probe_answered(guard.probe_sent(0), ProbeVerdict.MEMBER)
    assert guard.probe_answered(guard.probe_sent(1_000), ProbeVerdict.UNSETTLED)
    assert guard.remaining_ms(0) == HALF_SESSION_MS


def test_given_expelled_then_it_ends_at_once_and_answers_of_that_membership_do_not_bring_it_back(
    guard: MembershipLease,
) -> None:
    guard.probe_answered(guard.probe_sent(0), ProbeVerdict.MEMBER)
    late = guard.probe_sent(10)
    assert guard.probe_answered(guard.probe_sent(20), ProbeVerdict.EXPELLED)
    assert not guard.holds(21)
    assert not guard.probe_answered(late, ProbeVerdict.MEMBER)
    assert not guard.holds(22)
    guard.probe_answered(guard.probe_sent(30), ProbeVerdict.MEMBER)
    assert guard.holds(31)


def test_given_new_membership_then_a_late_refusal_of_the_old_one_does_not_end_it(guard: MembershipLease) -> None:
    old = guard.probe_sent(0)
    guard.membership_lost()
    guard.probe_answered(guard.probe_sent(100), ProbeVerdict.MEMBER)
    assert not guard.probe_answered(old, ProbeVerdict.EXPELLED)
    assert guard.holds(101)


def test_given_answers_overtake_each_other_then_the_younger_proof_stays(guard: MembershipLease) -> None:
    first, second = guard.probe_sent(0), guard.probe_sent(500)
    guard.probe_answered(second, ProbeVerdict.MEMBER)
    guard.probe_answered(first, ProbeVerdict.MEMBER)
    assert guard.remaining_ms(500) == HALF_SESSION_MS


def test_given_one_answer_twice_then_the_second_changes_nothing(guard: MembershipLease) -> None:
    probe = guard.probe_sent(0)
    assert guard.probe_answered(probe, ProbeVerdict.MEMBER)
    assert not guard.probe_answered(probe, ProbeVerdict.EXPELLED)
    assert guard.holds(1)


def test_given_long_silence_then_the_oldest_probes_are_forgotten(guard: MembershipLease) -> None:
    probes = [guard.probe_sent(at) for at in range(PROBES_OPEN_MAX + 1)]
    assert not guard.probe_answered(probes[0], ProbeVerdict.MEMBER)
    assert guard.probe_answered(probes[1], ProbeVerdict.MEMBER)


def test_given_no_length_then_it_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        MembershipLease(0)


Step = tuple[int, int, ProbeVerdict, int]


@given(
    steps=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30), st.sampled_from(ProbeVerdict), st.integers(0, 3))),
    look=st.integers(0, 100),
)
def test_given_any_history_then_it_holds_only_by_a_success_sent_less_than_half_a_session_ago(
    steps: list[Step], look: int
) -> None:
    """Against the definition: some MEMBER answer to a probe sent after the last expulsion, younger than the length."""
    length = 20
    guard = MembershipLease(length)
    now = 0
    unanswered: list[tuple[int, int]] = []
    proofs: list[int] = []
    for wait, answer_index, verdict, sends in steps:
        now += wait
        unanswered.extend((guard.probe_sent(now), now) for _ in range(sends))
        unanswered = unanswered[-PROBES_OPEN_MAX:]
        if answer_index < len(unanswered):
            probe, sent_at = unanswered.pop(answer_index)
            guard.probe_answered(probe, verdict)
            if verdict is ProbeVerdict.EXPELLED:
                unanswered, proofs = [], []
            elif verdict is ProbeVerdict.MEMBER:
                proofs.append(sent_at)
    assert guard.holds(now + look) == any(now + look < sent_at + length for sent_at in proofs)


# -- a coordinator that a commit does not make keep a member (KIP-848) ------------------------------------------------------


SETTLE_MS = 10_000


@pytest.fixture
def settling() -> MembershipLease:
    made = MembershipLease(HALF_SESSION_MS, SETTLE_MS)
    made.awake(0)
    return made


def proven(guard: MembershipLease, at: int) -> bool:
    guard.probe_answered(guard.probe_sent(at), ProbeVerdict.MEMBER)
    return guard.holds(at)


def test_given_a_process_that_never_froze_then_a_probe_counts_at_once(settling: MembershipLease) -> None:
    settling.awake(HALF_SESSION_MS)
    assert proven(settling, HALF_SESSION_MS)


def test_given_a_freeze_then_probes_count_only_once_the_clients_heartbeats_must_have_gone_out(
    settling: MembershipLease,
) -> None:
    frozen_until = 40_000
    for now in range(frozen_until, frozen_until + SETTLE_MS, 1_000):
        settling.awake(now)
        assert not proven(settling, now)
    settling.awake(frozen_until + SETTLE_MS)
    assert proven(settling, frozen_until + SETTLE_MS)


def test_given_a_probe_of_before_a_freeze_then_its_answer_counts_from_its_sending(settling: MembershipLease) -> None:
    probe = settling.probe_sent(1_000)
    settling.awake(40_000)
    assert settling.probe_answered(probe, ProbeVerdict.MEMBER)
    assert not settling.holds(40_000)


def test_given_a_coordinator_that_a_commit_makes_keep_a_member_then_a_freeze_changes_nothing(
    guard: MembershipLease,
) -> None:
    guard.awake(0)
    guard.awake(40_000)
    assert proven(guard, 40_000)


def test_given_a_membership_that_begins_long_after_the_last_then_that_was_no_freeze() -> None:
    """Review: with KIP-848 each return to the group cost 15 s in which nothing was sent."""
    guard = MembershipLease(5_000, 15_000)
    guard.awake(0)
    guard.membership_lost()
    guard.begun()
    guard.awake(60_000)
    guard.probe_answered(guard.probe_sent(60_000), ProbeVerdict.MEMBER)
    assert guard.holds(60_001)


def test_given_a_freeze_right_before_a_probe_then_that_proves_nothing() -> None:
    """Review: whoever sends it has looked at the clock before."""
    guard = MembershipLease(5_000, 15_000)
    guard.awake(0)
    guard.probe_answered(guard.probe_sent(40_000), ProbeVerdict.MEMBER)
    assert not guard.holds(40_001)
