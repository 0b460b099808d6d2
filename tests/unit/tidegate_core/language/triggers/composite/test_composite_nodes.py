"""What is left of a trigger when schedules that it waits for are gone (row CD-017)."""

from __future__ import annotations

import pytest

from tests.support.builders import Doc, all_of, on_data, on_run_of, parsed_spec
from tidegate_core.language.triggers.composite.composite_nodes import without
from tidegate_core.language.triggers.trigger import EventTrigger

P1, P2, P3 = (on_run_of(name) for name in ("p1", "p2", "p3"))
A, B = on_data("a"), on_data("b")


def any_of(*triggers: Doc, **more: object) -> Doc:
    return {"type": "any_of", "triggers": list(triggers), **more}


def at_least(k: int, *triggers: Doc) -> Doc:
    return {"type": "at_least", "k": k, "triggers": list(triggers)}


def parsed(trigger: Doc) -> EventTrigger:
    spec = parsed_spec(trigger=trigger)
    assert isinstance(spec.trigger, EventTrigger)
    return spec.trigger


@pytest.mark.parametrize(
    ("trigger", "gone", "left"),
    [
        pytest.param(P1, "p1", None, id="a single one ends"),
        pytest.param(P1, "p2", P1, id="another one does not"),
        pytest.param(A, "p1", A, id="data waits for nobody"),
        pytest.param(any_of(P1, A), "p1", A, id="or is pruned, and what is left stands alone"),
        pytest.param(any_of(P1, P2, A), "p1", any_of(P2, A), id="or is pruned"),
        pytest.param(any_of(P1, P2), "p1 p2", None, id="or without a branch ends"),
        pytest.param(all_of(P1, A), "p1", None, id="and ends"),
        pytest.param(any_of(all_of(P1, A), B), "p1", B, id="and within or is pruned"),
        pytest.param(all_of(any_of(P1, P2), A), "p1", all_of(P2, A), id="or within and"),
        pytest.param(at_least(2, P1, A, B), "p1", at_least(2, A, B), id="enough are left"),
        pytest.param(at_least(2, P1, P2, A), "p1 p2", None, id="too few are left"),
        pytest.param(any_of(P1, {**on_run_of("p1"), "states": ["failed"]}, A), "p1", A, id="whatever the states"),
        pytest.param(any_of(on_run_of("flights/p1"), A), "p1", A, id="by its full name"),
        pytest.param(any_of(on_run_of("other/p1"), A), "p1", any_of(on_run_of("other/p1"), A), id="of its namespace"),
    ],
)
def test_given_upstreams_that_are_gone_then_or_is_pruned_and_and_ends(
    trigger: Doc, gone: str, left: Doc | None
) -> None:
    """Row CD-017."""
    found = without(parsed(trigger), "flights", {f"flights/{name}" for name in gone.split()})
    assert found == (None if left is None else parsed(left))


def test_given_cdaps_own_tree_then_it_is_left_as_there() -> None:
    """Row CD-017: OR(a, p1, AND(OR(p1, p2), b), OR(p2)) less p1 is OR(a, AND(p2, b), p2); less p2 as well it is a."""
    tree = parsed(any_of(A, P1, all_of(any_of(P1, P2), B), P2))
    assert without(tree, "flights", {"flights/p1"}) == parsed(any_of(A, all_of(P2, B), P2))
    assert without(tree, "flights", {"flights/p1", "flights/p2"}) == parsed(A)


def test_given_nothing_that_is_gone_then_the_very_trigger_is_left() -> None:
    tree = parsed(any_of(A, all_of(P1, B), at_least(2, P2, P3, A)))
    assert without(tree, "flights", frozenset()) is tree
