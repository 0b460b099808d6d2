"""Rules of a target for the definition that names it: allowed modes, defaults, templates, topic and problems.

The definition of a schedule uses these rules, and so do the requests that change it. Two further strategies complete a kind of
target: `commands/fire_route.py` and `explain/target_audit.py`. A new kind adds a class to each; callers need no change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias, assert_never

from tidegate_core.language.targets.argument_templates import template_problems
from tidegate_core.language.targets.message_target import IS_PLANNED, MessageTarget, header_problems
from tidegate_core.language.targets.programs import Program, ProgramTarget
from tidegate_core.language.triggers import Trigger
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.document import LANGUAGE, PLATFORM
from tidegate_core.language.values.problems import Problem, refused
from tidegate_core.language.values.states import FOR_PROGRAMS, Backlog, OnUpdate, SuspendMode

SUSPENDS_BY_DROP: Final = Problem("mode", "is for schedules that start programs: messages wait for nothing", "use drop")
NO_BACKLOG: Final = Problem(
    "backlog", "is for schedules that start programs: messages of a suspended span are never sent", "use none"
)
NOTHING_TO_KEEP: Final = Problem(
    "on_update", "is for schedules that start programs: messages wait for nothing", "leave it out, or use restart"
)
NO_MANUAL_MESSAGES: Final = Problem(
    field="type",
    problem=f"for a schedule that sends messages is planned for {LANGUAGE}",
    hint="send the message once, with a request of type message.send",
)


class TargetRules(Protocol):
    """Rules of one target.

    Attributes:
        PRESET_DEFAULTS: Fields that the preset `cdap` fills in for this kind of target.
        makes_jobs: Whether an occurrence becomes a job: it can wait, stays over an update, is caught up from the schedule's state, and ends in
            the ledger.
        takes_event_triggers: Whether an event trigger may start the target.
        usual_catch_up: Default of `catchup.mode`.
    """

    PRESET_DEFAULTS: ClassVar[Mapping[str, str]]
    makes_jobs: ClassVar[bool]
    takes_event_triggers: ClassVar[bool]
    usual_catch_up: ClassVar[Literal["all", "last"]]

    @staticmethod
    def with_defaults(document: dict[str, Any]) -> dict[str, Any]:
        """Returns a schedule's document, not parsed yet, with the defaults of this kind of target."""
        ...

    @property
    def topic(self) -> str | None:
        """Topic to which the target writes; None if it writes to none."""
        ...

    @property
    def programs(self) -> Mapping[str, Program]:
        """Programs that runs of the target start, by the field that names each."""
        ...

    def refuse_modes(self, suspend_mode: SuspendMode, on_update: OnUpdate) -> None:
        """Refuses modes that a definition with this target may not have. Raises a validation error."""
        ...

    def problems(self, trigger: Trigger, *, overlap: str, has_constraints: bool, retries: int) -> list[Problem]:
        """Returns the problems of the target with the other parts of its definition."""
        ...

    def catch_up_problems(self, mode: str, others: Sequence[str]) -> list[Problem]:
        """Returns the problems of `catchup` fields that the target does not allow.

        Args:
            mode: Value of `catchup.mode`.
            others: Names of the other fields that differ from their defaults.
        """
        ...

    def mode_of_suspended(self, mode: str) -> str:
        """Returns the mode in which a schedule stays suspended once it has this target."""
        ...

    def suspend_problem(self, mode: str) -> Problem | None:
        """Returns why a request may not suspend the schedule in this mode."""
        ...

    def backlog_problem(self, backlog: Backlog | None) -> Problem | None:
        """Returns why a resume may not ask for this backlog."""
        ...

    def update_problem(self, how: OnUpdate) -> Problem | None:
        """Returns why an update from or to this target may not keep pending work in this way."""
        ...

    def trigger_problem(self) -> Problem | None:
        """Returns why a manual run of the schedule is not possible."""
        ...


@dataclass(frozen=True, slots=True)
class ProgramRules:
    """Rules of a target that starts a program."""

    PRESET_DEFAULTS: ClassVar[Mapping[str, str]] = {"on_update": "finish_admitted"}
    makes_jobs: ClassVar[bool] = True
    takes_event_triggers: ClassVar[bool] = True
    usual_catch_up: ClassVar[Literal["all", "last"]] = "all"

    target: ProgramTarget

    @staticmethod
    def with_defaults(document: dict[str, Any]) -> dict[str, Any]:
        return document

    @property
    def topic(self) -> str | None:
        return None

    @property
    def programs(self) -> Mapping[str, Program]:
        return {"target.program": self.target.program}

    def refuse_modes(self, suspend_mode: SuspendMode, on_update: OnUpdate) -> None:
        """Programs allow all modes."""

    def problems(self, trigger: Trigger, *, overlap: str, has_constraints: bool, retries: int) -> list[Problem]:
        return template_problems(trigger, self.target.program)

    def catch_up_problems(self, mode: str, others: Sequence[str]) -> list[Problem]:
        return []

    def mode_of_suspended(self, mode: str) -> str:
        return mode

    def suspend_problem(self, mode: str) -> Problem | None:
        return None

    def backlog_problem(self, backlog: Backlog | None) -> Problem | None:
        return None

    def update_problem(self, how: OnUpdate) -> Problem | None:
        return None

    def trigger_problem(self) -> Problem | None:
        return None


@dataclass(frozen=True, slots=True)
class MessageRules:
    """Rules of a target that sends a message.

    A fire of a recurring message writes nothing. So nothing can count fires or let them wait, and catch-up follows from outages alone.
    """

    PRESET_DEFAULTS: ClassVar[Mapping[str, str]] = {}
    makes_jobs: ClassVar[bool] = False
    takes_event_triggers: ClassVar[bool] = False
    usual_catch_up: ClassVar[Literal["all", "last"]] = "last"

    target: MessageTarget

    @staticmethod
    def with_defaults(document: dict[str, Any]) -> dict[str, Any]:
        """Deliveries never wait for each other, and after an outage the last missed message is sent."""
        wanted = document.get("catchup", {})
        catch_up = {"mode": MessageRules.usual_catch_up, **wanted} if isinstance(wanted, dict) else wanted
        return {"overlap": "allow", **document, "catchup": catch_up}

    @property
    def topic(self) -> str | None:
        return self.target.topic

    @property
    def programs(self) -> Mapping[str, Program]:
        return {}

    def refuse_modes(self, suspend_mode: SuspendMode, on_update: OnUpdate) -> None:
        if suspend_mode != "drop":
            raise refused(
                f"{suspend_mode} is for programs", field="suspend_mode", hint="messages wait for nothing: drop"
            )
        if on_update in FOR_PROGRAMS:
            raise refused(f"{on_update} is for programs", field="on_update", hint="messages wait for nothing: restart")

    def problems(self, trigger: Trigger, *, overlap: str, has_constraints: bool, retries: int) -> list[Problem]:
        planned_for = f"with a message as target {IS_PLANNED}"
        found = header_problems(self.target.headers, "target.headers")
        if not isinstance(trigger, TimeTrigger):
            hint = "use cron, every, at or times"
            found.append(Problem("trigger.type", f"an event trigger with a message as target {IS_PLANNED}", hint))
        else:
            found += [
                Problem(f"trigger.{field}", planned_for, "leave it out")
                for field in ("max_fires", "flexible")
                if getattr(trigger, field) is not None
            ]
        if has_constraints:
            found.append(Problem("constraints", planned_for, "leave them out"))
        if retries:
            hint = "leave it out: a record that the topic does not accept is always retried"
            found.append(Problem("retry", "is for programs", hint))
        if overlap != "allow":
            hint = "leave it out: deliveries do not wait for each other"
            found.append(Problem("overlap", f'other than "allow" {planned_for}', hint))
        return found

    def catch_up_problems(self, mode: str, others: Sequence[str]) -> list[Problem]:
        found = []
        if mode == "coalesce":
            hint = "use last: it carries tidegate-covered-from, -to and -count"
            found.append(Problem("catchup.mode", '"coalesce" is for programs', hint))
        problem = f"with a message as target is planned for {PLATFORM}"
        return [*found, *(Problem(f"catchup.{field}", problem, "leave it out") for field in others)]

    def mode_of_suspended(self, mode: str) -> str:
        # A schedule that was suspended by `hold` with a program would continue to send due messages.
        return "drop"

    def suspend_problem(self, mode: str) -> Problem | None:
        return None if mode == "drop" else SUSPENDS_BY_DROP

    def backlog_problem(self, backlog: Backlog | None) -> Problem | None:
        return None if backlog in (None, "none") else NO_BACKLOG

    def update_problem(self, how: OnUpdate) -> Problem | None:
        return NOTHING_TO_KEEP if how in FOR_PROGRAMS else None

    def trigger_problem(self) -> Problem | None:
        return NO_MANUAL_MESSAGES


RulesClass: TypeAlias = type[ProgramRules] | type[MessageRules]
RULES_BY_KIND: Final[Mapping[str, RulesClass]] = {"program": ProgramRules, "message": MessageRules}
"""Rules by the field `type` of a target."""


def rules_of(target: ProgramTarget | MessageTarget) -> TargetRules:
    """Returns the rules of a parsed target."""
    match target:
        case ProgramTarget():
            return ProgramRules(target)
        case MessageTarget():
            return MessageRules(target)
        case _:
            assert_never(target)


def rules_of_document(document: Any) -> RulesClass | None:
    """Returns the rules of the target in a schedule's document, or None if its kind of target is unknown."""
    target = document.get("target") if isinstance(document, dict) else None
    kind = target.get("type") if isinstance(target, dict) else None
    return RULES_BY_KIND.get(kind) if isinstance(kind, str) else None


def with_target_defaults(document: Any) -> Any:
    """Returns a schedule's document, not parsed yet, with the defaults of its target."""
    rules = rules_of_document(document)
    return document if rules is None else rules.with_defaults(document)
