"""Circles of schedules are told with all of their members, the shortest one first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import a_spec, all_of, every, on_data, on_run_of
from tidegate_core.language.definitions.dependency_cycles import circle_warning, upstreams_of
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.formats.parsing import parse_schedule


def any_of(*leaves: dict[str, Any]) -> dict[str, Any]:
    return {"type": "any_of", "triggers": list(leaves)}


def a_schedule(name: str, *upstreams: str) -> ScheduleSpec:
    leaves: list[dict[str, Any]] = [on_run_of(each) for each in upstreams]
    trigger = every("1h") if not leaves else leaves[0] if len(leaves) == 1 else any_of(*leaves)
    return parse_schedule({**a_spec(trigger=trigger), "name": name})


def told(*specs: ScheduleSpec) -> str | None:
    """Returns what the first is warned of, among the others."""
    warning = circle_warning(specs[0], {f"{each.namespace}/{each.name}": each for each in specs[1:]})
    return None if warning is None else warning.problem


@pytest.mark.parametrize(
    ("specs", "circle"),
    [
        pytest.param([a_schedule("a", "b"), a_schedule("b", "a")], ["a", "b", "a"], id="two"),
        pytest.param(
            [a_schedule("a", "b"), a_schedule("b", "c"), a_schedule("c", "a")], ["a", "b", "c", "a"], id="three"
        ),
        pytest.param(
            [a_schedule("a", "b", "c"), a_schedule("b", "d"), a_schedule("d", "a"), a_schedule("c", "a")],
            ["a", "c", "a"],
            id="the shorter one of two",
        ),
    ],
)
def test_given_a_circle_then_its_members_are_named_in_their_order(specs: list[ScheduleSpec], circle: list[str]) -> None:
    assert (
        told(*specs)
        == f"waits for its own runs, in a cycle: {' waits for '.join(f'flights/{each}' for each in circle)}"
    )


@pytest.mark.parametrize(
    "specs",
    [
        pytest.param([a_schedule("a", "b"), a_schedule("b")], id="a chain"),
        pytest.param([a_schedule("a", "b"), a_schedule("b", "c"), a_schedule("c", "b")], id="a circle of others"),
        pytest.param([a_schedule("a", "b")], id="what it waits for is not known"),
        pytest.param([a_schedule("a"), a_schedule("b", "a")], id="it waits for nobody"),
    ],
)
def test_given_no_circle_that_can_be_seen_then_there_is_no_warning(specs: list[ScheduleSpec]) -> None:
    assert told(*specs) is None


def test_given_a_nested_trigger_then_each_upstream_is_found_once() -> None:
    trigger = all_of(any_of(on_run_of("b"), on_run_of("other/c")), on_run_of("b", "failed"), on_data())
    assert upstreams_of(parse_schedule(a_spec(trigger=trigger))) == ["flights/b", "other/c"]
