"""A wide resume is heard of up to 5 s after its append time: recurring messages of those seconds are sent all the same (SEMANTICS 10)."""

from __future__ import annotations

import pytest
from tests.unit.tidegate_core.decisions.delivery_plane.recurring_bench import AWAY, nominals, to_out
from tests.unit.tidegate_core.decisions.test_controls import ask, control, controls
from tests.unit.tidegate_core.decisions.test_controls_heard_late import deafly, hear, resume_heard_late, seconds_between

from tidegate_core.decisions.delivery_plane import recurring_holding
from tidegate_core.effects import Effect, Read
from tidegate_core.model.instants import format_instant, parse_instant
from tidegate_core.records.codec import from_item
from tidegate_core.records.recurring import HeldSeries
from tidegate_core.store import keys
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import MINUTE, SECOND, Doc, a_recurring, a_request, an_apply, every


@pytest.fixture
def bench() -> Bench:
    made = Bench(shards=1)
    made.run(SECOND)
    return made


def other(name: str = "other") -> Doc:
    """Of another namespace, and always there to move the delivery position on."""
    return {**a_recurring(name, every("1s"), topic="elsewhere"), "namespace": "orders"}


def suspended(bench: Bench, *specs: Doc, milliseconds: int = MINUTE) -> None:
    for number, spec in enumerate((*(specs or (a_recurring(trigger=every("1s")),)), other())):
        bench.request(an_apply(spec, f"a-{number}"))
    ask(bench, control("suspend"))
    bench.run(milliseconds)


def is_look(effect: Effect) -> bool:
    return isinstance(effect, Read) and effect.keys == (keys.CONTROLS_KEY,)


def end_of(bench: Bench, number: int = 0) -> int:
    ended = controls(bench).scopes[0].spans[number][1]
    assert ended is not None
    return ended


def of_other(bench: Bench) -> list[int]:
    return [parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("elsewhere")]


def test_given_fires_between_a_resume_and_its_arrival_then_each_of_them_is_sent_once(bench: Bench) -> None:
    suspended(bench)
    ended, heard_at = resume_heard_late(bench)
    ((begun, _),) = controls(bench).scopes[0].spans
    bench.run(5 * SECOND)
    found = nominals(bench)
    assert [each for each in found if ended <= each] == seconds_between(ended, bench.now + 1)
    assert [each for each in found if begun + SECOND <= each < ended] == []
    assert heard_at - ended >= 4 * SECOND


def test_given_the_owner_falls_within_the_span_then_its_successor_sends_them(bench: Bench) -> None:
    suspended(bench)
    bench.crash()
    bench.run(10 * SECOND)
    ended, _ = resume_heard_late(bench)
    bench.run(5 * SECOND)
    assert [each for each in nominals(bench) if ended <= each] == seconds_between(ended, bench.now + 1)


def test_given_the_owner_falls_before_it_hears_of_the_resume_then_its_successor_sends_what_it_left(
    bench: Bench,
) -> None:
    suspended(bench, milliseconds=10 * SECOND)  # Within the grace of an outage.
    deafly(bench, control("resume"), 10 * SECOND)
    bench.crash()
    bench.as_usual()
    bench.run(10 * SECOND)
    ended = end_of(bench)
    assert [each for each in nominals(bench) if ended <= each] == seconds_between(ended, bench.now + 1)


def test_given_the_only_fire_of_an_at_between_a_resume_and_its_arrival_then_it_is_sent(bench: Bench) -> None:
    instant = bench.now + 2 * MINUTE
    suspended(bench, a_recurring(trigger={"type": "at", "instant": format_instant(instant)}))
    bench.run(instant - bench.now - SECOND)
    deafly(bench, control("resume"), MINUTE)
    hear(bench, control("resume"))
    bench.run(5 * SECOND)
    assert nominals(bench) == [instant]


def test_given_a_far_schedule_whose_fire_lies_between_then_it_is_sent_although_its_record_has_moved_out() -> None:
    bench = Bench(shards=1, recurring_near_ms=5 * MINUTE)
    bench.run(SECOND)
    suspended(bench, a_recurring(trigger=every("10m")))
    tick = -(-bench.now // (10 * MINUTE)) * 10 * MINUTE
    bench.run(tick - bench.now - SECOND)
    deafly(bench, control("resume"), MINUTE)
    assert bench.rows("CF#")
    hear(bench, control("resume"))
    bench.run(5 * SECOND)
    assert nominals(bench) == [tick]
    assert bench.rows("HR#") == []


def test_given_a_span_then_one_row_is_written_and_nothing_else_and_it_goes(bench: Bench) -> None:
    suspended(bench)
    (row,) = bench.rows("HR#")
    ((begun, _),) = controls(bench).scopes[0].spans
    assert from_item(HeldSeries, row) == HeldSeries(
        namespace="flights", name="ping", generation=1, slot=-(-(begun + 1) // SECOND) * SECOND
    )
    commits = len(bench.commits("hold"))
    bench.run(10 * MINUTE)
    assert (len(bench.commits("hold")), bench.rows("HR#")) == (commits, [row])
    ask(bench, control("resume"))
    bench.run(MINUTE)
    assert bench.rows("HR#") == []
    assert len(bench.commits("let_go")) == 1
    assert nominals(bench)[-MINUTE // SECOND :] == seconds_between(bench.now - MINUTE + 1, bench.now + 1)


def test_given_other_namespaces_then_nothing_of_theirs_waits_or_comes_twice_behind_a_crash(bench: Bench) -> None:
    suspended(bench, milliseconds=20 * SECOND)
    passed = int(str(bench.rows("PROGRESS")[0]["fired_slot"]))
    assert passed > bench.now - 10 * SECOND
    bench.crash()
    bench.run(10 * SECOND)
    found = of_other(bench)
    assert sorted(set(found)) == seconds_between(found[0], bench.now + 1)
    assert len(found) - len(set(found)) <= 6


@pytest.mark.parametrize("kind", ["update", "delete"])
def test_given_a_request_before_the_resume_is_heard_of_then_what_it_ended_is_not_sent_and_what_it_opened_is(
    bench: Bench, kind: str
) -> None:
    suspended(bench)
    deafly(bench, control("resume"), 3 * SECOND)
    request = a_request("delete", "ping") if kind == "delete" else an_apply(a_recurring(trigger=every("2s")), "update")
    bench.request(request)
    bench.run(2 * SECOND)
    at = bench.now
    hear(bench, control("resume"))
    bench.run(20 * SECOND)
    found = [each for each in nominals(bench) if each > end_of(bench)]
    wanted = (
        []
        if kind == "delete"
        else [each for each in seconds_between(at - 2 * SECOND, bench.now + 1) if each % 2_000 == 0]
    )
    assert [each for each in found if each > at - 2 * SECOND] == [each for each in wanted if each > at - 2 * SECOND]
    assert [each for each in found if each < at - 3 * SECOND] == []
    assert bench.rows("HR#") == []


def test_given_more_than_is_sent_together_then_all_of_it_is_sent(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurring_holding, "FIRES_TOGETHER", 2)
    suspended(bench)
    deafly(bench, control("resume"), 30 * SECOND)
    hear(bench, control("resume"))
    bench.run(5 * SECOND)
    assert [each for each in nominals(bench) if each >= end_of(bench)] == seconds_between(end_of(bench), bench.now + 1)


def test_given_another_suspend_while_they_wait_for_the_broker_then_what_lies_behind_its_end_is_sent(
    bench: Bench,
) -> None:
    suspended(bench)
    bench.answer_with(to_out, AWAY, times=10_000)
    moved = len(bench.commits("move_controls"))
    bench.hold_back(lambda each: is_look(each) and len(bench.commits("move_controls")) > moved, times=1)
    bench.request(control("resume"))
    bench.run(5 * SECOND)
    bench.release()
    bench.run(2 * SECOND)
    bench.request(control("suspend", request_id="s-2"))
    bench.run(5 * SECOND)
    assert bench.status_of("s-2") == "accepted"
    bench.as_usual()
    bench.run(10 * SECOND)
    sent = len(nominals(bench))
    deafly(bench, control("resume", request_id="r-2"))
    hear(bench, control("resume", request_id="r-2"))
    bench.run(5 * SECOND)
    assert nominals(bench)[sent:] == seconds_between(end_of(bench, 1), bench.now + 1)
    assert len(nominals(bench)) == len(set(nominals(bench)))
    assert bench.rows("HR#") == []


def test_given_a_hand_over_while_they_are_sent_then_each_is_sent_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurring_holding, "FIRES_TOGETHER", 3)
    suspended(bench)
    deafly(bench, control("resume"), 30 * SECOND)
    bench.hold_back(to_out, times=1)
    bench.run(SECOND)
    bench.as_usual()
    bench.drain()
    bench.run(2 * SECOND)
    bench.crash()
    bench.run(10 * SECOND)
    assert sorted(each for each in nominals(bench) if each >= end_of(bench)) == seconds_between(
        end_of(bench), bench.now + 1
    )


def test_given_a_crash_between_any_two_effects_then_nothing_is_lost_and_little_comes_twice() -> None:
    def story(crash_after: int) -> Bench:
        bench = Bench(shards=1)
        bench.run(SECOND)
        suspended(bench, milliseconds=10 * SECOND)
        deafly(bench, control("resume"))
        bench.crash_after = bench.effects_outside + crash_after
        hear(bench, control("resume"))
        bench.run(10 * SECOND)
        return bench

    for crash_after in range(1, 20):
        bench = story(crash_after)
        found = [each for each in nominals(bench) if each >= end_of(bench)]
        assert sorted(set(found)) == seconds_between(end_of(bench), bench.now + 1), f"crash after effect {crash_after}"
        assert len(found) - len(set(found)) <= 12, f"crash after effect {crash_after}"
        assert bench.rows("HR#") == []
