"""Fire route of a target: where a schedule keeps its next instant, and what a request moves with the schedule's state.

The commands on schedules ask here; so do explanations and the repair sweep. `language/targets/target_rules.py` has the rules of the target.
A request holds rows outside of the state before it decides. It moves them in the transaction that moves the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.search import NEVER, Next, Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.messages.recurring.recurring_change import RecurringChange
from tidegate_core.messages.recurring.recurring_queue import RecurringQueue
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS
from tidegate_core.writes.unit_of_work import UnitOfWork


class ScheduleChange(Protocol):
    """Change of one schedule by one request. The request calls `begin`, and `end` in any case."""

    @property
    def since(self) -> int:
        """Instant from which a version counts that the request brings."""
        ...

    def begin(self) -> Operation[None]:
        """Holds rows outside of the state until the change ends. Raises WriterClosed."""
        ...

    def caught_up(self, before: ScheduleState | None) -> ScheduleState | None:
        """Returns the state with instants that have fired and that the stored state does not name."""
        ...

    def write(self, unit: UnitOfWork, state: ScheduleState, first: int | None) -> tuple[str | None, int]:
        """Moves rows outside of the state.

        Args:
            unit: Unit of the transaction that moves the state.
            state: State after the request.
            first: First instant that lies outside of the state; None: there is none.

        Returns:
            Text of the interval that has ended, and the number of its due occurrences that are not sent any more.
        """
        ...

    def end(self) -> None:
        """Releases what `begin` held."""
        ...


@dataclass(frozen=True, slots=True)
class StateOnlyChange:
    """Change of a schedule that has no rows outside of the state; its jobs follow in pages."""

    since: int

    def begin(self) -> Operation[None]:
        yield from ()

    def caught_up(self, before: ScheduleState | None) -> ScheduleState | None:
        return before

    def write(self, unit: UnitOfWork, state: ScheduleState, first: int | None) -> tuple[str | None, int]:
        return None, 0

    def end(self) -> None:
        """Releases nothing, because `begin` held nothing."""


class FireRoute(Protocol):
    """Route of one kind of target from an instant to its occurrence.

    Attributes:
        keeps_next_in_state: Whether the state names the next instant. Otherwise a recurring record does, and a repair restores that record.
    """

    keeps_next_in_state: ClassVar[bool]

    def following(self, trigger: TimeTrigger, ref: str, state: ScheduleState, now: int) -> Next:
        """Returns the next instant of an active schedule."""
        ...

    def split_next(self, state: ScheduleState) -> tuple[ScheduleState, int | None]:
        """Returns a new state as it is stored, and its next instant where that lies outside of the state."""
        ...

    def resumes_from(self, promised: int, now: int) -> int:
        """Returns the instant from which a schedule counts that is resumed at `now`, after its suspension's end `promised`."""
        ...

    def change(
        self, recurring: RecurringQueue, writer: ShardWriter, namespace: str, name: str
    ) -> ScheduleChange | None:
        """Returns the change of rows outside of the state; None: there are none."""
        ...


class ProgramRoute:
    """Programs: the state names the next instant, and a fire writes a job."""

    keeps_next_in_state: ClassVar[bool] = True

    def following(self, trigger: TimeTrigger, ref: str, state: ScheduleState, now: int) -> Next:
        return state.following

    def split_next(self, state: ScheduleState) -> tuple[ScheduleState, int | None]:
        return state, None

    def resumes_from(self, promised: int, now: int) -> int:
        return promised

    def change(
        self, recurring: RecurringQueue, writer: ShardWriter, namespace: str, name: str
    ) -> ScheduleChange | None:
        return None


class MessageRoute:
    """Messages: a fire writes nothing, so the state cannot name the next instant; intervals of the recurring record do."""

    keeps_next_in_state: ClassVar[bool] = False

    def following(self, trigger: TimeTrigger, ref: str, state: ScheduleState, now: int) -> Next:
        return trigger.seek(max(now, state.activated_at) - 1, ref, Search.of_a_decision())

    def split_next(self, state: ScheduleState) -> tuple[ScheduleState, int | None]:
        return state.at_next(NEVER), state.next_nominal

    def resumes_from(self, promised: int, now: int) -> int:
        # No job can wait here. So a resume sends late messages only, and none that counts as missed.
        return max(promised, now - OUTAGE_GRACE_MS)

    def change(
        self, recurring: RecurringQueue, writer: ShardWriter, namespace: str, name: str
    ) -> ScheduleChange | None:
        return RecurringChange(recurring, writer, namespace, name)


ROUTES_BY_KIND: Final[Mapping[str, FireRoute]] = {"program": ProgramRoute(), "message": MessageRoute()}
"""By the field `type` of a target."""


def route_of(spec: ScheduleSpec) -> FireRoute:
    """Returns the route of a schedule's target."""
    return ROUTES_BY_KIND[spec.target.type]


def change_of(
    specs: Iterable[ScheduleSpec], recurring: RecurringQueue, writer: ShardWriter, namespace: str, name: str
) -> ScheduleChange:
    """Returns the change that a request makes next to the state.

    Args:
        specs: Definitions of the schedule after the request and before it.
        recurring: Recurring messages of the shard.
        writer: Writer of the shard.
        namespace: Namespace of the schedule.
        name: Name of the schedule without its namespace.
    """
    changes = (route_of(spec).change(recurring, writer, namespace, name) for spec in specs)
    return next((change for change in changes if change is not None), StateOnlyChange(writer.host.now))
