"""Planted bugs that the simulation must find: each takes one protection away, everything else as in production."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import pytest

from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane
from tidegate_core.decisions.guard import Guard
from tidegate_core.records.messages import MessageTimer
from tidegate_core.store.values import Condition
from tidegate_core.transactions import conditions
from tidegate_testkit.simulation.outcome import simulate
from tidegate_testkit.simulation.swarm import HALF_SESSION_MS

Builder = Callable[..., Condition]


def without(builder: Builder, *, clauses: str = "", values: Sequence[str] = ()) -> Builder:
    """Returns the builder with nothing left of its condition but `clauses`; what the update itself needs stays in place.

    Args:
        builder: The production builder.
        clauses: What is still demanded.
        values: Placeholders that `clauses` or the action's update use.
    """

    def mutated(*arguments: Any, **named: Any) -> Condition:
        whole = builder(*arguments, **named)
        # Every declared name has to be used, so each one is asked for something that is always true.
        always = [f"(attribute_exists({name}) OR attribute_not_exists({name}))" for name in whole.names]
        kept: Mapping[str, Any] = {name: value for name, value in whole.values.items() if name in values}
        return Condition(" AND ".join([*always, clauses] if clauses else always), whole.names, kept)

    return mutated


def assert_found(within: int, known: int) -> None:
    """Asserts that some seed below `within` notices; `known`, which did when this was written, is asked first."""
    for seed in (known, *range(within)):
        if simulate(seed).violations:
            return
    pytest.fail(f"none of {within} seeds noticed what is missing")


def test_given_no_lease_check_then_the_simulation_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A paused owner's fire is accepted after another one has acquired the shard."""
    monkeypatch.setattr(conditions, "holds_lease", without(conditions.holds_lease))
    assert_found(within=40, known=3)


def test_given_a_cursor_without_its_next_then_the_simulation_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated move takes the position back, and its records are handed out again."""
    epoch_and_map = "#epoch = :epoch AND #map = :map"
    mutant = without(conditions.cursor_at, clauses=epoch_and_map, values=(":epoch", ":map"))
    monkeypatch.setattr(conditions, "cursor_at", mutant)
    assert_found(within=40, known=5)


def test_given_no_local_guard_then_the_simulation_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that goes on after its session has ended produces and submits."""
    monkeypatch.setattr(Guard, "remaining_ms", lambda guard, now: HALF_SESSION_MS)
    assert_found(within=40, known=3)


def test_given_a_message_guard_that_may_fall_then_the_simulation_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late replacement lowers the guard that a younger one has raised."""
    mutant = without(conditions.guard_older, values=(":version",))
    monkeypatch.setattr(conditions, "guard_older", mutant)
    assert_found(within=120, known=30)


def test_given_a_former_owner_that_may_raise_guards_then_the_simulation_notices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A paused owner answers a cancel, or hides an inbox row, that the present one does not hear of."""
    monkeypatch.setattr(conditions, "holds_progress", without(conditions.holds_progress))
    assert_found(within=60, known=13)


def test_given_no_start_gate_then_the_simulation_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two artefacts of one attempt both run, and so does what a suspend has closed."""
    mutant = without(conditions.may_start, clauses="attribute_exists(#state)", values=(":driver",))
    monkeypatch.setattr(conditions, "may_start", mutant)
    assert_found(within=20, known=0)


def test_given_a_limit_that_is_not_asked_then_the_simulation_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two shards admit at the same moment."""
    monkeypatch.setattr(conditions, "permit_free", without(conditions.permit_free))
    assert_found(within=80, known=11)


def load_without_guards(plane: DeliveryPlane, timers: Sequence[MessageTimer]) -> Generator[Any, Any, None]:
    """`DeliveryPlane._load_page` that trusts every timer row."""
    for timer in timers:
        if not plane.is_passed(timer.slot, timer.id, timer.version):
            plane.take_loaded(timer)
    plane.host.operations.raise_(plane.changed)
    yield from ()


def test_given_a_load_that_reads_no_message_guards_then_the_simulation_notices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A timer row written late, after its cancel, is loaded by the next owner and sent."""
    monkeypatch.setattr(DeliveryPlane, "_load_page", load_without_guards)
    assert_found(within=150, known=94)
