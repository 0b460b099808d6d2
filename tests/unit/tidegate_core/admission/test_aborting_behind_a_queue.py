"""Jobs that abort, before a limit that has room and a queue: they end because of those only whom its slots are for (SEMANTICS 7.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.crash_points import crash_points
from tests.support.harness.shard_bench import a_bench
from tests.unit.tidegate_core.admission.test_shared_limits import a_poke, started, trigger
from tidegate_core.admission import abandoned_queue
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Effect, LaunchOrder, ReadRange
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Put

FIRST, LAST = sorted(("yard", "gate"), key=lambda group: keys.shared_limit("flights", "group", group))
"""Groups, in the order in which they are asked for."""
ABORTED = "skipped/concurrency"


def of(group: str, most: int, word: str = "wait") -> Doc:
    return at_most(most, "group", group=group, on_unmet=word)


def rate_of(group: str, most: int, word: str = "wait") -> Doc:
    return {"type": "rate", "max": most, "per": "24h", "scope": "group", "group": group, "on_unmet": word}


def a_stage(runs_for: int = 30 * SECOND) -> ActorHarness:
    """Programs of schedules that are called `busy` run for hours, others for half a minute."""

    def behaves(order: LaunchOrder) -> Behaviour:
        schedule = order.context["schedule"]
        assert isinstance(schedule, dict)
        return Behaviour(starts_after=10, runs_for=3 * HOUR if str(schedule["name"]).startswith("busy") else runs_for)

    bench = a_bench()
    bench.behaves = behaves
    return bench


def applies(bench: ActorHarness, name: str, *constraints: Doc, **more: Any) -> None:
    spec = a_spec(name, every("100h"), constraints=list(constraints), overlap="allow", **more)
    bench.request(an_apply(spec, f"apply-{name}-{bench.now}"))
    bench.run(100)


def asides(bench: ActorHarness, most: int = 5, waiting: int = 1, limit: Doc | None = None, **more: Any) -> None:
    """Jobs that need a slot of the first group, which has `most`, and one of the last, which is full for hours."""
    applies(bench, "busy", of(LAST, 1))
    applies(bench, "both", limit or of(FIRST, most), of(LAST, 1), **more)
    trigger(bench, "busy")
    bench.run(SECOND)
    trigger(bench, *["both"] * waiting)
    bench.run(8 * SECOND)


def the_limit(bench: ActorHarness, group: str = FIRST) -> SharedLimit:
    return SharedLimit.of(bench.store.peek(keys.shared_limit("flights", "group", group)))


def ended(bench: ActorHarness) -> list[str]:
    return [entry[0] for entry in bench.ledger() if entry[0].startswith("skipped")]


# -- those that stand aside -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", [1, 4])
def test_given_that_all_who_wait_stand_aside_then_a_job_that_aborts_has_a_slot_that_is_free(waiting: int) -> None:
    bench = a_stage()
    asides(bench, waiting=waiting)
    applies(bench, "aborts", of(FIRST, 5, "abort"))
    made = trigger(bench, "aborts")
    bench.run(2 * SECOND)
    assert started(bench)[-1:] == made
    assert ended(bench) == []


def test_given_a_rate_in_whose_queue_all_stand_aside_then_it_has_a_place() -> None:
    bench = a_stage()
    asides(bench, limit=rate_of("rated", 5))
    applies(bench, "aborts", rate_of("rated", 5, "abort"))
    made = trigger(bench, "aborts")
    bench.run(2 * SECOND)
    assert started(bench)[-1:] == made


def test_given_as_many_that_abort_as_there_are_slots_and_more_then_the_last_ones_end() -> None:
    """Of five slots one is kept for the first that stands aside (decision 24)."""
    bench = a_stage()
    asides(bench, waiting=3)
    for number in range(6):
        applies(bench, f"aborts-{number}", of(FIRST, 5, "abort"))
    made = trigger(bench, *(f"aborts-{number}" for number in range(6)))
    bench.run(20 * SECOND)
    assert sorted(started(bench)[1:]) == sorted(made[:4])
    assert ended(bench) == [ABORTED] * 2


def test_given_many_jobs_of_one_schedule_that_aborts_then_those_for_whom_there_is_a_slot_start() -> None:
    bench = a_stage()
    asides(bench)
    applies(bench, "aborts", of(FIRST, 5, "abort"))
    made = trigger(bench, *["aborts"] * 6)
    bench.run(20 * SECOND)
    assert sorted(started(bench)[1:]) == sorted(made[:4])
    assert ended(bench) == [ABORTED] * 2


def test_given_a_limit_of_one_then_it_is_kept_for_the_first_that_stands_aside() -> None:
    bench = a_stage()
    asides(bench, most=1)
    applies(bench, "aborts", of(FIRST, 1, "abort"))
    trigger(bench, "aborts")
    bench.run(SECOND)
    assert ended(bench) == [ABORTED]
    assert len(started(bench)) == 1


def test_given_that_the_words_of_those_who_stand_aside_were_not_taken_back_yet_then_they_keep_no_slot_from_it() -> None:
    bench = a_stage()
    asides(bench, most=3, waiting=2)
    applies(bench, "aborts", of(FIRST, 3, "abort"))
    aside = frozenset(str(row["job_id"]) for row in bench.rows("IW#") if row.get("aside"))
    assert len(aside) == 2
    limit = keys.shared_limit("flights", "group", FIRST)
    item = bench.store.peek(limit)
    assert item is not None
    assert len(the_limit(bench).offered) == 1
    bench.store.write([Put(limit, {**item, "in_use": 1, "offered": aside})])
    bench.answer_with(a_poke, None, times=1_000)
    made = trigger(bench, "aborts")
    bench.as_usual()
    bench.run(15 * SECOND)
    assert started(bench)[-1:] == made


# -- the job itself ---------------------------------------------------------------------------------------------------------------


def test_given_a_job_that_aborts_at_one_limit_and_waits_for_another_then_its_own_row_does_not_end_it() -> None:
    """It stands in the queue of the limit at which it would abort, because all of them are asked for in their order."""
    bench = a_stage()
    applies(bench, "busy", of(LAST, 1))
    applies(bench, "both", of(FIRST, 5, "abort"), of(LAST, 1))
    (run_id,) = trigger(bench, "busy")
    bench.run(SECOND)
    bench.answer_with(a_poke, None, times=1_000)
    first = trigger(bench, "both")
    bench.run(1)
    second = trigger(bench, "both")  # The schedule is looked at again, before the home has offered anything.
    bench.as_usual()
    bench.run(MINUTE)
    assert ended(bench) == []
    bench.request({"id": "stop", "type": "run.cancel", "namespace": "flights", "run_id": run_id})
    bench.run(2 * MINUTE)
    assert started(bench)[1:] == [*first, *second]


def test_given_that_its_limit_fills_while_it_waits_for_another_one_then_it_ends() -> None:
    bench = a_stage()
    asides(bench, most=2)
    applies(bench, "busy-too", of(FIRST, 2))
    applies(bench, "aborts", of(FIRST, 2, "abort"), of(LAST, 1))
    trigger(bench, "aborts")
    bench.run(20 * SECOND)
    assert ended(bench) == []
    trigger(bench, "busy-too")
    bench.run(20 * SECOND)
    assert ended(bench) == [ABORTED]
    assert len(bench.rows("IW#")) == 2  # Those of the one that waits for both.


def test_given_another_constraint_that_it_waits_for_then_it_is_not_ended_by_those_who_stand_aside() -> None:
    bench = a_stage()
    asides(bench)
    applies(bench, "aborts", of(FIRST, 5, "abort"), {"type": "delay", "after": "20s"})
    made = trigger(bench, "aborts")
    bench.run(30 * SECOND)
    assert started(bench)[-1:] == made


# -- the order -------------------------------------------------------------------------------------------------------------------


def of_two_with_one_that_waits(bench: ActorHarness, narrow: int = 2, **more: Any) -> tuple[str, str]:
    """One of the slots is free, one job waits for it, and its home does not know yet; returns that one and the next, which aborts."""
    applies(bench, "busy", of(FIRST, 2))
    applies(bench, "waits", of(FIRST, narrow))
    applies(bench, "aborts", of(FIRST, 2, "abort"), **more)
    trigger(bench, "busy", "busy")
    bench.run(SECOND)
    (waits,) = trigger(bench, "waits")
    bench.run(SECOND)
    bench.answer_with(a_poke, None, times=1_000)
    bench.request({"id": "stop", "type": "run.cancel", "namespace": "flights", "run_id": started(bench)[0]})
    while the_limit(bench).in_use == 2:
        bench.run(10)
    assert not the_limit(bench).offered
    (aborts,) = trigger(bench, "aborts")
    bench.as_usual()
    return waits, aborts


def test_given_one_in_line_for_the_last_slot_then_a_job_that_aborts_ends() -> None:
    bench = a_stage()
    waits, _ = of_two_with_one_that_waits(bench)
    bench.run(5 * SECOND)
    assert started(bench)[2:] == [waits]
    assert ended(bench) == [ABORTED]


def test_given_a_job_of_a_higher_class_then_the_slot_is_its_own() -> None:
    bench = a_stage()
    waits, aborts = of_two_with_one_that_waits(bench, priority="highest")
    bench.run(5 * SECOND)
    assert started(bench)[2:] == [aborts]
    bench.run(MINUTE)
    assert started(bench)[2:] == [aborts, waits]


def test_given_one_before_it_whose_own_bound_is_narrower_then_it_is_not_passed() -> None:
    bench = a_stage()
    of_two_with_one_that_waits(bench, narrow=1)
    bench.run(5 * SECOND)
    assert len(started(bench)) == 2
    assert ended(bench) == [ABORTED]


def test_given_one_in_line_and_a_second_free_slot_then_both_start() -> None:
    bench = a_stage()
    asides(bench, most=3)
    applies(bench, "waits", of(FIRST, 3))
    applies(bench, "aborts", of(FIRST, 3, "abort"))
    bench.answer_with(a_poke, None, times=1_000)
    made = trigger(bench, "waits", "aborts")
    bench.as_usual()
    bench.run(5 * SECOND)
    assert started(bench)[1:] == made


# -- whatever is lost, and whoever falls ---------------------------------------------------------------------------------------------


def test_given_that_every_poke_is_lost_then_it_starts_all_the_same() -> None:
    bench = a_stage()
    asides(bench)
    applies(bench, "aborts", of(FIRST, 5, "abort"))
    bench.answer_with(a_poke, None, times=10**6)
    made = trigger(bench, "aborts")
    bench.run(30 * SECOND)
    assert started(bench)[-1:] == made


def test_given_a_crash_after_any_effect_then_it_starts_once_and_leaves_nothing_behind() -> None:
    def a_story(bench: ActorHarness) -> None:
        trigger(bench, "aborts")
        bench.run(20 * SECOND)

    def begun() -> ActorHarness:
        bench = a_stage(runs_for=50)
        asides(bench)
        applies(bench, "aborts", of(FIRST, 5, "abort"))
        return bench

    undisturbed = begun()
    before = undisturbed.effects_outside
    a_story(undisturbed)
    assert len(started(undisturbed)) == 2
    for effects in crash_points(undisturbed, after=before):
        bench = begun()
        bench.crash_after = effects
        a_story(bench)
        assert len({order.run_id for order in bench.started}) == 2, effects
        assert ended(bench) == [], effects
        assert len(bench.rows("IW#")) == 2, effects
        assert the_limit(bench).in_use == 0, effects


@pytest.mark.parametrize("stop", ["cancel", "suspend", "delete"])
def test_given_a_stop_before_it_is_offered_the_slot_then_it_never_starts_and_its_row_goes(stop: str) -> None:
    bench = a_stage()
    asides(bench)
    applies(bench, "aborts", of(FIRST, 5, "abort"))
    bench.answer_with(a_poke, None, times=1_000)
    (made,) = trigger(bench, "aborts")
    assert len(bench.rows("IW#")) == 3
    if stop == "cancel":
        bench.request({"id": "stop", "type": "job.cancel", "namespace": "flights", "job_id": made})
    else:
        bench.request(a_request(stop, "aborts"))
    bench.as_usual()
    bench.run(MINUTE)
    assert made not in started(bench)
    assert len(bench.rows("IW#")) == 2
    assert len(the_limit(bench).offered) == 1  # The word that the first that stands aside keeps.


def test_given_that_it_is_held_before_it_is_offered_the_slot_then_it_starts_behind_the_resume() -> None:
    bench = a_stage()
    asides(bench)
    applies(bench, "aborts", of(FIRST, 5, "abort"))
    bench.answer_with(a_poke, None, times=1_000)
    (made,) = trigger(bench, "aborts")
    bench.request(a_request("suspend", "aborts", mode="hold"))
    bench.as_usual()
    bench.run(MINUTE)
    assert made not in started(bench)
    bench.request(a_request("resume", "aborts", backlog="all"))
    bench.run(5 * SECOND)
    assert started(bench)[-1:] == [made]


def test_given_an_update_that_carries_it_then_the_bound_of_the_new_version_counts() -> None:
    bench = a_stage()
    asides(bench)
    applies(bench, "aborts", of(FIRST, 5, "abort"))
    bench.answer_with(a_poke, None, times=1_000)
    trigger(bench, "aborts")
    applies(bench, "aborts", of(FIRST, 1, "abort"), on_update="carry")
    bench.as_usual()
    bench.run(30 * SECOND)
    assert len(started(bench)) == 1
    assert ended(bench) == [ABORTED]


# -- what it costs ---------------------------------------------------------------------------------------------------------------


def looks(bench: ActorHarness) -> list[ReadRange]:
    return [effect for effect in bench.asked if looks_into_a_queue(effect) and isinstance(effect, ReadRange)]


def looks_into_a_queue(effect: Effect) -> bool:
    limit = abandoned_queue.ROWS_MAX
    return isinstance(effect, ReadRange) and effect.range.low.startswith("IW#") and effect.range.limit == limit


def test_given_several_jobs_of_one_schedule_then_they_look_into_the_queue_together() -> None:
    bench = a_stage()
    asides(bench)
    applies(bench, "aborts", of(FIRST, 5, "abort"), {"type": "delay", "after": "20s"})
    trigger(bench, "aborts", "aborts")
    bench.asked.clear()
    bench.run(100)
    assert len(looks(bench)) <= 2


# -- long queues -----------------------------------------------------------------------------------------------------------------


def with_a_long_queue(monkeypatch: pytest.MonkeyPatch, waiting: int = 4, most: int = 5, **more: Any) -> ActorHarness:
    """So many stand aside; two rows are read, and five where these do not tell."""
    monkeypatch.setattr(abandoned_queue, "ROWS_MAX", 2)
    monkeypatch.setattr(abandoned_queue, "LONG_ROWS_MAX", 5)
    bench = a_stage()
    asides(bench, most, waiting, **more)
    applies(bench, "aborts", of(FIRST, most, "abort"))
    bench.asked.clear()
    return bench


def reads(bench: ActorHarness) -> list[int]:
    """Returns how many rows each look into the first group's queue wanted that was not its home's."""
    low, _ = keys.queue_entries_of(keys.shared_limit("flights", "group", FIRST))
    found = [each.range for each in bench.asked if isinstance(each, ReadRange) and each.range.low == low]
    return [each.limit for each in found if each.limit <= abandoned_queue.LONG_ROWS_MAX]


def joins_with_a_bound_that_is_reached(bench: ActorHarness, **more: Any) -> None:
    """Somebody is in line whose turn does not come for hours, so that those behind have none either."""
    applies(bench, "busy-too", of(FIRST, 5))
    applies(bench, "narrow", of(FIRST, 1), **more)
    trigger(bench, "busy-too", "narrow")


def test_given_a_queue_whose_first_rows_do_not_tell_then_more_are_read_and_a_slot_that_is_free_is_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = with_a_long_queue(monkeypatch)
    made = trigger(bench, "aborts")
    bench.run(2 * SECOND)
    assert started(bench)[-1:] == made
    assert reads(bench)[:2] == [2, 5]


def test_given_one_in_line_behind_the_first_rows_then_all_that_abort_behind_him_end_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = with_a_long_queue(monkeypatch, waiting=3)
    joins_with_a_bound_that_is_reached(bench)
    bench.run(8 * SECOND)
    trigger(bench, *["aborts"] * 10)
    bench.run(SECOND)
    assert ended(bench) == [ABORTED] * 10
    assert the_limit(bench).in_use == 1


def test_given_that_somebody_comes_between_it_and_the_first_rows_then_a_job_that_waits_already_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = with_a_long_queue(monkeypatch, waiting=3, priority="highest")
    bench.answer_with(a_poke, None, times=10**6)
    trigger(bench, "aborts")
    assert ended(bench) == []
    joins_with_a_bound_that_is_reached(bench, priority="high")
    trigger(bench, "aborts")
    bench.run(100)
    assert ended(bench) == [ABORTED] * 2


def test_given_more_before_it_than_are_read_at_all_then_it_ends_and_none_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = with_a_long_queue(monkeypatch, waiting=6)
    trigger(bench, *["aborts"] * 10)
    bench.run(SECOND)
    assert ended(bench) == [ABORTED] * 10
    assert the_limit(bench).in_use == 0


def test_given_a_job_of_a_higher_class_then_all_that_it_has_before_it_is_read_however_many_wait_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = with_a_long_queue(monkeypatch, waiting=6)
    applies(bench, "aborts", of(FIRST, 5, "abort"), priority="highest")
    bench.asked.clear()
    made = trigger(bench, "aborts")
    bench.run(2 * SECOND)
    assert started(bench)[-1:] == made
    assert ended(bench) == []


def test_given_that_the_first_rows_tell_then_no_more_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = with_a_long_queue(monkeypatch, most=1)
    trigger(bench, "aborts")
    bench.run(SECOND)
    assert ended(bench) == [ABORTED]
    assert set(reads(bench)) == {2}


def test_given_a_slot_that_a_low_job_keeps_for_later_then_a_job_of_a_higher_class_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first that stands aside is of class `low`, and its other limit is busy for hours (decision 36)."""
    bench = with_a_long_queue(monkeypatch, waiting=1, most=2, priority="low")
    applies(bench, "busy-too", of(FIRST, 2))
    applies(bench, "waits", of(FIRST, 2), priority="high")
    applies(bench, "aborts", of(FIRST, 2, "abort"), priority="highest")
    trigger(bench, "busy-too", "waits", "waits", "waits")
    bench.run(8 * SECOND)
    state = the_limit(bench)
    assert (state.in_use, len(state.offered)) == (2, 0)
    trigger(bench, "aborts")
    bench.run(SECOND)
    assert ended(bench) == [ABORTED]


def test_given_a_crash_after_any_effect_before_a_long_queue_then_who_has_a_slot_starts_once_and_who_has_none_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def a_story(bench: ActorHarness) -> None:
        trigger(bench, "aborts", "aborts")
        bench.run(20 * SECOND)

    undisturbed = with_a_long_queue(monkeypatch, waiting=3, most=2)
    before = undisturbed.effects_outside
    a_story(undisturbed)
    assert (len(started(undisturbed)), ended(undisturbed)) == (2, [ABORTED])
    for effects in crash_points(undisturbed, after=before):
        bench = with_a_long_queue(monkeypatch, waiting=3, most=2)
        bench.crash_after = effects
        a_story(bench)
        assert len({order.run_id for order in bench.started}) == 2, effects
        assert ended(bench) == [ABORTED], effects
        assert len(bench.rows("IW#")) == 6, effects


def test_given_a_hundred_and_more_that_wait_then_it_is_as_with_few() -> None:
    """With the bounds as they are: of five slots one is in use, and one is kept for the first of those that stand aside."""
    bench = a_stage()
    applies(bench, "busy", of(LAST, 1))
    applies(bench, "busy-too", of(FIRST, 5))
    trigger(bench, "busy", "busy-too")
    for number in range(13):
        applies(bench, f"both-{number}", of(FIRST, 5), of(LAST, 1))
        trigger(bench, *[f"both-{number}"] * 8)
    bench.run(2 * MINUTE)
    assert sum(bool(row.get("aside")) for row in bench.rows("IW#")) > abandoned_queue.ROWS_MAX
    applies(bench, "aborts", of(FIRST, 5, "abort"))
    made = trigger(bench, *["aborts"] * 5)
    bench.run(10 * SECOND)
    assert sorted(started(bench)[2:]) == sorted(made[:3])
    assert ended(bench) == [ABORTED] * 2
