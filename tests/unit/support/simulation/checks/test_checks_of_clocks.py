"""Only a suspension amid what is judged explains it, and only by as much as clocks stood still; not one of before, or behind it."""

from __future__ import annotations

import pytest

from tests.simulation.checks.case import Case
from tests.simulation.checks.evidence import check_evidence
from tests.simulation.world.world import World
from tests.unit.support.simulation.checks.lying import found
from tests.unit.support.simulation.checks.steps import a_step
from tidegate_core.language.values.durations import parse_duration

LONG_MS = 60_000


@pytest.mark.parametrize(
    ("begin", "length", "is_wrong"),
    [
        pytest.param(1_000, LONG_MS, False, id="held for all that they came too late"),
        pytest.param(1_000, 5_000, True, id="held, and not for so long"),
    ],
)
def test_given_a_pair_that_came_further_apart_than_its_time_out_then_only_a_hold_for_the_rest_of_it_explains_it(
    world: World, monkeypatch: pytest.MonkeyPatch, begin: int, length: int, is_wrong: bool
) -> None:
    case = Case(world)
    (life,) = [life for life in case.lives if life.name == "pair"]
    evidence = next(each for each, entries in case.entries_of["pair"].items() if len(entries) > 1)
    first, *others = sorted(case.entries_of["pair"][evidence], key=lambda entry: int(entry["at"]))
    late = first["at"] + parse_duration(life.definition.trigger["timeout"]) + LONG_MS // 2
    case.entries_of["pair"] = {evidence: [first, *({**each, "at": late} for each in others)]}
    at = first["at"] + begin
    steps = [a_step("suspend", at, mode="hold"), a_step("resume", at + length)]
    monkeypatch.setattr(case, "steps", lambda _: steps)
    assert found(check_evidence(case), "I3", evidence, "apart") is is_wrong
