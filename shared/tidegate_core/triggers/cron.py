"""Trigger on a calendar: fires at the wall-clock times that a cron expression names in a zone."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, Strict, model_validator

from tidegate_core.model.durations import Duration
from tidegate_core.model.instants import Instant
from tidegate_core.model.planned import LANGUAGE, planned
from tidegate_core.model.problems import refused
from tidegate_core.time.cron_fields import CronFields, DayRule, parse_cron, smallest_gap_seconds
from tidegate_core.time.cron_text import CronError, Dialect
from tidegate_core.time.wall_clock import next_fire, previous_fire
from tidegate_core.time.zones import ZoneName, zone_named
from tidegate_core.triggers.base import PLANNED_FOR_TIME, TimeTrigger

EVERY_MACRO = "@every "


class CronTrigger(TimeTrigger):
    """Fires at the times of `expression` on the wall clock of `zone`.

    Attributes:
        expression: Five fields, six with `dialect: unix6`, or a macro such as `@daily`; at most 256 characters.
        zone: IANA name or fixed offset.
        dialect: `unix5` (minute first) or `unix6` (second first); never guessed.
        day_rule: Whether both day fields have to fit or one; by default Vixie cron's rule.
    """

    EXAMPLE: ClassVar = {"type": "cron", "expression": "0 6 * * mon-fri", "zone": "Europe/Rome"}
    PLANNED_FIELDS: ClassVar = {**PLANNED_FOR_TIME, **planned(LANGUAGE, "gap", "overlap", "dst")}
    PLANNED_VALUES: ClassVar = {"dialect": planned(LANGUAGE, "quartz", hint="use unix5 or unix6")}

    type: Literal["cron"] = "cron"
    expression: Annotated[str, Strict()]
    zone: ZoneName = "UTC"
    dialect: Dialect = Field(default="unix5")
    day_rule: DayRule | None = None

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.is_every_macro:
            return self  # The union of all triggers reads the rest, and takes it as what it is.
        try:
            parse_cron(self.expression, self.dialect, self.day_rule)
        except CronError as error:
            shown = self.expression[:64]
            raise refused(f'"{shown}" {error.problem}', hint=error.hint, field="expression") from error
        return self

    @property
    def is_every_macro(self) -> bool:
        return self.expression.startswith(EVERY_MACRO)

    def smallest_gap_ms(self) -> Duration | None:
        return smallest_gap_seconds(self._fields()) * 1000

    def _following(self, after: Instant, identity: str) -> Instant | None:
        return next_fire(self._fields(), zone_named(self.zone), after)

    def _preceding(self, before: Instant) -> Instant | None:
        return previous_fire(self._fields(), zone_named(self.zone), before)

    def _fields(self) -> CronFields:
        return parse_cron(self.expression, self.dialect, self.day_rule)
