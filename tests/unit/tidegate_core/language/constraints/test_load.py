"""How busy something is: bounds with hysteresis, freshness, and what happens when nobody can say (SEMANTICS 7.6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.builders import MINUTE, NOW, SECOND
from tidegate_core.language.constraints import Allow, Facts, Hold, LoadConstraint
from tidegate_core.language.constraints.facts import KEPT_MS, NOTHING_SEEN, SAMPLES_MAX, LoadSeen


def load(**fields: Any) -> LoadConstraint:
    return LoadConstraint.model_validate({"type": "load", **fields})


def code(constraint: LoadConstraint, seen: LoadSeen | None, now: int = NOW) -> str | None:
    """Why the job waits; None when it may go."""
    facts = Facts(now=now, satisfied_at=now, loads={} if seen is None else {constraint.key: seen})
    verdict = constraint.check(facts)
    if isinstance(verdict, Hold):
        assert verdict.until is None, "the next sample says"
        return verdict.reason_code
    return None


def samples(*values: float) -> LoadSeen:
    """Fifteen seconds apart, the last one now."""
    times = range(NOW - 15 * SECOND * (len(values) - 1), NOW + 1, 15 * SECOND)
    return LoadSeen(samples=tuple(zip(times, values, strict=True)))


@pytest.mark.parametrize(
    ("values", "high"),
    [
        pytest.param((0.84,), False, id="below"),
        pytest.param((0.85,), True, id="at the bound"),
        pytest.param((0.9, 0.8), True, id="between the bounds it stays high"),
        pytest.param((0.9, 0.75), True, id="at the lower bound it is not below it"),
        pytest.param((0.9, 0.74), False, id="below the lower bound"),
        pytest.param((0.9, 0.7, 0.8), False, id="between the bounds it stays low"),
        pytest.param((0.8, 0.8), False, id="never high"),
    ],
)
def test_given_samples_then_the_last_one_beyond_a_bound_decides(values: tuple[float, ...], high: bool) -> None:
    assert code(load(below=0.85, resume=0.75), samples(*values)) == ("load_high" if high else None)


def test_given_no_lower_bound_then_the_bound_alone_decides() -> None:
    assert code(load(below=0.85), samples(0.9, 0.84)) is None


def test_given_a_sample_that_is_too_old_then_the_load_is_unknown() -> None:
    seen = samples(0.1)
    assert code(load(), seen, NOW + MINUTE) is None
    assert code(load(), seen, NOW + MINUTE + 1) == "load_unknown"
    assert code(load(max_age="2m"), seen, NOW + MINUTE + 1) is None


def test_given_nobody_who_can_say_then_jobs_go_after_five_minutes_unless_it_is_strict() -> None:
    seen = LoadSeen().asked(NOW)
    assert code(load(), None) == "load_unknown"
    assert code(load(), seen, NOW + 5 * MINUTE - 1) == "load_unknown"
    assert code(load(), seen, NOW + 5 * MINUTE) is None
    assert code(load(strict=True), seen, NOW + 500 * MINUTE) == "load_unknown"


def test_given_questions_without_an_answer_then_the_spell_goes_on_unless_nobody_asked_for_a_while() -> None:
    seen = LoadSeen().asked(NOW).asked(NOW + 15 * SECOND)
    assert seen.unknown_since == NOW
    assert seen.asked(NOW + 10 * MINUTE).unknown_since == NOW + 10 * MINUTE
    assert seen.answered(NOW + 20 * SECOND, 0.5).unknown_since is None


def test_given_many_samples_then_those_of_ten_minutes_are_kept_and_never_more_than_64() -> None:
    seen = LoadSeen()
    for second in range(200):
        seen = seen.answered(NOW + second * SECOND, 0.5)
    assert len(seen.samples) == SAMPLES_MAX
    assert seen.answered(NOW + KEPT_MS + 300 * SECOND, 0.5).samples == ((NOW + KEPT_MS + 300 * SECOND, 0.5),)


def asked_every_15_s(*values: float, seen: LoadSeen = NOTHING_SEEN, begin: int = NOW) -> LoadSeen:
    for number, value in enumerate(values):
        at = begin + number * 15 * SECOND
        seen = seen.asked(at).answered(at, value)
    return seen


def test_given_a_job_that_keeps_waiting_between_the_bounds_then_it_is_held_however_long_that_takes() -> None:
    """Review finding: ten minutes after the load had been high it went, although the load never fell to `resume`."""
    constraint, seen = load(below=0.85, resume=0.75), asked_every_15_s(0.9, *[0.8] * 400)
    assert code(constraint, seen, seen.asked_at) == "load_high"
    fallen = asked_every_15_s(0.74, seen=seen, begin=seen.asked_at + 15 * SECOND)
    assert code(constraint, fallen, fallen.asked_at) is None
    risen = asked_every_15_s(*[0.8] * 400, seen=fallen, begin=fallen.asked_at + 15 * SECOND)
    assert code(constraint, risen, risen.asked_at) is None


def test_given_a_load_that_falls_slowly_then_what_was_high_first_is_remembered_longest() -> None:
    seen = asked_every_15_s(*(0.9 - step / 10_000 for step in range(1_499)))
    assert len(seen.samples) == SAMPLES_MAX
    assert code(load(below=0.85, resume=0.75), seen, seen.asked_at) == "load_high"


def test_given_nobody_who_asked_for_a_while_then_what_was_long_ago_says_nothing() -> None:
    constraint, seen = load(below=0.85, resume=0.75), asked_every_15_s(0.9, 0.8)
    for pause, expected in ((9 * MINUTE, "load_high"), (KEPT_MS, None)):
        anew = asked_every_15_s(0.8, seen=seen, begin=NOW + pause)
        assert code(constraint, anew, anew.asked_at) == expected


@given(
    values=st.lists(st.integers(1, 30), min_size=1, max_size=300),
    bounds=st.tuples(st.integers(1, 30), st.integers(1, 30)),
)
def test_given_any_loads_within_a_spell_then_hysteresis_is_that_of_all_of_them(
    values: list[int], bounds: tuple[int, int]
) -> None:
    resume, below = sorted(bounds)
    is_high = False
    for value in values:
        is_high = value >= below or (is_high and value >= resume)
    seen = asked_every_15_s(*map(float, values))
    constraint = load(source="yarn", below=float(below), resume=float(resume))
    assert code(constraint, seen, seen.asked_at) == ("load_high" if is_high else None)


def test_given_a_hold_then_the_reason_says_what_was_seen() -> None:
    constraint = load(source="yarn", resource="containers", below=100)
    verdict = constraint.check(Facts(now=NOW, satisfied_at=NOW, loads={constraint.key: samples(120.0)}))
    assert verdict != Allow()
    assert isinstance(verdict, Hold)
    assert verdict.reason.startswith("containers of yarn is 120 at 2025-11-13T02:13:20Z; it was at 100")
    assert verdict.values == {"source": "yarn", "resource": "containers", "value": 120.0, "below": 100.0}


@pytest.mark.parametrize(
    "fields",
    [
        {"below": 0},
        {"below": "0.8"},
        {"below": 0.7, "resume": 0.8},
        {"max_age": "0s"},
        {"max_age": "11m"},
        {"source": "http://x"},
        {"url": "http://x"},
    ],
)
def test_given_no_load_then_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        load(**fields)
