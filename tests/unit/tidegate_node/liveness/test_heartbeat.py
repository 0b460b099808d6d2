"""When a node should not go on: its clock is certainly off, or the store is out of its reach alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_node.liveness.heartbeat import (
    CLOCK_OFFSET_MS_MAX,
    STORE_SILENCE_MS_MAX,
    Appended,
    Heartbeat,
    Verdict,
    certain_offset,
)
from tidegate_node.liveness.overload import Limits
from tidegate_node.topics.wakeup_records import Beat

NOW = 1_763_676_000_000
LONG = STORE_SILENCE_MS_MAX + 1


@given(
    true_offset=st.integers(-10_000, 10_000),
    there=st.integers(0, 60_000),
    back=st.integers(0, 60_000),
)
def test_given_any_delays_then_the_certain_part_never_exceeds_the_truth(
    true_offset: int, there: int, back: int
) -> None:
    """Slow brokers and pauses prove less, never something false; a quick answer proves almost all of it."""
    sent_at = NOW + true_offset
    found = certain_offset(sent_at, NOW + there, sent_at + there + back)

    assert abs(found) <= abs(true_offset)
    assert found * true_offset >= 0
    assert abs(true_offset - found) <= there + back


def a_heartbeat() -> Heartbeat:
    return Heartbeat("me", Limits(lag_ms=1_000, after_ms=30_000, back_ms=60_000))


def _beats(heartbeat: Heartbeat, own_offset: int, rounds: int, delay: int = 5) -> None:
    for number in range(rounds):
        true = NOW + number * 5_000
        beat = heartbeat.beat(true + own_offset, 0, 0, takes=True)
        heartbeat.appended(beat, [Appended(true + delay // 2, true + own_offset + delay)] * 8)


def test_given_a_clock_that_is_right_then_the_node_stays() -> None:
    heartbeat = a_heartbeat()

    _beats(heartbeat, CLOCK_OFFSET_MS_MAX - 100, 5)

    assert heartbeat.verdict(0, 0) is Verdict.STAY
    assert 390 <= heartbeat.clock_offset_ms <= 400


def test_given_a_clock_that_is_off_twice_in_a_row_then_the_node_gives_up() -> None:
    for offset in (600, -600):
        heartbeat = a_heartbeat()
        _beats(heartbeat, offset, 1)
        assert heartbeat.verdict(0, 0) is Verdict.STAY
        _beats(heartbeat, offset, 2)
        assert heartbeat.verdict(0, 0) is Verdict.CLOCK_OFF


def test_given_an_odd_one_between_good_ones_then_the_node_stays() -> None:
    heartbeat = a_heartbeat()

    for offset in (600, 0, -600, 0, 600):
        _beats(heartbeat, offset, 1)

    assert heartbeat.verdict(0, 0) is Verdict.STAY


def test_given_a_clock_that_was_not_compared_yet_then_it_does_not_agree() -> None:
    heartbeat = a_heartbeat()
    heartbeat.appended(heartbeat.beat(NOW, 0, 0, takes=True), [])
    assert not heartbeat.clock_agreed
    _beats(heartbeat, 600, 1)
    assert not heartbeat.clock_agreed
    _beats(heartbeat, 400, 1)
    assert heartbeat.clock_agreed


def test_given_one_broker_with_a_wrong_clock_then_those_with_which_we_agree_count() -> None:
    heartbeat = a_heartbeat()

    for number in range(3):
        beat = heartbeat.beat(NOW + number, 0, 0, takes=True)
        heartbeat.appended(beat, [Appended(beat.at - 9_000, beat.at + 4), Appended(beat.at + 2, beat.at + 4)])

    assert heartbeat.clock_offset_ms == 0
    assert heartbeat.verdict(0, 0) is Verdict.STAY


def test_given_beats_that_no_broker_appended_then_what_was_known_stays() -> None:
    heartbeat = a_heartbeat()
    _beats(heartbeat, 700, 1)
    heartbeat.appended(heartbeat.beat(NOW, 0, 0, takes=True), [])
    assert heartbeat.clock_offset_ms == 698
    _beats(heartbeat, 700, 1)
    assert heartbeat.verdict(0, 0) is Verdict.CLOCK_OFF


def test_given_a_pause_of_the_process_then_its_clock_is_not_blamed() -> None:
    heartbeat = a_heartbeat()

    for number in range(3):
        at = NOW + number * 100_000
        heartbeat.appended(heartbeat.beat(at, 0, 0, takes=True), [Appended(at + 3, at + 60_000)])

    assert heartbeat.clock_offset_ms == 0
    assert heartbeat.verdict(0, 0) is Verdict.STAY


def test_given_a_silent_store_and_no_peer_then_the_node_stays() -> None:
    assert a_heartbeat().verdict(100_000, LONG) is Verdict.STAY


def test_given_a_silent_store_that_a_peer_reaches_then_the_node_steps_aside() -> None:
    heartbeat = a_heartbeat()
    heartbeat.heard(Beat("peer", NOW, 1_000), 100_000)

    assert heartbeat.verdict(100_500, LONG) is Verdict.STORE_OUT_OF_REACH
    assert heartbeat.verdict(100_500, STORE_SILENCE_MS_MAX) is Verdict.STAY


def test_given_a_peer_that_reached_it_too_long_ago_then_the_node_stays() -> None:
    heartbeat = a_heartbeat()
    heartbeat.heard(Beat("peer", NOW, 1_000), 100_000)
    heartbeat.heard(Beat("other", NOW, LONG), 118_000)

    assert heartbeat.verdict(100_000 + STORE_SILENCE_MS_MAX - 1_001, 3 * LONG) is Verdict.STORE_OUT_OF_REACH
    assert heartbeat.verdict(100_000 + STORE_SILENCE_MS_MAX, 3 * LONG) is Verdict.STAY


@pytest.mark.parametrize("later_ms", [0, 600, 12_000])
def test_given_a_store_that_is_silent_for_everybody_then_the_node_stays(later_ms: int) -> None:
    """DESIGN 3. The peers' last answers are a little younger than ours: calls differ, and an idle node writes each 10 s."""
    heartbeat = a_heartbeat()
    for now in range(0, 120_000, 100):
        if now % 5_000 == 0:
            heartbeat.heard(Beat("peer", NOW, max(0, now - later_ms)), now)

        assert heartbeat.verdict(now, now) is Verdict.STAY


def test_given_a_store_that_only_this_node_lost_then_it_steps_aside_within_half_a_minute() -> None:
    heartbeat = a_heartbeat()
    for now in range(0, 30_000, 1_000):
        if now % 5_000 == 0:
            heartbeat.heard(Beat("peer", NOW, 900), now)

    assert heartbeat.verdict(STORE_SILENCE_MS_MAX - 1_000, STORE_SILENCE_MS_MAX - 1_000) is Verdict.STAY
    assert heartbeat.verdict(30_000, 30_000) is Verdict.STORE_OUT_OF_REACH


def test_given_a_peer_s_own_clock_is_wrong_then_only_ages_count() -> None:
    heartbeat = a_heartbeat()
    heartbeat.heard(Beat("peer", NOW + 86_400_000, 10), 100_000)

    assert heartbeat.verdict(100_010, LONG) is Verdict.STORE_OUT_OF_REACH


def test_given_a_busy_loop_and_a_peer_at_ease_then_the_node_gives_way_and_comes_back_when_it_is_at_ease_itself() -> (
    None
):
    heartbeat, said = a_heartbeat(), []
    for now in range(0, 200_000, 5_000):
        heartbeat.overload.looked(2_000 if now <= 60_000 else 0)
        beat = heartbeat.beat(NOW + now, now, 0, takes=True)
        heartbeat.heard(Beat("peer", NOW, 0, 10, True), now)
        heartbeat.heard(beat, now)
        verdict = heartbeat.verdict(now, 0)
        if verdict is not Verdict.STAY:
            said.append((now, verdict, beat.lag_ms))
        if verdict is Verdict.OVERLOADED:
            heartbeat.overload.gave_way()
        elif verdict is Verdict.AT_EASE:
            heartbeat.overload.came_back(now)
    assert said == [(30_000, Verdict.OVERLOADED, 2_000), (125_000, Verdict.AT_EASE, 0)]


def test_given_a_peer_of_a_release_that_does_not_say_how_busy_it_is_then_it_is_not_taken_for_idle() -> None:
    heartbeat = a_heartbeat()
    for now in range(0, 200_000, 5_000):
        heartbeat.overload.looked(2_000)
        heartbeat.beat(NOW + now, now, 0, takes=True)
        heartbeat.heard(Beat("peer", NOW, 0), now)
        assert heartbeat.verdict(now, 0) is Verdict.STAY
