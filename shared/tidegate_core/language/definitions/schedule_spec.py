"""Definition of a schedule: a target, a trigger that fires it, constraints of its jobs, and policies."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from tidegate_core.language.constraints import Constraint
from tidegate_core.language.definitions.catch_up_policy import CatchUpPolicy
from tidegate_core.language.definitions.run_policies import (
    MAX_PENDING,
    MAX_PENDING_DEFAULT,
    OnOverflow,
    Overlap,
    Priority,
    Retry,
    queue_fields_of,
)
from tidegate_core.language.targets.message_target import MessageTarget
from tidegate_core.language.targets.programs import Program, ProgramTarget
from tidegate_core.language.targets.target_rules import (
    TargetRules,
    rules_of,
    rules_of_document,
    with_target_defaults,
)
from tidegate_core.language.triggers import Trigger
from tidegate_core.language.values.derived_ids import base32, hash_of
from tidegate_core.language.values.document import PLATFORM, AtMost, Document, Flag, PlannedKinds, Text, Whole, planned
from tidegate_core.language.values.durations import DurationField
from tidegate_core.language.values.names import Name, Namespace
from tidegate_core.language.values.problems import refused
from tidegate_core.language.values.states import OnUpdate, SuspendMode

Preset: TypeAlias = Literal["cdap"]

_CONSTRAINTS: Final[dict[Any, dict[str, Any]]] = {
    "concurrency": {"on_unmet": "abort", "scope": "program"},
    "since_last_run": {"on_unmet": "abort", "of": "success"},
}
"""CDAP's defaults of constraints by type. In CDAP, as here, jobs wait for delays and windows. CDAP starts an admitted job with the
schedule's version at its admission, so the preset also sets `on_update: finish_admitted`."""
_OF_TIME: Final = frozenset({"cron", "every", "at", "times"})


def with_preset(document: Any) -> Any:
    """Returns a schedule's document with the defaults of its preset. The model reports parts that cannot be read."""
    if not isinstance(document, dict) or document.get("preset") != "cdap":
        return document
    given = {name: value for name, value in document.items() if name != "preset"}
    trigger, constraints = given.get("trigger"), given.get("constraints", [])
    filled = {"suspended": True, "overlap": "allow", **given}
    rules = rules_of_document(given)
    if rules is not None:
        filled = {**rules.PRESET_DEFAULTS, **filled}
    if isinstance(trigger, dict) and trigger.get("type") in _OF_TIME:
        catchup = given.get("catchup", {})
        filled["catchup"] = {"mode": "last", **catchup} if isinstance(catchup, dict) else catchup
    if isinstance(constraints, list | tuple):
        filled["constraints"] = [_with_defaults(each) for each in constraints]
    return filled


def _with_defaults(constraint: Any) -> Any:
    if not isinstance(constraint, dict):
        return constraint
    kind = constraint.get("type")
    return {**_CONSTRAINTS.get(kind, {}), **constraint} if isinstance(kind, str) else constraint


MAX_LABELS = 64
MAX_CONSTRAINTS = 16
DEFAULT_PENDING_TIMEOUT_MS = 24 * 3_600_000

LabelName = Annotated[str, StringConstraints(min_length=1, max_length=128)]
LabelValue = Annotated[Text, StringConstraints(max_length=256)]


def _program_by_default(target: Any) -> Any:
    return {"type": "program", **target} if isinstance(target, dict) else target


Target: TypeAlias = Annotated[
    ProgramTarget | MessageTarget,
    Field(discriminator="type"),
    BeforeValidator(_program_by_default),
    PlannedKinds(planned(PLATFORM, "workflow", hint="chain schedules with run_status triggers")),
]


class ScheduleSpec(Document):
    """A schedule as users write it and as it is stored.

    Attributes:
        preset: System whose defaults apply to fields that the document leaves out; it is not stored.
        labels: Labels for people and selectors.
        target: Program that the schedule starts, or message that it sends.
        trigger: Rule that says when the schedule fires.
        constraints: Rules that a satisfied job must meet before it runs; all apply.
        overlap: Rule for a new occurrence while the schedule's limit of open runs is reached. For messages always `allow`.
        max_pending: Number of waiting jobs under `overlap: queue`.
        on_overflow: Rule for one more job. `coalesce` merges the newest jobs; `reject` skips it.
        priority: Priority of the schedule's jobs at shared limits. Half an hour of waiting equals one class.
        catchup: Policy for misfires of a time trigger.
        retry: Policy after a failed run.
        pending_timeout: Time for which a satisfied job waits for its constraints.
        pending_timeout_action: Action after that time. `abort`: the job expires. `force`: the job starts as soon as the limits
            on open runs allow it; other constraints no longer count. `alert`: an alert is emitted, and the job keeps waiting.
        suspended: Whether the schedule is created suspended.
        suspend_mode: Mode of a suspend request that names none.
        on_update: Rule for pending work after an update to this definition, unless the request has another rule.
    """

    EXAMPLE: ClassVar = {
        "kind": "schedule",
        "namespace": "flights",
        "name": "join-day",
        "labels": {"team": "analytics"},
        "target": {
            "type": "program",
            "program": {
                "type": "pyspark",
                "file": "jobs/join.py",
                "args": ["--day", "${correlation}"],
                "conf": {"spark.sql.shuffle.partitions": "8"},
            },
        },
        "trigger": {
            "type": "all_of",
            "correlate": "data_partition",
            "triggers": [
                {"type": "data_partitions", "dataset": "flights.raw", "count": 1},
                {"type": "data_partitions", "dataset": "weather.raw", "count": 1},
            ],
            "timeout": "6h",
            "on_timeout": "abort",
        },
        "constraints": [
            {"type": "concurrency", "max": 1, "scope": "program"},
            {
                "type": "time_window",
                "opens": "22:00",
                "closes": "06:00",
                "zone": "America/New_York",
                "on_unmet": "wait",
            },
        ],
        "overlap": "queue",
        "priority": "medium",
        "retry": {"tries": 0, "backoff": "30s"},
        "pending_timeout": "24h",
        "pending_timeout_action": "abort",
    }
    PLANNED_FIELDS: ClassVar = {
        **planned(
            PLATFORM,
            "finish_by",
            "start_by",
            "on_miss",
            "grace",
            "slack",
            "late",
            "amendments",
            "weight",
            "tenant_weight",
            "app",
            "managed_by",
            "owner",
            "alerts",
            "notify",
            "pool",
            "quota",
        ),
    }
    PLANNED_VALUES: ClassVar = {
        "kind": {
            **planned(PLATFORM, "program", "limit", "calendar", "namespace", "app", "workflow"),
            **planned("", "source", hint="a source has its own file: tidegate source apply --file FILE"),
        },
        "overlap": planned(PLATFORM, "keep_first", "kill_running", "strict"),
    }
    LATER_FIELDS: ClassVar = frozenset(
        {"max_pending", "on_overflow", "catchup", "pending_timeout_action", "suspend_mode", "on_update"}
    )
    FIELD_HINTS: ClassVar = {
        "triggers": "the field is called trigger",
        "constraint": "the field is called constraints",
        "catch_up": "the field is called catchup",
        "after_outage": "it is called catchup.mode",
        **dict.fromkeys(("after_pause", "on_create", "after_update"), "it belongs into catchup"),
        **dict.fromkeys(
            ("cron", "schedule", "every", "at", "run_status"), "it is a type of trigger: trigger: {type: ...}"
        ),
        "misfire": "the field is called catchup",
        **dict.fromkeys(
            ("concurrency", "time_window", "delay", "since_last_run", "rate", "load"),
            "it is a type of constraint: constraints: [{type: ...}]",
        ),
        **dict.fromkeys(
            ("max_active_runs", "max_concurrent_runs", "concurrency_policy"),
            "write constraints: [{type: concurrency, max: 1}], and a rule for further occurrences under overlap",
        ),
        "timeout": "pending_timeout bounds how long a job waits for its constraints; nothing bounds how long a program runs",
        "enabled": "the field is called suspended",
        "description": "labels are for people: labels: {description: ...}",
        "spec": "its fields belong here; tidegate schedule get --spec prints them in this form",
    }

    kind: Literal["schedule"] = "schedule"
    preset: Preset | None = None
    namespace: Namespace
    name: Name
    labels: Annotated[dict[LabelName, LabelValue], AtMost(MAX_LABELS)] = Field(default_factory=dict)
    target: Target
    trigger: Trigger
    constraints: Annotated[tuple[Constraint, ...], AtMost(MAX_CONSTRAINTS)] = ()
    overlap: Overlap = "queue"
    max_pending: Whole = Field(default=MAX_PENDING_DEFAULT, ge=1, le=MAX_PENDING)
    on_overflow: OnOverflow = "coalesce"
    priority: Priority = "medium"
    catchup: CatchUpPolicy = Field(default_factory=CatchUpPolicy)
    retry: Retry = Field(default_factory=Retry)
    pending_timeout: DurationField = Field(
        default=DEFAULT_PENDING_TIMEOUT_MS, gt=0, json_schema_extra={"default": "1d"}
    )
    pending_timeout_action: Literal["abort", "force", "alert"] = "abort"
    suspended: Flag = False
    suspend_mode: SuspendMode = "drop"
    on_update: OnUpdate = "keep_due"

    @model_validator(mode="before")
    @classmethod
    def _with_defaults_filled_in(cls, given: Any) -> Any:
        return with_target_defaults(with_preset(given))

    @field_validator(
        "priority", "overlap", "on_overflow", "suspend_mode", "on_update", "pending_timeout_action", mode="before"
    )
    @classmethod
    def _any_case(cls, word: Any) -> Any:
        return word.lower() if isinstance(word, str) else word

    @model_validator(mode="after")
    def _modes_of_target(self) -> Self:
        self.target_rules.refuse_modes(self.suspend_mode, self.on_update)
        return self

    @model_validator(mode="after")
    def _said_once(self) -> Self:
        said: set[str] = set()
        for place, constraint in enumerate(self.constraints):
            what = constraint.only_once
            if what in said:
                raise refused(f"{what} a second time", field=f"constraints[{place}]", hint="keep one")
            if what is not None:
                said.add(what)
        return self

    @model_validator(mode="after")
    def _queue_fields(self) -> Self:
        queue_fields_of(self.overlap, self.max_pending, self.on_overflow)
        return self

    @property
    def program(self) -> Program:
        """Program of the target. The target must be a program."""
        assert isinstance(self.target, ProgramTarget)
        return self.target.program

    @property
    def message(self) -> MessageTarget:
        """Message that is sent; only asked of schedules whose target is a message."""
        assert isinstance(self.target, MessageTarget)
        return self.target

    @property
    def target_rules(self) -> TargetRules:
        """Rules of the target for this definition."""
        return rules_of(self.target)

    def left_out(self) -> set[str]:
        """The stored form leaves `catchup` out where it is the default of the target."""
        usual = CatchUpPolicy(mode=self.target_rules.usual_catch_up)
        return super().left_out() - {"catchup"} | ({"catchup"} if self.catchup == usual else set())

    def spec_hash(self) -> str:
        """Returns 32 characters that are equal for equal definitions, so that an apply of the same definition changes nothing."""
        return base32(hash_of(self.canonical_json())[:20])

    @classmethod
    def from_canonical(cls, text: str) -> ScheduleSpec:
        """Returns the spec of a stored text.

        Raises:
            ValidationError: The text was not stored by this or an older version. That is a bug, not an error of the input.
        """
        return cls.model_validate_json(text)
