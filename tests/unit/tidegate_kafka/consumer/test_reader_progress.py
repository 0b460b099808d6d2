"""Which readings stand although there is more."""

from __future__ import annotations

from tidegate_kafka.consumer.reader_progress import Progress


def reading(offset: int = 5) -> Progress:
    progress = Progress()
    progress.begun(3, offset)
    return progress


def test_given_two_looks_without_a_move_then_it_stands_and_after_its_restart_two_more_have_to_pass() -> None:
    progress = reading()

    assert [progress.standing({3: 6}) for _ in range(4)] == [[], [(3, 5)], [], [(3, 5)]]


def test_given_all_was_read_then_it_does_not_stand() -> None:
    progress = reading()

    assert [progress.standing({3: 5}) for _ in range(3)] == [[], [], []]


def test_given_it_moved_between_two_looks_then_it_does_not_stand() -> None:
    progress = reading()
    progress.standing({3: 9})
    progress.handed(3, 7, 2)
    progress.taken(3, 2)

    assert progress.standing({3: 9}) == []
    assert progress.standing({3: 9}) == [(3, 7)]


def test_given_records_are_out_then_it_waits_for_whoever_has_them() -> None:
    progress = reading()
    progress.handed(3, 7, 2)
    progress.taken(3, 1)

    assert [progress.standing({3: 9}) for _ in range(3)] == [[], [], []]
    progress.taken(3, 5)
    assert [progress.standing({3: 9}) for _ in range(2)] == [[], [(3, 7)]]


def test_given_it_was_caught_up_at_a_look_in_between_then_counting_begins_anew() -> None:
    progress = reading()

    assert [progress.standing({3: end}) for end in (6, 5, 6, 6)] == [[], [], [], [(3, 5)]]


def test_given_it_ended_or_the_brokers_name_others_only_then_it_does_not_stand() -> None:
    progress = reading()
    progress.standing({3: 6})
    assert progress.standing({4: 6}) == []
    progress.ended(3)
    progress.handed(3, 6, 1)
    progress.taken(3, 1)

    assert [progress.standing({3: 9}) for _ in range(2)] == [[], []]
