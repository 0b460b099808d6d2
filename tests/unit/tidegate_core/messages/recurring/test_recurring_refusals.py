"""Fires that the broker refuses: each gets rows of its own, and these bring it once, whoever falls meanwhile."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, a_recurring, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.recurring_bench import REFUSED, nominals, shown, to_out
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.messages.wire import delivery
from tidegate_core.messages.wire.delivery_retries import RETRIED_TOGETHER, RETRY_FIRST_MS
from tidegate_core.rows.effects import Invalid, Read, Refused, Unavailable
from tidegate_core.rows.store_operations import Transaction


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def test_given_a_refusal_then_it_is_tried_again_at_a_slot_of_its_own_and_later_fires_go_on(bench: ActorHarness) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.run(20 * SECOND)
    first = min(nominals(bench))
    (again,) = [each for each in bench.on("out") if parse_instant(each.headers["tidegate-nominal"]) == first]
    assert again.headers["tidegate-attempt"] == "2"
    assert again.at == first + RETRY_FIRST_MS
    assert max(Counter(nominals(bench)).values()) == 1


@pytest.mark.parametrize("wait", [0, 1, 6])
def test_given_a_crash_after_a_refusal_then_it_is_neither_lost_nor_sent_twice(bench: ActorHarness, wait: int) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=every("1m"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + wait * SECOND)
    bench.crash()
    bench.run(25 * SECOND)
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == 1
    assert len(bench.on("out")) == (2 if wait * SECOND > RETRY_FIRST_MS else 1)


def a_refusal_on_its_way(bench: ActorHarness, refusals: int = 1) -> Transaction:
    """A fire was refused, and its owner fell while the transaction that gives it rows hung; returns that."""
    bench.answer_with(to_out, REFUSED, times=refusals)
    bench.hold_back(a_commit("retry"))
    bench.request(an_apply(a_recurring(trigger=every("1m"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + 100)
    (late,) = bench.commits("retry")
    bench.crash()
    return late


def test_given_a_refused_fire_whose_rows_come_late_then_the_successor_sends_it_once(bench: ActorHarness) -> None:
    """Simulation, seed 365: it had found no message row, sent the fire from its place, and then read the timer row's message."""
    late = a_refusal_on_its_way(bench)
    bench.hold_back(lambda effect: isinstance(effect, Read) and all(key.sk.startswith("M#") for key in effect.keys))
    bench.run(SECOND)
    assert len(bench.on("out")) == 1
    assert isinstance(bench.transact(late), Refused)
    assert bench.rows("M#") == bench.rows("D#") == []
    bench.as_usual()
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_two_take_overs_within_the_pause_of_a_refused_fire_then_its_late_rows_do_not_bring_it_again(
    bench: ActorHarness,
) -> None:
    """The second owner has sent it and has said so by its checkpoint; the third one knows nothing of it but what is stored."""
    late = a_refusal_on_its_way(bench)
    bench.run(SECOND)
    assert len(bench.on("out")) == 1
    bench.drain()
    bench.run(SECOND)
    bench.transact(late)
    bench.crash()
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_a_refused_fire_whose_rows_come_before_the_take_over_then_they_bring_it(bench: ActorHarness) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.hold_back(a_commit("retry"), answer_only=True)
    bench.request(an_apply(a_recurring(trigger=every("1m"))))
    first = shown(bench, "apply-ping")[0]
    bench.run(first - bench.now + 100)
    bench.crash()
    bench.run(SECOND)
    assert bench.on("out") == []
    bench.run(30 * SECOND)
    assert [(each.at, each.headers["tidegate-attempt"]) for each in bench.on("out")] == [(first + RETRY_FIRST_MS, "2")]


def test_given_a_fire_that_is_refused_by_a_successor_as_well_then_its_own_rows_bring_it(bench: ActorHarness) -> None:
    a_refusal_on_its_way(bench, refusals=2)
    bench.run(SECOND)
    assert bench.on("out") == []
    bench.as_usual()
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_two_updates_while_the_rows_of_a_refused_one_are_on_their_way_then_what_the_first_has_sent_is_not_sent_again(
    bench: ActorHarness,
) -> None:
    """Simulation, seed 36013978: what the version before had not brought to its end hid that this one had sent its only message."""
    trigger = {"type": "at", "instant": format_instant(bench.now + 5 * SECOND)}
    bench.answer_with(to_out, REFUSED, times=1)
    bench.hold_back(a_commit("retry"))
    bench.request(an_apply(a_recurring(trigger=trigger)))
    bench.run(6 * SECOND)
    assert bench.commits("retry")
    assert bench.on("out") == []
    bench.request(an_apply(a_recurring(trigger=trigger, payload="second"), "second"))
    bench.run(5 * SECOND)
    assert [each.value for each in bench.on("out")] == [b'"second"']
    bench.request(an_apply(a_recurring(trigger=trigger, payload="third"), "third"))
    bench.run(5 * SECOND)
    bench.as_usual()
    bench.run(MINUTE)
    assert [each.value for each in bench.on("out")] == [b'"second"']


def test_given_a_former_owner_that_is_refused_then_it_ends_and_gives_no_rows(bench: ActorHarness) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.hold_back(a_commit("retry"))
    bench.request(an_apply(a_recurring(trigger=every("1m"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + 100)
    successor = ActorHarness(beside=bench, owner="node-b")
    successor.run(SECOND)
    assert len(successor.on("out")) == 1
    bench.release()
    assert bench.notices("fenced")
    assert successor.rows("D#") == []


@pytest.mark.parametrize("throttled", [Refused(()), Unavailable("throttled")])
def test_given_a_store_that_does_not_take_the_rows_for_a_while_then_the_fire_keeps_its_place_and_the_position(
    bench: ActorHarness, throttled: Refused | Unavailable
) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.answer_with(a_commit("retry"), throttled, times=30)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    first = shown(bench, "apply-ping")[0]
    bench.run(first - bench.now + 8 * SECOND)
    assert len(bench.commits("retry")) < 30
    assert first not in nominals(bench)
    assert all(int(str(row["fired_slot"])) < first for row in bench.rows("PROGRESS"))
    bench.run(20 * SECOND)
    assert sorted(nominals(bench)) == sorted(set(nominals(bench)))
    assert first in nominals(bench)


def test_given_rows_that_the_store_never_takes_then_the_fire_keeps_its_place_and_the_next_in_turn_is_not_held_up(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "FIRED_TOGETHER", 1)
    bench.answer_with(to_out, REFUSED, times=2)
    bench.answer_with(a_commit("retry"), Invalid("too large"))
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    first = shown(bench, "apply-ping")[0]
    bench.run(first - bench.now + 10 * SECOND)
    assert first not in nominals(bench)
    assert first + 2 * SECOND in nominals(bench)
    bench.run(delivery.INVALID_PAUSE_MS)
    assert first in nominals(bench)
    assert max(Counter(nominals(bench)).values()) == 1


def test_given_many_that_are_refused_together_then_few_transactions_give_them_rows_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two at once would meet at the position's item, of which each demands the epoch."""
    monkeypatch.setattr(delivery, "FIRED_TOGETHER", 60)
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    names = [f"ping-{number:03}" for number in range(150)]
    for name in names:
        bench.request(an_apply(a_recurring(name, trigger=every("1m")), f"apply-{name}"))
    bench.run(SECOND)
    bench.answer_with(to_out, REFUSED, times=150)
    bench.store_answers_after = 20
    due = max(shown(bench, f"apply-{name}")[0] for name in names)
    bench.run(due - bench.now + RETRY_FIRST_MS // 2)
    sent = bench.commits("retry")
    assert [len(each.actions) - 1 for each in sent] == [80, 40, 80, 40, 60]
    bench.run(RETRY_FIRST_MS)
    assert len(bench.on("out")) == len({each.headers["tidegate-id"] for each in bench.on("out")}) == 150


def test_given_as_many_of_the_largest_that_are_refused_together_then_the_store_takes_their_rows() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    names = [f"ping-{number:03}" for number in range(RETRIED_TOGETHER)]
    for name in names:
        bench.request(an_apply(a_recurring(name, trigger=every("1m"), payload="x" * 65_000), f"apply-{name}"))
    bench.answer_with(to_out, REFUSED, times=RETRIED_TOGETHER)
    bench.run(MINUTE + RETRY_FIRST_MS)
    assert bench.notices("decision_failed") == []
    assert [len(each.actions) - 1 for each in bench.commits("retry")] == [2 * RETRIED_TOGETHER]
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == RETRIED_TOGETHER


def test_given_refusals_that_a_successor_reads_before_it_comes_to_their_fires_then_those_behind_them_are_sent(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fire that waited was left to its rows, and nothing took its place: no further one came before the next take-over."""
    monkeypatch.setattr(delivery, "GROUPS_UNDER_WAY_MAX", 1)
    bench.answer_with(to_out, REFUSED, times=3)
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.run(shown(bench, "apply-ping")[2] - bench.now)
    bench.crash()
    begin = bench.now
    bench.run(25 * SECOND)
    expected = set(range(shown(bench, "apply-ping")[0], bench.now, SECOND))
    assert begin + 20 * SECOND < max(expected)
    assert expected <= set(nominals(bench))
    assert max(Counter(nominals(bench)).values()) == 1


def test_given_a_past_instant_that_is_asked_for_behind_a_resume_and_refused_once_then_it_is_tried_again() -> None:
    """Found in review: the row of its second try was due with its instant, amid what was suspended before anybody asked for it."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    past = bench.now
    bench.run(MINUTE)
    for kind in ("suspend", "resume"):
        bench.request({"id": kind, "type": f"control.{kind}", "scope": "namespace", "namespace": "flights"})
        bench.run(2 * SECOND)
    bench.run(MINUTE)
    bench.answer_with(to_out, REFUSED)
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(past)})))
    bench.run(HOUR)
    assert len(bench.on("out")) == 1
