"""Facts: what the leaves of triggers look at. They lie in inbox rows as JSON until the shard's owner has counted them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, TypeAdapter

from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.values.document import Document, Whole
from tidegate_core.language.values.instants import InstantField
from tidegate_core.language.values.names import Name, Namespace, RunId
from tidegate_core.language.values.states import RunState


class RunFact(Document):
    """A run ended, or came to another state that somebody may wait for: it has started, or nobody can ask for it.

    Attributes:
        ended_at: When it came to `state`.
        schedule: Whose run it was.
        args: Its resolved arguments, for `${upstream.args[n]}`.
        outputs: What it reported, for `${upstream.outputs.<key>}`.
        correlation: The key of its job, which a run that it causes takes over.
        admitted_at: Runs admitted before a trigger's activation do not count for it (SEMANTICS 6.8).
        nominal: Of its job.
        job: Its job's id.
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
        """Under which schedules that wait for it are found."""
        return f"run/{self.namespace}/{self.schedule}"

    @property
    def dedupe_id(self) -> str:
        """Equal for repeats."""
        return f"{self.run_id}/{self.attempt}/{self.state}"


class ScheduleGone(Document):
    """A schedule was deleted: what waits for runs of it waits in vain. No leaf counts it; owners prune by it (CD-017).

    Attributes:
        schedule: Its name.
        incarnation: The one that ended.
        asked_at: Append time of the request; None: nobody asked, it ended with one that it waited for itself.
        at: When, by the clock of its owner.
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
        """Under which schedules that wait for its runs are found."""
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
        ValueError: The row holds something else: a bug, not an input error.
    """
    return _FACT.validate_json(text)
