"""What a holder has read of topics' ends: the latest reading counts, whichever answer comes last."""

from __future__ import annotations

from tidegate_core.engine.end_offset_cache import MISSING, SILENT, EndOffsetCache


def test_given_a_topic_that_was_just_made_then_an_older_answer_does_not_say_that_it_is_missing() -> None:
    readings = EndOffsetCache()
    number, early, late = readings.begin(), readings.begin(), readings.begin()
    readings.store("t", early, {})
    readings.store("t", late, {"id/0": 5})
    readings.found_out("t", number, 0, MISSING)
    assert readings.fallback("t", readings.begin(), recent_at=10) is None


def test_given_a_missing_topic_then_it_stays_so_when_another_answer_says_the_same() -> None:
    readings = EndOffsetCache()
    number, early, late = readings.begin(), readings.begin(), readings.begin()
    readings.store("t", early, {})
    readings.found_out("t", number, 0, MISSING)
    readings.store("t", late, {})
    assert readings.fallback("t", readings.begin(), recent_at=10) == MISSING


def test_given_a_silent_topic_then_its_first_answer_ends_that() -> None:
    readings = EndOffsetCache()
    number, late = readings.begin(), readings.begin()
    readings.found_out("t", number, 0, SILENT)
    assert readings.fallback("t", readings.begun, recent_at=10) == SILENT
    readings.store("t", late, {"id/0": 5})
    assert readings.fallback("t", readings.begun, recent_at=10) is None
