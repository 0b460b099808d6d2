"""The trigger `run_status`: fires when runs of another schedule have reached one of the given states."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator

from tidegate_core.language.events.trigger_facts import Fact, RunFact
from tidegate_core.language.triggers.on_event.counting_leaf import CountingLeaf
from tidegate_core.language.triggers.trigger import PLANNED_FOR_EVENTS
from tidegate_core.language.values.document import PLATFORM, AtMost, Whole, planned
from tidegate_core.language.values.names import QualifiedName
from tidegate_core.language.values.problems import refused
from tidegate_core.language.values.states import RunState

STARTED = "started"
AwaitedState: TypeAlias = Literal[
    RunState.SUCCEEDED, RunState.FAILED, RunState.KILLED, RunState.TIMED_OUT, RunState.LOST, "started"
]
"""States of a run after the start gate, and `started` for the start gate itself. A run that was closed before the start gate
never ran, so no trigger counts it. A lost run has not ended: once its end is known, that state is published as well."""
MAX_TIMES = 1_000


class RunStatusTrigger(CountingLeaf):
    """Fires when `times` runs of `schedule` have reached one of `states` since the last fire.

    Attributes:
        schedule: Name of the upstream schedule: `name` in the same namespace, or `namespace/name`.
        states: States that count. `started` is the start gate and must be the only one; `lost`: the program's host is
            unreachable.
        times: Number of runs that are needed. With 1, outside of composites, each run fires once.
    """

    EXAMPLE: ClassVar = {"type": "run_status", "schedule": "join-day", "states": ["succeeded"]}
    PLANNED_FIELDS: ClassVar = {
        **PLANNED_FOR_EVENTS,
        **planned(PLATFORM, "program", "workflow", "where"),
    }
    LATER_FIELDS: ClassVar = CountingLeaf.LATER_FIELDS | {"times"}
    FIELD_HINTS: ClassVar = {
        "status": "the field is called states",
        "state": "the field is called states",
        "count": "the field is called times",
    }
    COUNT_FIELD: ClassVar = "times"

    type: Literal["run_status"] = "run_status"
    schedule: QualifiedName
    states: Annotated[tuple[AwaitedState, ...], Field(min_length=1), AtMost(6)] = (RunState.SUCCEEDED,)
    times: Whole = Field(default=1, ge=1, le=MAX_TIMES)

    @field_validator("states")
    @classmethod
    def _each_once(cls, states: tuple[AwaitedState, ...]) -> tuple[AwaitedState, ...]:
        if len(set(states)) != len(states):
            raise refused("names a state twice", hint="keep one")
        if STARTED in states and len(states) > 1:
            # The start of a run comes before its end, so the end would count a second time, for the next job.
            raise refused(
                "names started together with an end: one run would count twice",
                hint="keep one of them, or make two run_status triggers of an any_of with or_mode: each",
            )
        return states

    @property
    def needed(self) -> int:
        return self.times

    @property
    def hears_starts(self) -> bool:
        return STARTED in self.states

    def own_group_of(self, event: Fact) -> str:
        # Each upstream run fires: the job that waits for the first must not absorb a second one.
        return event.run_id if self.times == 1 and isinstance(event, RunFact) else ""

    def upstream(self, namespace: str) -> tuple[str, str]:
        """Returns namespace and name of the upstream schedule. `namespace` is the namespace of the schedule with this trigger."""
        before, slash, after = self.schedule.partition("/")
        return (before, after) if slash else (namespace, self.schedule)

    def upstream_ref(self, namespace: str) -> str:
        """Returns the upstream schedule as `<ns>/<name>`."""
        return "/".join(self.upstream(namespace))

    def event_key(self, namespace: str) -> str:
        return f"run/{self.upstream_ref(namespace)}"

    def accepts(self, event: Fact, namespace: str) -> str | None:
        if not isinstance(event, RunFact) or event.event_key != self.event_key(namespace):
            return None
        # The key is the run, not the attempt, so that a success after a manual re-run counts once.
        state = STARTED if event.state is RunState.RUNNING else event.state
        return event.run_id if state in self.states else None

    def correlation_of(self, event: Fact) -> str:
        return (event.correlation or "") if isinstance(event, RunFact) else ""

    def shortfall(self, count: int) -> str | None:
        short_by = self.times - count
        if short_by <= 0:
            return None
        runs = "a run" if self.times == 1 else f"{short_by} of {self.times} runs"
        return f"{runs} of {self.schedule} that {' or '.join(self.states)}"
