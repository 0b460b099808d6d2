"""One shard's run plane as a whole: what is lost on the way is found by its sweep, and nothing waits for a broker (DESIGN 4, 6)."""

from __future__ import annotations

from tests.support.builders import (
    DEFAULT_SHARDS,
    EVENTS,
    MINUTE,
    RUNS,
    SECOND,
    a_request,
    a_spec,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.shard_bench import a_bench, states, triggered
from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.ingest.event_ingest import ROW_EVENTS_MAX
from tidegate_core.ownership.shard_actor import SWEEP_MS
from tidegate_core.rows.effects import NotProduced, NotSubmitted, Produce, ReadRange, WakeUp

# -- sweeps -----------------------------------------------------------------------------------------------------------


def test_given_a_lost_poke_then_the_sweep_finds_the_end() -> None:
    bench = a_bench(Behaviour(runs_for=100))
    bench._poke = lambda order: None  # type: ignore[method-assign]  # all of them are lost
    bench.hold_back(lambda effect: type(effect).__name__ == "Watch")
    triggered(bench)
    bench.run(SWEEP_MS + SWEEP_MS // 5 + SECOND)
    assert [entry[3] for entry in bench.ledger()] == ["succeeded"]


def test_given_a_lost_poke_about_the_inbox_then_the_sweep_finds_the_request() -> None:
    bench = a_bench()
    bench.answer_with(lambda effect: isinstance(effect, WakeUp), NotSubmitted("lost"), times=1)
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    assert bench.receipts() == {}
    bench.run(SWEEP_MS + SWEEP_MS // 5 + SECOND)
    assert bench.status_of("apply-nightly") == "accepted"


def test_given_nothing_from_others_then_a_sweep_reads_inbox_and_queues_together() -> None:
    """Of an idle cluster's calls to the store these are the most: two for each shard each ten seconds, until W3 was found to pay for them."""
    bench = a_bench()
    bench.run(MINUTE)
    bench.asked.clear()
    bench.run(MINUTE)
    sweeps = [each.range for each in bench.all_asked(ReadRange) if each.range.low.startswith("I")]
    assert {(each.low, each.limit) for each in sweeps} == {("I#", 1)}
    each_shard = [sum(each.pk == pk for each in sweeps) for pk in sorted({each.pk for each in sweeps})]
    assert len(each_shard) == DEFAULT_SHARDS
    assert all(5 <= count <= 6 for count in each_shard), each_shard


# -- outbox and inbox -------------------------------------------------------------------------------------------------


def test_given_a_broker_that_is_away_then_neither_finishing_nor_matching_waits_for_it() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec("down", on_run_of("nightly"))))
    bench.answer_with(
        lambda effect: isinstance(effect, Produce) and effect.topic == RUNS,
        NotProduced("unavailable", "away"),
        times=20,
    )
    triggered(bench)
    bench.run(2 * SECOND)
    assert sorted(entry[1] for entry in bench.ledger()) == ["down", "nightly"]
    assert bench.rows("Z#") != []
    bench.run(MINUTE)
    assert bench.rows("Z#") == []
    assert "succeeded" in states(bench)


def test_given_an_older_page_of_the_inbox_then_nothing_in_it_is_done_twice() -> None:
    """The page was read before a row's removal and answered after it."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.hold_back(lambda effect: getattr(getattr(effect, "batch", None), "name", "") == "inbox_done")
    bench.request(a_request("trigger"))
    bench.hold_back(lambda effect: isinstance(effect, ReadRange) and effect.range.low == "I#", answer_only=True)
    shard = int(str(bench.rows("S#")[0]["pk"])[3:])
    bench.give(Woken(shard))
    held = bench._held.pop()
    bench.release()
    bench._held.append(held)
    bench.release()
    bench.run(5 * SECOND)
    assert len(bench.started) == 1
    assert bench.rows("I#") == []


def test_given_a_backlog_then_the_inbox_is_not_read_again_at_each_poke_but_when_half_of_it_is_dealt_with() -> None:
    """Each look reads all of it: while sixty rows of a thousand events were dealt with, a busy store was asked for them ten times."""
    rows = 40
    bench = a_bench(Behaviour(starts_after=None))
    bench.request(an_apply(a_spec(trigger=on_data(count=1_000))))
    bench.hold_back(a_commit("count"), times=2)
    bench.append(EVENTS, 0, *(an_event(f"d{number}") for number in range(rows * ROW_EVENTS_MAX)))
    known = len(bench.rows("I#"))
    assert known >= rows

    def looks() -> int:
        return sum(each.range.low == "I#" and each.range.high == "I#~" for each in bench.all_asked(ReadRange))

    bench.run(known)
    before = looks()
    shard = int(str(bench.rows("S#")[0]["pk"])[3:])
    for _ in range(known // 2):
        bench.give(Woken(shard))
        bench.run(1)
    assert looks() <= before + 1, "nothing of it was dealt with"
    bench.run(2 * known)
    assert looks() > before, "what else comes does not wait for it"
