"""Facts that the leaves of triggers count. Inbox rows hold them as JSON until the shard's owner has counted them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, TypeAdapter

from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.values.document import Document, Whole
from tidegate_core.language.values.instants import InstantField
from tidegate_core.language.values.names import Name, Namespace, RunId
from tidegate_core.language.values.states import RunState


class RunFact(Document):
    """A run ended, started, or was lost: the states for which a trigger can wait.

    Attributes:
        ended_at: Instant at which the run reached `state`.
        schedule: Schedule of the run.
        args: Resolved arguments of the run, for `${upstream.args[n]}`.
        outputs: Outputs that the run reported, for `${upstream.outputs.<key>}`.
        correlation: Correlation key of the run's job; a run that this run causes inherits it.
        admitted_at: Instant of admission. A run that was admitted before a trigger's activation does not count for it.
        nominal: Nominal time of the run's job.
        job: Id of the run's job.
    """

    EXAMPLE: ClassVar = {
        "type": "run",
        "namespace": "flights",
        "schedule": "join-day",
        "run_id": "0042-mfrggzdfmztwq2lkn5wg63tqoe",
        "attempt": 1,
        "state": "succeeded",
        "args": ["--day", "2013-01-01"],
        "outputs": {"rows": 842},
        "correlation": "2013-01-01",
        "admitted_at": "2026-11-20T22:00:00.250Z",
        "nominal": "2026-11-20T22:00:00Z",
        "job": "0042-mfrggzdfmztwq2lkn5wg63tqoe",
        "ended_at": "2026-11-20T22:01:10Z",
    }

    type: Literal["run"] = "run"
    namespace: Namespace
    schedule: Name
    run_id: RunId
    attempt: Whole = Field(ge=1)
    state: RunState
    args: tuple[str, ...] = ()
    outputs: dict[str, Any] = Field(default_factory=dict)
    correlation: str | None = None
    admitted_at: InstantField
    nominal: InstantField | None = None
    job: RunId | None = None
    ended_at: InstantField | None = None

    @property
    def event_key(self) -> str:
        """Key by which schedules subscribe to the fact."""
        return f"run/{self.namespace}/{self.schedule}"

    @property
    def dedupe_id(self) -> str:
        """Id that is the same for repeats."""
        return f"{self.run_id}/{self.attempt}/{self.state}"


class ScheduleGone(Document):
    """A schedule was deleted, so that triggers wait for its runs in vain. No leaf counts this fact; owners remove such leaves.

    Attributes:
        schedule: Name of the schedule.
        incarnation: Incarnation that ended.
        asked_at: Append time of the request; None if no user deleted it, but it ended because its own upstream was deleted.
        at: Instant of the deletion, by the clock of the schedule's owner.
    """

    EXAMPLE: ClassVar = {
        "type": "schedule_gone",
        "namespace": "flights",
        "schedule": "join-day",
        "incarnation": "01K9XFT8F8QVR2MZ123DW6Y1VD",
        "at": "2026-11-20T22:00:00.250Z",
    }

    type: Literal["schedule_gone"] = "schedule_gone"
    namespace: Namespace
    schedule: Name
    incarnation: str
    asked_at: InstantField | None = None
    at: InstantField

    @property
    def event_key(self) -> str:
        """Key by which schedules subscribe to the schedule's runs."""
        return f"run/{self.namespace}/{self.schedule}"


def _kind_of(fact: Any) -> str:
    kind = fact.get("type") if isinstance(fact, dict) else fact.type
    return "custom" if str(kind).startswith("custom.") else str(kind)


Fact: TypeAlias = Annotated[
    Annotated[DataPartitionEvent, Tag("data.partition")]
    | Annotated[RunFact, Tag("run")]
    | Annotated[CustomEvent, Tag("custom")],
    Discriminator(_kind_of),
]

_FACT: TypeAdapter[DataPartitionEvent | RunFact | CustomEvent] = TypeAdapter(Fact)


def fact_to_json(fact: Fact) -> str:
    return fact.canonical_json()


def fact_from_json(text: str | bytes) -> Fact:
    """Returns the fact that `fact_to_json` wrote.

    Raises:
        ValueError: The text is no such fact. That is a bug, not an error of the input.
    """
    return _FACT.validate_json(text)
