"""Builds a schedule step by step, like CDAP's builders, in tidegate's language.

    spec = (
        ScheduleBuilder("flights", "join-day") .starts(pyspark("/jobs/join.py", args=["--day", "${correlation}"]))
        .triggered_by(all_of(on_data("flights.raw"), on_data("weather.raw"), correlate="data_partition"))
        .with_max_concurrent_runs(3, scope="program").abort_if_not_met() .with_time_window("22:00", "06:00",
        zone="Europe/Rome").wait_until_met() .with_timeout("12h") .build()
    ) client.apply_schedule(spec)

Builders are values: each call returns a new one, so one builder can start several others. `build` returns the same
document that YAML would hold, after the parser for YAML has checked it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypedDict, Unpack

from tidegate_client.errors import InvalidRequest
from tidegate_client.http_transport import json_of
from tidegate_client.spec_helpers import Duration, Part, TimeOfDay, part, written
from tidegate_client.views import FieldProblem
from tidegate_core.language.values.problems import InvalidInput

OnUnmet = Literal["wait", "abort"]


class Policies(TypedDict, total=False):
    """Fields of the schedule itself (`docs/schedules.md`); none of them is a constraint or an instant."""

    overlap: Literal["queue", "allow", "skip", "keep_latest", "coalesce", "cancel_running"]
    max_pending: int
    on_overflow: Literal["coalesce", "reject"]
    priority: Literal["highest", "high", "medium", "low", "lowest"]
    catchup: Mapping[str, Any]
    retry: Mapping[str, Any]
    suspended: bool
    suspend_mode: Literal["drop", "drain", "hold", "freeze"]
    on_update: Literal["keep_due", "restart", "carry", "finish_old", "finish_admitted"]
    preset: Literal["cdap"]
    labels: Mapping[str, str]


@dataclass(frozen=True)
class ScheduleBuilder:
    """A schedule under construction.

    Attributes:
        namespace, name: Identity of the schedule.
        fields: Fields so far, as in a document.
        constraints: Constraints so far, in order.
    """

    namespace: str
    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    constraints: tuple[Part, ...] = ()

    # -- what, and when -------------------------------------------------------------------------------------------------

    def starts(self, program: Part) -> Self:
        """Sets the program to run: `pyspark(...)` or `python(...)`."""
        return self._with(target={"type": "program", "program": program})

    def sends(self, topic: str, **message: Any) -> Self:
        """Sets a message to send at the times of a time trigger: one of `payload`, `payload_text`, `payload_base64`,
        and more.
        """
        # Without `part`: a payload may be null, and its fields may hold any value.
        return self._with(target={"type": "message", "topic": topic, **message})

    def triggered_by(self, trigger: Part) -> Self:
        """Sets the trigger: one of the triggers of `tidegate_client`, or its mapping."""
        return self._with(trigger=trigger)

    # -- constraints ----------------------------------------------------------------------------------------------------

    def with_max_concurrent_runs(
        self,
        most: int,
        *,
        scope: Literal["schedule", "program", "group", "key"] | None = None,
        group: str | None = None,
        key: str | None = None,
    ) -> ConstrainedBuilder:
        """Limits the open runs: of the schedule, of its program, of a group, or under a key."""
        return self._and(part("concurrency", max=most, scope=scope, group=group, key=key))

    def with_delay(self, after: Duration) -> ConstrainedBuilder:
        """Delays the run by this time after its trigger was satisfied."""
        return self._and(part("delay", after=after))

    def with_time_window(
        self,
        opens: TimeOfDay,
        closes: TimeOfDay,
        *,
        zone: str | None = None,
        days: str | list[str] | None = None,
    ) -> ConstrainedBuilder:
        """Permits runs from `opens` until before `closes`; spans midnight if `closes` is earlier."""
        return self._and(part("time_window", opens=opens, closes=closes, zone=zone, days=days))

    def with_duration_since_last_run(
        self, at_least: Duration, *, of: Literal["start", "finish", "success"] | None = None
    ) -> ConstrainedBuilder:
        """Requires this time since the last run's start, finish or success."""
        return self._and(part("since_last_run", at_least=at_least, of=of))

    def with_rate(
        self,
        most: int,
        per: Duration,
        *,
        window: Literal["sliding", "calendar"] | None = None,
        zone: str | None = None,
    ) -> ConstrainedBuilder:
        """Limits the runs per time."""
        return self._and(part("rate", max=most, per=per, window=window, zone=zone))

    def with_constraint(self, kind: str, /, **fields: Any) -> ConstrainedBuilder:
        """Adds any constraint by its fields, such as `load`, or a `time_window` with several `windows`."""
        return self._and(part(kind, **fields))

    def with_timeout(self, after: Duration, action: Literal["abort", "force", "alert"] | None = None) -> Self:
        """Sets how long a satisfied job waits for its constraints, and the action after that."""
        said = {} if action is None else {"pending_timeout_action": action}
        return self._with(pending_timeout=written(after), **said)

    # -- policies -------------------------------------------------------------------------------------------------------

    def with_policies(self, **policies: Unpack[Policies]) -> Self:
        """Sets policies: overlap, priority, catch-up, retries and others."""
        return self._with(**written(policies))

    # -- the end --------------------------------------------------------------------------------------------------------

    def build(self) -> dict[str, Any]:
        """Returns the document.

        Raises:
            InvalidRequest: The schedule is invalid; holds all problems by field, as for YAML. Or a value has no form in
                JSON.
        """
        # Imported here: the language with all its kinds loads slowly, and a client that only reads does not need it.
        from tidegate_core.language.formats.parsing import parse_schedule

        # A copy, so that changes to it reach neither the builder nor its parts.
        document: dict[str, Any] = deepcopy(
            {
                "kind": "schedule",
                "namespace": self.namespace,
                "name": self.name,
                **self.fields,
                **({"constraints": list(self.constraints)} if self.constraints else {}),
            }
        )
        try:
            parse_schedule(document)
        except InvalidInput as refusal:
            problems = [
                FieldProblem(field=each.field, problem=each.problem, hint=each.hint) for each in refusal.problems
            ]
            raise InvalidRequest(f"schedule {self.namespace}/{self.name}: {refusal}", problems) from refusal
        # The parser accepts any list or text; a document must also be valid JSON.
        json_of(document)
        return document

    def _with(self, **said: Any) -> Self:
        return replace(self, fields={**self.fields, **said})

    def _and(self, constraint: Part) -> ConstrainedBuilder:
        return ConstrainedBuilder(self.namespace, self.name, self.fields, (*self.constraints, constraint))


class ConstrainedBuilder(ScheduleBuilder):
    """A builder whose last call added a constraint; its methods set the reaction to that constraint while it is not
    met.

    By default the schedule's preset decides: tidegate waits.
    """

    def wait_until_met(self) -> ScheduleBuilder:
        """Makes a job wait until the constraint is met."""
        return self._while_unmet("wait")

    def abort_if_not_met(self) -> ScheduleBuilder:
        """Ends a job at once if the constraint is not met."""
        return self._while_unmet("abort")

    def _while_unmet(self, word: OnUnmet) -> ScheduleBuilder:
        *others, last = self.constraints
        return ScheduleBuilder(self.namespace, self.name, self.fields, (*others, {**last, "on_unmet": word}))
