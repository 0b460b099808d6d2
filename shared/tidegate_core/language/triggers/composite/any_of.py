"""The trigger `any_of`: fires when one of its triggers is satisfied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from tidegate_core.language.events.trigger_facts import Fact
from tidegate_core.language.triggers.composite.composite import CompositeTrigger
from tidegate_core.language.triggers.composite.ticks import TickLeaf
from tidegate_core.language.triggers.trigger import LeafTrigger
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.problems import refused


class AnyOfTrigger(CompositeTrigger):
    """Fires when one of `triggers` is satisfied. By default it has no time-out, so that events of rare sources add up.

    Attributes:
        or_mode: Number of jobs. `one`: all triggers that are satisfied before the job starts share it. `each`: one job for
            each satisfied trigger, and for each run that a `run_status` among them counts.
    """

    EXAMPLE: ClassVar = {
        "type": "any_of",
        "triggers": [
            {"type": "data_size", "dataset": "clicks.raw", "bytes": "100GB"},
            {"type": "run_status", "schedule": "close-books", "states": ["succeeded"]},
        ],
        "or_mode": "one",
    }

    type: Literal["any_of"] = "any_of"
    or_mode: Literal["one", "each"] = "one"

    @model_validator(mode="after")
    def _no_job_of_a_tick_alone(self) -> Self:
        if self.or_mode == "each" and any(isinstance(leaf, TickLeaf) for leaf in self.leaves()):
            hint = "leave or_mode out, or make a separate schedule for the instants"
            raise refused("would create a job for each instant alone", field="or_mode", hint=hint)
        return self

    @property
    def has_one_state(self) -> bool:
        return super().has_one_state and self.or_mode == "one"

    @property
    def children_needed(self) -> int:
        return 1

    def outermost_fields(self) -> tuple[str, ...]:
        return (*super().outermost_fields(), *(("or_mode",) if self.or_mode == "each" else ()))

    def _combined(self, shortfalls: Sequence[str | None]) -> str | None:
        missing = [text for text in shortfalls if text is not None]
        if len(missing) < len(shortfalls):
            return None
        return f"one of: {' | '.join(missing)}"

    def _group(self, leaf: int, event: Fact, at: Instant) -> list[str]:
        group = super()._group(leaf, event, at)
        if self.or_mode == "one":
            return group
        place, branch = self._branch_of(leaf)
        own = branch.own_group_of(event) if isinstance(branch, LeafTrigger) else ""
        return [*group, str(place), *([own] if own else [])]

    def _branch_of(self, leaf: int) -> tuple[int, object]:
        """Returns the child to which a leaf belongs, with its index."""
        end = 0
        for place, child in enumerate(self.triggers):
            end += len(child.leaves())
            if leaf < end:
                return place, child
        raise AssertionError(f"{leaf} is no leaf of this trigger")
