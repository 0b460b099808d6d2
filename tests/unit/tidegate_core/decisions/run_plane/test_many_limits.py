"""Runs with many limits: what ends or parks several of them stays within what one transaction holds (I7)."""

from __future__ import annotations

import pytest

from tidegate_testkit.bench import Behaviour, Bench
from tidegate_testkit.builders import SECOND, Doc, a_request, a_spec, an_apply, at_most, every

GROUPS = [at_most(50, "group", group=f"g{number}") for number in range(15)]
KEYS = [at_most(3, "key", key=f"k{number} ${{nominal}}") for number in range(15)]
LIMITS = pytest.mark.parametrize("limits", [pytest.param(GROUPS, id="groups"), pytest.param(KEYS, id="keys")])


def before_the_gate(limits: list[Doc]) -> Bench:
    """Six runs that have been admitted and have not begun."""
    bench = Bench(behaviour=Behaviour(starts_after=None))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow", constraints=limits)))
    bench.run(62 * SECOND)
    assert len(open_runs(bench)) == 6
    return bench


def open_runs(bench: Bench) -> list[object]:
    return [row["id"] for row in bench.rows("R#") if "ended_at" not in row]


@LIMITS
@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param({"kind": "suspend"}, id="suspend"),
        pytest.param({"kind": "suspend", "mode": "hold"}, id="hold"),
        pytest.param({"kind": "delete"}, id="delete"),
    ],
)
def test_given_runs_with_many_limits_then_a_stop_ends_them_all_and_is_answered(
    limits: list[Doc], request_of: Doc
) -> None:
    bench = before_the_gate(limits)
    bench.request(a_request(**request_of, request_id="q"))
    bench.run(5 * SECOND)
    assert bench.status_of("q") == "accepted"
    assert open_runs(bench) == []
    assert not list(bench.notices("decision_failed"))


@LIMITS
def test_given_runs_with_many_limits_then_a_wide_suspend_ends_them_all_and_is_answered(limits: list[Doc]) -> None:
    bench = before_the_gate(limits)
    bench.request({"id": "q", "type": "control.suspend", "scope": "system"})
    bench.run(5 * SECOND)
    assert bench.status_of("q") == "accepted"
    assert open_runs(bench) == []
