"""Recurring messages whose records move, or are searched, while the store is silent or slow: found in a review of gaps."""

from __future__ import annotations

import pytest

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_recurring, a_request, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit, a_produce
from tests.support.harness.recurring_bench import REFUSED, covered, nominals, tally
from tests.unit.tidegate_core.messages.recurring.test_wake_rows import an_unreadable_one
from tidegate_core.language.triggers import search
from tidegate_core.rows.effects import Commit, Effect, Read, ReadRange, Write
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.outages.outage_recorder import heartbeat_row

EVERY_TIME = 10_000_000


def of_timers(effect: Effect) -> bool:
    return isinstance(effect, ReadRange) and effect.range.low.startswith("D#")


def to_the_store(effect: Effect) -> bool:
    return isinstance(effect, Commit | Write | Read | ReadRange)


def apply(bench: ActorHarness, name: str, trigger: Doc, **more: object) -> None:
    bench.request(an_apply({**a_recurring(name, trigger, payload={"of": name}), **more}, f"apply-{name}"))


def sent(bench: ActorHarness, name: str = "ping") -> list[int]:
    return [at for at, each in zip(nominals(bench), bench.on("out"), strict=True) if each.document["of"] == name]


def behind(bench: ActorHarness) -> int:
    """How far the stored position is behind the present."""
    return bench.now - bench.actor.planes[0].checkpoints.stored[0]


@pytest.mark.parametrize("seconds", [126, 136, 146])
def test_given_a_record_that_moves_out_unanswered_while_its_next_fire_is_sent_then_those_behind_it_are_sent(
    seconds: int,
) -> None:
    """The fire was found again when the record came back, and its row was there: nobody took it, and nothing followed on it."""
    bench = ActorHarness(shards=1, recurring_near_ms=61 * SECOND)
    bench.run(SECOND)
    apply(bench, "ping", every("2m"))
    apply(bench, "often", every("5s"))
    bench.run(125 * SECOND)
    bench.hold_back(a_commit("recurring"))
    while not bench.holds_something:
        bench.run(SECOND)
    bench.end_scripts()
    bench.lose(to_the_store, times=EVERY_TIME)
    bench.run(seconds * SECOND)
    bench.as_usual()
    bench.run(10 * MINUTE)
    found = sent(bench)
    assert found == list(range(found[0], bench.now, 2 * MINUTE))


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("kind", ["update", "suspend"])
def test_given_a_request_behind_such_a_move_then_what_was_sent_from_memory_counts_as_delivered_and_once(
    kind: str, falls: bool
) -> None:
    """The record was out, so the first fire behind the position was taken for one that nobody had sent: cancelled, and delivered."""
    bench = ActorHarness(shards=1, recurring_near_ms=61 * SECOND)
    bench.run(SECOND)
    apply(bench, "ping", every("2m"))
    bench.run(125 * SECOND)
    bench.hold_back(a_commit("recurring"))
    while not bench.holds_something:
        bench.run(SECOND)
    before = len(sent(bench))
    another = an_apply(a_recurring("ping", every("2m"), payload={"of": "ping", "version": 2}), "update")
    bench.request(another if kind == "update" else a_request("suspend", "ping"))
    bench.end_scripts()
    while len(sent(bench)) == before:
        bench.run(SECOND)
    bench.release()
    if falls:
        bench.crash()
    bench.run(15 * SECOND)
    assert (tally(bench, "delivered"), tally(bench, "cancelled")) == (before + 1, 0)


@pytest.mark.parametrize("mode", ["all", "none"])
def test_given_a_summons_that_the_look_ahead_has_not_come_to_behind_a_silence_then_the_sweep_leaves_it_alone(
    mode: str,
) -> None:
    """It was taken for one that could not be dealt with: three of four instants were told as missed, under `all`."""
    bench = ActorHarness(shards=1, recurring_near_ms=5 * MINUTE)
    bench.run(SECOND)
    apply(bench, "ping", every("10m"), catchup={"mode": mode})
    apply(bench, "often", every("1m"))
    while not sent(bench):
        bench.run(SECOND)
    first = bench.now
    bench.run(2 * MINUTE)
    bench.store_answers_after = 3
    bench.lose(to_the_store, times=EVERY_TIME)
    bench.run(38 * MINUTE + 20 * SECOND)
    bench.end_scripts()
    bench.lose(of_timers, times=2)
    bench.run(2 * MINUTE)
    bench.as_usual()
    bench.run(10 * MINUTE)
    bench.store_answers_after = 0
    bench.run(30 * MINUTE)
    assert sent(bench) == list(range(first, bench.now, 10 * MINUTE))
    assert [
        each.fields for each in bench.notices("recurring_not_sent") if each.fields["schedule"] == "flights/ping"
    ] == []
    assert behind(bench) < MINUTE


def test_given_a_summons_that_is_asked_for_twice_then_no_row_of_it_is_left() -> None:
    """The window and the sweep: the first one's row stayed, the position never passed it, and the shard sent nothing any more."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    apply(bench, "ping", every("2h"))
    while not sent(bench):
        bench.run(SECOND)
    bench.run(30 * MINUTE)
    (item,) = (row for row in bench.rows("D#") if "attempt" not in row)
    summoned = bench.actor.planes[0].recurring.summoned
    key = Key(str(item["pk"]), str(item["sk"]))
    summoned.again("flights/ping", key)
    summoned.take_from([item])
    bench.run(3 * HOUR)
    assert behind(bench) < 2 * HOUR
    found = sent(bench)
    assert found == list(range(found[0], bench.now, 2 * HOUR))


@pytest.mark.parametrize("delay", [0, 40, 120, 400])
def test_given_a_search_that_the_lane_comes_to_when_it_is_near_then_somebody_goes_on_with_it(
    monkeypatch: pytest.MonkeyPatch, delay: int
) -> None:
    """How far was searched stood for the next fire for good: the schedule was silent, and the shard's position stood still."""
    monkeypatch.setattr(search, "STEPS_PER_DECISION", 3)
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    apply(bench, "ping", every("1m", exclude=[{"type": "cron", "expression": "* 4 * * *"}]))
    apply(bench, "often", every("30s"))
    bench.run(6_335 * SECOND)
    bench.hold_back(a_commit("control"))
    apply(bench, "third", every("7d"))
    bench.run((20 + delay) * SECOND)
    bench.as_usual()
    bench.run(tier.at_night(5, else_=2) * HOUR)
    assert sent(bench)[-1] > bench.now - 2 * MINUTE
    assert behind(bench) < MINUTE


def test_given_the_last_instant_of_an_outage_that_was_refused_before_it_was_known_then_the_others_are_delivered() -> (
    None
):
    """The delivery that stands for all of them has its id, and was left to its rows, which brought it alone.

    The owner falls within the grace. The next owner sends before it has recovered, and falls. The third owner knows of the outage.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    apply(bench, "ping", every("25s"))
    while not sent(bench):
        bench.run(SECOND)
    first = bench.now
    bench.run(70 * SECOND)
    served = {0: bench.actor.served_until(bench.now) or 0}
    bench.store.write([heartbeat_row(bench.holding.owner, "node", bench.now, served, 10**10)])
    bench.run(SECOND)
    bench.hold_back(
        lambda effect: isinstance(effect, ReadRange) and effect.range.low.startswith("T#"), times=EVERY_TIME
    )
    bench.hold_back(a_produce("out"), times=2)
    bench.away(20 * SECOND)
    bench.run(11 * SECOND + 100)
    bench.answer_with(a_produce("out"), REFUSED)
    bench.run(24 * SECOND)
    bench.end_scripts()
    bench.away(14 * SECOND)
    bench.run(3 * MINUTE)
    instants = set[int]()
    for each, nominal in zip(bench.on("out"), nominals(bench), strict=True):
        instants |= set(range((covered(each) or (nominal,))[0], nominal + 1, 25 * SECOND))
    assert instants == set(range(first, bench.now, 25 * SECOND)), "I1: an instant was never delivered"


@pytest.mark.parametrize(("mode", "told"), [("last", 2), ("none", 3)])
def test_given_a_far_record_that_is_read_behind_an_outage_then_each_instant_that_is_not_sent_is_told(
    mode: str, told: int
) -> None:
    """What one delivery stands for was told as one instant."""
    bench, mended, due = an_unreadable_one(every("2h"), catchup={"mode": mode})
    bench.away(due[0] - bench.now - 90 * SECOND)
    bench.request(an_apply(a_recurring("often", trigger=every("1m"), payload="often"), "apply-often"))
    bench.run(due[0] - bench.now + 5 * MINUTE)
    bench.away(due[2] - bench.now + MINUTE)
    bench.store.write([mended])
    bench.run(25 * MINUTE)
    notices = [each for each in bench.notices("recurring_not_sent") if each.fields["schedule"] == "flights/ping"]
    assert sum(int(str(each.fields["occurrences"])) for each in notices) == told
