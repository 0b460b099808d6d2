"""Evidence of thousands of events: each costs what the first one cost."""

from __future__ import annotations

import pytest

from tests.support.builders import EVENTS, SECOND, a_spec, an_apply, an_event, on_data
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.language.triggers.latches import Counted, Latches

AT_ONCE = 30


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Counted]:
    """What the automaton of evidence was given, in whichever decision, and when it was read back."""
    given: list[Counted] = []
    add = Latches.add

    def noted(latches: Latches, entry: Counted) -> None:
        given.append(entry)
        add(latches, entry)

    monkeypatch.setattr(Latches, "add", noted)
    return given


def test_given_evidence_that_grows_then_what_was_counted_is_not_counted_again(counted: list[Counted]) -> None:
    """10,000 of them took a minute of the loop's time: all were gone through for each row of some more."""
    bench = ActorHarness()
    bench.request(an_apply(a_spec("much", on_data("a", count=10_000))))
    bench.run(SECOND)
    costs: list[int] = []
    for round_ in range(20):
        counted.clear()
        bench.append(EVENTS, 0, *(an_event(f"d{round_}-{number}", dataset="a") for number in range(AT_ONCE)))
        bench.run(SECOND)
        costs.append(len(counted))
    # Each once when it is looked for what is not at hand, once when it is decided, and once when it is read back.
    assert max(costs) <= 5 * AT_ONCE, costs
    assert max(costs[10:]) <= max(costs[:10]), costs
