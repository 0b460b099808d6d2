"""One shard's run plane as a whole: what is lost on the way is found by its sweep, and nothing waits for a broker (DESIGN 4, 6)."""

from __future__ import annotations

from tests.unit.tidegate_core.decisions.shard_bench import a_bench, states, triggered

from tidegate_core.decisions.shard_actor import SWEEP_MS
from tidegate_core.effects import NotProduced, NotSubmitted, Poke, Produce, ReadRange
from tidegate_testkit.bench import Behaviour
from tidegate_testkit.builders import MINUTE, RUNS, SECOND, a_request, a_spec, an_apply, every, on_run_of

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
    bench.answer_with(lambda effect: isinstance(effect, Poke), NotSubmitted("lost"), times=1)
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    assert bench.receipts() == {}
    bench.run(SWEEP_MS + SWEEP_MS // 5 + SECOND)
    assert bench.status_of("apply-nightly") == "accepted"


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
    from tidegate_core.decisions.inputs import Poked

    bench.give(Poked(shard))
    held = bench._held.pop()
    bench.release()
    bench._held.append(held)
    bench.release()
    bench.run(5 * SECOND)
    assert len(bench.started) == 1
    assert bench.rows("I#") == []
