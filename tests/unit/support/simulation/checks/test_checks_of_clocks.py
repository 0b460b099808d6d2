"""Only a suspension amid what is judged explains it, and only by as much as clocks stood still; not one of before, or behind it."""

from __future__ import annotations

import pytest

from tests.simulation.checks.case import Case
from tests.simulation.checks.evidence import check_evidence
from tests.simulation.checks.request_history import kept_evidence, stood_still
from tests.simulation.world.timeline import START
from tests.simulation.world.world import World
from tests.unit.support.simulation.checks.lying import found
from tests.unit.support.simulation.checks.steps import a_step
from tidegate_core.model.durations import parse_duration

LONG_MS = 60_000
DONE_MS = 10
"""Between a request's record and its answer, in these stories."""


@pytest.mark.parametrize(
    ("begin", "length", "is_wrong"),
    [
        pytest.param(1_000, LONG_MS, False, id="held for all that they came too late"),
        pytest.param(1_000, 5_000, True, id="held, and not for so long"),
        pytest.param(-2 * LONG_MS, LONG_MS, True, id="held before the first of them"),
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


@pytest.mark.parametrize(
    ("mode", "begin", "end", "still", "keeps"),
    [
        pytest.param("hold", 2_000, 4_000, 2_000, True, id="all the time"),
        pytest.param("drop", 2_000, 4_000, 0, False, id="nothing is kept"),
    ],
)
def test_given_a_suspension_then_what_may_have_stood_still_is_its_part_of_the_span(
    mode: str, begin: int, end: int, still: int, keeps: bool
) -> None:
    steps = [a_step("apply", START), a_step("suspend", START, mode=mode), a_step("resume", START + 5_000 - DONE_MS)]
    steps = steps if end <= 5_000 else steps[:2]
    assert stood_still(steps, START + begin, START + end) == still
    assert kept_evidence(steps, START + begin, START + end) is keeps
