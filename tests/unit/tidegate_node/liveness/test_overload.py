"""When a node hands its share to others because it is too busy, and when it takes one again."""

from __future__ import annotations

from tidegate_node.liveness.overload import BACK_MS_MAX, HEARD_MS_MAX, Limits, Overload

LIMITS = Limits(lag_ms=1_000, after_ms=30_000, back_ms=60_000)
BEAT = 5_000


def beats(overload: Overload, begin: int, end: int, late_ms: int, peer_late_ms: int | None = 20) -> int | None:
    """Beats of this node and of a peer; returns when this one should give way, None if never."""
    for now in range(begin, end, BEAT):
        overload.looked(late_ms)
        overload.beat(now, takes=not overload.aside)
        if peer_late_ms is not None:
            overload.heard("peer", peer_late_ms, True, now)
        if overload.should_give_way(now):
            return now
    return None


def came_back(overload: Overload, begin: int, late_ms: int = 0) -> int | None:
    for now in range(begin, begin + 2 * BACK_MS_MAX, BEAT):
        overload.looked(late_ms)
        overload.beat(now, takes=not overload.aside)
        if overload.should_come_back(now):
            overload.came_back(now)
            return now
    return None


def test_given_a_loop_that_is_late_for_long_and_a_peer_at_ease_then_the_node_gives_way() -> None:
    assert beats(Overload(LIMITS), 0, 200_000, 1_000) == LIMITS.after_ms


def test_given_less_than_overload_or_one_beat_without_it_then_the_node_stays() -> None:
    assert beats(Overload(LIMITS), 0, 600_000, 999) is None
    overload = Overload(LIMITS)
    for begin in range(0, 600_000, 30_000):
        assert beats(overload, begin, begin + 25_000, 5_000) is None
        assert beats(overload, begin + 25_000, begin + 30_000, 0) is None


def test_given_no_peer_at_ease_then_the_node_stays_however_late_it_is() -> None:
    """Nobody is left who would serve better; the last member of all never goes."""
    assert beats(Overload(LIMITS), 0, 600_000, 60_000, None) is None
    assert beats(Overload(LIMITS), 0, 600_000, 60_000, 101) is None
    overload = Overload(LIMITS)
    overload.heard("drained", 0, False, 0)
    assert beats(overload, 0, 100_000, 60_000, None) is None


def test_given_a_peer_that_fell_silent_or_got_busy_then_its_earlier_word_does_not_count() -> None:
    overload = Overload(LIMITS)
    overload.heard("peer", 0, True, 30_000 - HEARD_MS_MAX - 1)
    assert beats(overload, 0, 600_000, 60_000, None) is None
    overload.heard("peer", 0, True, 600_000)
    assert overload.should_give_way(600_000)
    overload.heard("peer", 900, True, 600_001)
    assert not overload.should_give_way(600_001)


def test_given_ease_then_it_comes_back_and_after_another_overload_later_each_time() -> None:
    overload, begin, pauses = Overload(LIMITS), 0, []
    for _ in range(9):
        left = beats(overload, begin, begin + 100_000, 1_000)
        assert left is not None
        overload.gave_way()
        assert not overload.should_give_way(left + 10 * LIMITS.after_ms)
        back = came_back(overload, left)
        assert back is not None
        pauses.append((back - left) // LIMITS.back_ms)
        begin = back
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]

    assert beats(overload, begin, begin + BACK_MS_MAX + BEAT, 0) is None
    overload.gave_way()
    left = begin + BACK_MS_MAX + BEAT
    assert came_back(overload, left) == left + LIMITS.back_ms


def test_given_a_node_that_is_still_busy_without_any_share_then_it_stays_aside() -> None:
    overload = Overload(LIMITS)
    overload.gave_way()
    assert came_back(overload, 0, late_ms=500) is None


def test_given_a_node_without_a_share_then_it_does_not_hand_over_what_it_has_not() -> None:
    """An operator had drained it: it would have said that it gave way, and have stayed away after the drain was undone."""
    overload = Overload(LIMITS)
    for now in range(0, 600_000, BEAT):
        overload.looked(60_000)
        overload.beat(now, takes=False)
        overload.heard("peer", 0, True, now)
        assert not overload.should_give_way(now)
    assert beats(overload, 600_000, 800_000, 60_000) == 600_000 + LIMITS.after_ms


def test_given_no_limit_then_it_never_gives_way() -> None:
    assert beats(Overload(Limits(0, 1_000, 1_000)), 0, 600_000, 60_000, 0) is None


def test_given_one_long_pause_of_the_process_then_that_is_no_overload() -> None:
    overload = Overload(LIMITS)
    overload.looked(3_600_000)
    overload.beat(0, takes=True)
    assert beats(overload, BEAT, 100_000, 0) is None
    assert overload.lag_ms == 0
