"""Instants of a suspended span that a resume wants made up for: walked first, by its word and not by the schedule's (SEMANTICS 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from tidegate_core.decisions.outages import CatchUp
from tidegate_core.records.outages import Outage
from tidegate_core.records.run_plane import ScheduleState


@dataclass(frozen=True, slots=True)
class Making:
    """How a walk makes occurrences.

    Attributes:
        mode: What becomes of the instants in `spans`.
        spans: In which nobody served the shard, or the schedule was suspended.
        through: The last instant that this walk looks at.
    """

    mode: CatchUp
    spans: Sequence[Outage]
    through: int


def making_of(state: ScheduleState, after_outage: CatchUp, outages: Sequence[Outage], now: int) -> Making:
    """Returns how the next walk makes them; the suspended span has a walk of its own, before all that follows it."""
    if state.made_up is None:
        return Making(after_outage, outages, now)
    return Making(cast(CatchUp, state.made_up), (Outage(0, state.made_up_to + 1),), min(now, state.made_up_to))


def made_up(state: ScheduleState) -> ScheduleState:
    """Returns the state after a walk: once that has left the span, the schedule's own word counts again."""
    is_over = state.next_nominal is None or state.next_nominal > state.made_up_to
    return replace(state, made_up=None) if state.made_up is not None and is_over else state
