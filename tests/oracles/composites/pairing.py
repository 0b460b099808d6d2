"""Who meets whom in a composite (SEMANTICS 6.4): a state of its own for each value, for each day, for each alternative.

Each state is an automaton that knows nothing of the others, made when the first event of it comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.oracles.composites.composites import Automaton, Manifest, OnTimeout, Some, Tree, leaves_of


class Fired(NamedTuple):
    """A job: what it was made of, whether something was missing, and the value that it stands for."""

    manifest: Manifest
    partly: bool
    value: str | None = None


class Group(NamedTuple):
    """What evidence belongs to; None where nothing tells two pieces of it apart.

    Attributes:
        value: The data partition.
        day: It began with so many midnights behind.
        branch: Place of the alternative.
    """

    value: str | None
    day: int | None
    branch: int | None


@dataclass(slots=True)
class Paired:
    """A composite with all that says who meets whom.

    Attributes:
        by_value: One state for each data partition; each leaf counts one then.
        midnights: Ends of days, in their order; none where days mean nothing.
        each: One job for each alternative of the root.
    """

    tree: Some
    timeout: int | None
    on_timeout: OnTimeout
    by_value: bool = False
    midnights: tuple[int, ...] = ()
    each: bool = False
    _states: dict[Group, Automaton] = field(default_factory=dict)

    @property
    def fired(self) -> list[Fired]:
        return [Fired(*job, group.value) for group, state in self._states.items() for job in state.fired]

    @property
    def expired(self) -> list[str]:
        return [reason for state in self._states.values() for reason in state.expired]

    def event(self, dataset: str, data_partition: str, at: int) -> None:
        self.pass_time(at)
        branch = self._branches[dataset] if self.each else None
        day = sum(midnight <= at for midnight in self.midnights) if self.midnights else None
        group = Group(data_partition if self.by_value else None, day, branch)
        if group not in self._states:
            tree: Tree = self.tree if branch is None else self.tree.children[branch]
            ends_at = next((midnight for midnight in self.midnights if midnight > at), None)
            self._states[group] = Automaton(deepcopy(tree), self.timeout, self.on_timeout, ends_at)
        self._states[group].event(dataset, data_partition, at)

    def pass_time(self, until: int) -> None:
        for state in self._states.values():
            state.pass_time(until)

    def restart(self) -> None:
        for state in self._states.values():
            state.restart()

    @property
    def _branches(self) -> Mapping[str, int]:
        return {leaf.dataset: place for place, child in enumerate(self.tree.children) for leaf in leaves_of(child)}
