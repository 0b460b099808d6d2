"""Requests on the topic `tidegate.requests`, one class per type."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, WithJsonSchema

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.requests.message_requests import (
    MAX_PAYLOAD_BYTES,
    PAYLOAD_FIELDS,
    MessageCancel,
    MessageSend,
    check_delivery,
)
from tidegate_core.language.requests.request_base import (
    MAX_RECORD_BYTES,
    ControlRequest,
    ControlResume,
    ControlSuspend,
    RequestBase,
)
from tidegate_core.language.values.document import LANGUAGE, PLATFORM, Flag, planned
from tidegate_core.language.values.instants import InstantField
from tidegate_core.language.values.names import Name, Namespace, RunId
from tidegate_core.language.values.problems import refused
from tidegate_core.language.values.states import Backlog, OnUpdate, SuspendMode

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "MAX_RECORD_BYTES",
    "PAYLOAD_FIELDS",
    "PLANNED_TYPES",
    "REQUEST_TYPES",
    "SCHEDULE_BYTES_MAX",
    "ControlRequest",
    "ControlResume",
    "ControlSuspend",
    "JobCancel",
    "MessageCancel",
    "MessageSend",
    "Request",
    "RunCancel",
    "RunRelease",
    "RunRequest",
    "ScheduleApply",
    "ScheduleDelete",
    "ScheduleRequest",
    "ScheduleResume",
    "ScheduleSuspend",
    "ScheduleTrigger",
    "SourceApply",
    "SourceDelete",
    "SourceRequest",
    "check_delivery",
]


SCHEDULE_BYTES_MAX = 65_536
"""Size of a stored apply request. With it, the launch order of a program and an upstream run's arguments stay far below an
item's 400 KB."""


def _version_or_any(value: Any) -> Any:
    """Checks both forms in one function: pydantic would report a problem for each member of the union."""
    if value == "any" or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise refused("is neither a whole number nor any", hint="0: it must not exist; any: it must exist")


ExpectedVersion: TypeAlias = Annotated[
    int | Literal["any"],
    BeforeValidator(_version_or_any),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "const": "any"}]}),
]
"""The version that a request expects; `any` means any existing version."""


class ScheduleRequest(RequestBase):
    """A request about one schedule.

    Attributes:
        name: Name of the schedule.
        expected_version: Version for compare-and-set: None for no check, 0 if it must not exist, `any` if it must exist.
    """

    namespace: Namespace
    name: Name
    expected_version: ExpectedVersion | None = None


class ScheduleApply(ScheduleRequest):
    """Create a schedule or replace its definition.

    Attributes:
        on_update: Rule for pending work; by default the rule of the new definition.
    """

    EXAMPLE: ClassVar = {
        "id": "01JD0M2T9V3E8R7Q5K1N4B6C2A",
        "type": "schedule.apply",
        "namespace": "flights",
        "name": "join-day",
        "expected_version": None,
        "spec": ScheduleSpec.EXAMPLE,
        "actor": "ana",
        "reason": "first version",
    }
    PLANNED_FIELDS: ClassVar = planned(LANGUAGE, "dry_run", "force")

    type: Literal["schedule.apply"] = "schedule.apply"
    spec: ScheduleSpec
    on_update: OnUpdate | None = None


class ScheduleDelete(ScheduleRequest):
    """Delete a schedule. Its jobs and its runs before the start gate are cancelled.

    Attributes:
        cancel_running: Whether the runs past the start gate are cancelled as well; the receipt lists them in either case.
    """

    EXAMPLE: ClassVar = {"id": "d-1", "type": "schedule.delete", "namespace": "flights", "name": "join-day"}

    type: Literal["schedule.delete"] = "schedule.delete"
    cancel_running: Flag = False


class ScheduleSuspend(ScheduleRequest):
    """Suspend a schedule in one of four modes. Running programs continue.

    Attributes:
        mode: Rule for waiting jobs and for events during the suspension; by default the schedule's `suspend_mode`.
        until: Instant at which the schedule resumes automatically, if no resume came before.
    """

    EXAMPLE: ClassVar = {
        "id": "s-1",
        "type": "schedule.suspend",
        "namespace": "flights",
        "name": "join-day",
        "actor": "ana",
        "reason": "the source is being repaired",
    }

    type: Literal["schedule.suspend"] = "schedule.suspend"
    mode: SuspendMode | None = None
    until: InstantField | None = None


class ScheduleResume(ScheduleRequest):
    """Resume a suspended schedule from now on. The suspended span has no misfires.

    Attributes:
        backlog: Occurrences of the suspended span: jobs that `hold` parked (by default all continue), or instants of a time
            trigger (by default none get a job).
        suspended_at: Instant of the suspension that is meant, for compare-and-set. Another suspension, or a schedule that was
            created suspended, is a conflict.
    """

    EXAMPLE: ClassVar = {"id": "r-1", "type": "schedule.resume", "namespace": "flights", "name": "join-day"}

    type: Literal["schedule.resume"] = "schedule.resume"
    backlog: Backlog | None = None
    suspended_at: InstantField | None = None


class ScheduleTrigger(ScheduleRequest):
    """Run a schedule now: the trigger is skipped, constraints and limits apply.

    Attributes:
        force_overlap: Whether the run may start next to open runs, within the constraints. At most 16 runs are open.
    """

    EXAMPLE: ClassVar = {"id": "t-1", "type": "schedule.trigger", "namespace": "flights", "name": "join-day"}
    PLANNED_FIELDS: ClassVar = planned(LANGUAGE, "args", "conf", "nominal", "correlation", "manifest")

    type: Literal["schedule.trigger"] = "schedule.trigger"
    force_overlap: Flag = False


class SourceRequest(RequestBase):
    """A request about one source.

    Attributes:
        name: Name of the source.
        expected_version: Version for compare-and-set: None for no check, 0 if it must not exist, `any` if it must exist.
    """

    CLUSTER_OBJECT: ClassVar = "sources"

    namespace: Namespace
    name: Name
    expected_version: ExpectedVersion | None = None


class SourceApply(SourceRequest):
    """Create a source or replace its mapping; its topic cannot change."""

    EXAMPLE: ClassVar = {
        "id": "src-1",
        "type": "source.apply",
        "namespace": "flights",
        "name": "landed-files",
        "spec": SourceSpec.EXAMPLE,
    }

    type: Literal["source.apply"] = "source.apply"
    spec: SourceSpec


class SourceDelete(SourceRequest):
    """Delete a source. No record that is produced after the answer becomes an event."""

    EXAMPLE: ClassVar = {"id": "src-2", "type": "source.delete", "namespace": "flights", "name": "landed-files"}

    type: Literal["source.delete"] = "source.delete"


class RunRequest(RequestBase):
    """A request about one run.

    Attributes:
        run_id: Id of the run; it contains the shard.
    """

    namespace: Namespace | None = None
    run_id: RunId


class RunCancel(RunRequest):
    """End a run. Before the start gate the run is closed; after it its program is stopped."""

    EXAMPLE: ClassVar = {"id": "c-1", "type": "run.cancel", "run_id": "0042-mfrggzdfmztwq2lkn5wg63tqoe"}
    PLANNED_FIELDS: ClassVar = planned(LANGUAGE, "grace", "kill")

    type: Literal["run.cancel"] = "run.cancel"


class RunRelease(RunRequest):
    """End a lost run whose program certainly has ended, as the user confirms. Its permits return, and another attempt may start."""

    EXAMPLE: ClassVar = {
        "id": "c-3",
        "type": "run.release",
        "run_id": "0042-mfrggzdfmztwq2lkn5wg63tqoe",
        "actor": "ana",
        "reason": "its host was scrapped",
    }

    type: Literal["run.release"] = "run.release"


class JobCancel(RequestBase):
    """End a job that has no run.

    Attributes:
        job_id: Id of the job; it contains the shard.
    """

    EXAMPLE: ClassVar = {"id": "c-2", "type": "job.cancel", "job_id": "0042-mfrggzdfmztwq2lkn5wg63tqoe"}

    type: Literal["job.cancel"] = "job.cancel"
    namespace: Namespace | None = None
    job_id: RunId


Request: TypeAlias = (
    ScheduleApply
    | ScheduleDelete
    | ScheduleSuspend
    | ScheduleResume
    | ScheduleTrigger
    | RunCancel
    | RunRelease
    | JobCancel
    | MessageSend
    | MessageCancel
    | ControlSuspend
    | ControlResume
    | SourceApply
    | SourceDelete
)

REQUEST_TYPES: dict[str, type[Request]] = {
    "message.send": MessageSend,
    "message.cancel": MessageCancel,
    "schedule.apply": ScheduleApply,
    "schedule.delete": ScheduleDelete,
    "schedule.suspend": ScheduleSuspend,
    "schedule.resume": ScheduleResume,
    "schedule.trigger": ScheduleTrigger,
    "run.cancel": RunCancel,
    "run.release": RunRelease,
    "job.cancel": JobCancel,
    "control.suspend": ControlSuspend,
    "control.resume": ControlResume,
    "source.apply": SourceApply,
    "source.delete": SourceDelete,
}

PLANNED_TYPES = {
    **planned(LANGUAGE, "run.rerun", "schedule.reset_evidence", "schedule.backfill"),
    **planned(PLATFORM, "object.apply", "object.delete"),
}
