from __future__ import annotations

from collections import Counter

import pytest

from tests.chaos.proxies.store_faults import KINDS, Dice, Fate, FaultKind, FaultsRefused, StoreFaults

ALL = StoreFaults(rates=dict.fromkeys(KINDS, 0.1))


def test_given_equal_seeds_then_fates_are_equal_and_another_seed_has_others() -> None:
    drawn = {seed: [Dice(seed).fate(ALL, "PutItem") for _ in range(1)] for seed in (1, 2)}
    first, again, other = (Dice(seed) for seed in (1, 1, 2))
    fates = [first.fate(ALL, "PutItem") for _ in range(100)]
    assert fates == [again.fate(ALL, "PutItem") for _ in range(100)]
    assert fates != [other.fate(ALL, "PutItem") for _ in range(100)]
    assert drawn[1][0] == fates[0]


def test_given_rates_then_each_kind_is_met_about_so_often() -> None:
    dice = Dice(3)
    met = Counter(dice.fate(ALL, "PutItem").kind for _ in range(10_000))
    assert set(met) == {None, *KINDS}
    assert all(800 < met[kind] < 1_200 for kind in KINDS)


def test_given_a_setting_for_a_while_then_later_draws_are_as_they_would_have_been() -> None:
    calm, troubled = Dice(5), Dice(5)
    for _ in range(50):
        calm.fate(StoreFaults(), "PutItem")
        troubled.fate(ALL, "Query")
    assert calm.fate(ALL, "PutItem") == troubled.fate(ALL, "PutItem")


def test_given_operations_then_others_meet_nothing() -> None:
    faults = StoreFaults(rates={"throttle": 1.0}, operations=frozenset({"PutItem"}))
    assert Dice(1).fate(faults, "PutItem").kind == "throttle"
    assert Dice(1).fate(faults, "Query") == Fate()


@pytest.mark.parametrize(("kind", "span"), [("latency", (200, 300)), ("duplicate", (1_000, 1_100))])
def test_given_a_span_then_waits_lie_within_it(kind: FaultKind, span: tuple[int, int]) -> None:
    dice, faults = Dice(1), StoreFaults(rates={kind: 1.0}, latency_ms=(200, 300), echo_ms=(1_000, 1_100))
    waits = [dice.fate(faults, "PutItem").wait_ms for _ in range(200)]
    assert span[0] <= min(waits) < max(waits) <= span[1]


@pytest.mark.parametrize(
    "rates",
    [
        pytest.param({"throttle": 1.1}, id="above one"),
        pytest.param({"throttle": -0.1}, id="negative"),
        pytest.param({"throttle": 0.6, "reset": 0.6}, id="above one together"),
        pytest.param({"throtle": 0.1}, id="a kind that there is not"),
    ],
)
def test_given_rates_that_cannot_be_then_they_are_refused(rates: dict[FaultKind, float]) -> None:
    with pytest.raises(FaultsRefused):
        StoreFaults(rates=rates)


def test_given_the_most_before_the_least_then_it_is_refused() -> None:
    with pytest.raises(FaultsRefused, match="latency_ms"):
        StoreFaults(latency_ms=(300, 200))


def test_given_faults_as_json_then_they_come_back() -> None:
    faults = StoreFaults(rates={"reset": 0.5}, latency_ms=(1, 2), echo_ms=(3, 4), operations=frozenset({"Query"}))
    assert StoreFaults.of(faults.document()) == faults
    with pytest.raises(FaultsRefused):
        StoreFaults.of({"rates": {}})
