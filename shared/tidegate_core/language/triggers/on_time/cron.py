"""The trigger `cron`: fires at the wall-clock times that a cron expression names in a zone."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, Strict, model_validator

from tidegate_core.language.time.cron_fields import CronFields, DayRule, parse_cron, smallest_gap_seconds
from tidegate_core.language.time.cron_items import CronError, Dialect, is_hashed
from tidegate_core.language.time.cron_text import with_zone_of_expression
from tidegate_core.language.time.wall_clock import WallClock
from tidegate_core.language.time.zones import ZoneName, zone_named
from tidegate_core.language.triggers.exclusions import minutes_named
from tidegate_core.language.triggers.on_time.wall_clock_trigger import WallClockTrigger
from tidegate_core.language.triggers.search import minutes_named_on
from tidegate_core.language.values.durations import Duration
from tidegate_core.language.values.problems import refused

EVERY_MACRO = "@every "


class CronTrigger(WallClockTrigger):
    """Fires at the times of `expression` on the wall clock of `zone`.

    Attributes:
        expression: Expression of at most 256 characters: five fields, six with `dialect: unix6`, six or seven with
            `dialect: quartz`, or a macro such as `@daily`. In the unix dialects `H` is a stable hash of the schedule's id.
        zone: Zone by IANA name or fixed offset; `CRON_TZ=` before the expression means the same.
        dialect: Dialect `unix5` (minute first), `unix6` (second first) or `quartz` (second first, weekdays from 1). It is
            never guessed.
        day_rule: Rule for two restricted day fields: both must match (`and`) or one (`or`); by default Vixie cron's rule.
    """

    FIELD_HINTS: ClassVar = {
        **WallClockTrigger.FIELD_HINTS,
        **dict.fromkeys(("cron", "schedule"), "the field is called expression"),
    }
    EXAMPLE: ClassVar = {"type": "cron", "expression": "0 6 * * mon-fri", "zone": "Europe/Rome"}

    type: Literal["cron"] = "cron"
    expression: Annotated[str, Strict()]
    zone: ZoneName = "UTC"
    dialect: Dialect = Field(default="unix5")
    day_rule: DayRule | None = None

    @model_validator(mode="before")
    @classmethod
    def _own_zone(cls, given: Any) -> Any:
        return with_zone_of_expression(given)

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.is_every_macro:
            return self  # The union of all triggers converts this macro to the trigger `every`.
        try:
            fields = parse_cron(self.expression, self.dialect, self.day_rule)
        except CronError as error:
            shown = self.expression[:64]
            raise refused(f'"{shown}" {error.problem}', hint=error.hint, field="expression") from error
        for field in ("dst_gap", "dst_overlap"):
            if fields.real_cadence and getattr(self, field) is not None:
                hint = "leave it out: such an expression follows real time through clock changes"
                raise refused("has no meaning for an hour field that begins with *", field=field, hint=hint)
        return self

    @property
    def is_every_macro(self) -> bool:
        return self.expression.startswith(EVERY_MACRO)

    def reading(self) -> str:
        fields = parse_cron(self.expression, self.dialect, self.day_rule)
        read = [f"dialect {self.dialect}, zone {self.zone}"]
        if self.dialect != "quartz" and len(fields.days_of_month) < 31 and len(fields.days_of_week) < 7:
            which = "either day field suffices" if fields.either_day else "both day fields have to fit"
            read.append(f"{which} (day_rule: {'or' if fields.either_day else 'and'})")
        read.append("real cadence through clock changes" if fields.real_cadence else self._clock_changes())
        return "; ".join(read)

    def _clock_changes(self) -> str:
        policy = self.dst_policy
        return f"fixed times: dst_gap {policy.gap}, dst_overlap {policy.overlap}"

    @property
    def own_zone(self) -> str:
        return self.zone

    def wall_clock(self, identity: str) -> WallClock:
        return WallClock(self._fields(identity), zone_named(self.zone), self.dst_policy)

    def minutes_of(self, day: int, identity: str) -> int:
        fields = self._fields(identity)
        named = minutes_named(self.expression, self.dialect, self.day_rule, self._known(identity))
        return minutes_named_on(zone_named(self.zone), day, lambda local: named if fields.names_day(local) else 0)

    def smallest_gap_ms(self, identity: str = "") -> Duration | None:
        return smallest_gap_seconds(self._fields(identity)) * 1000

    def _fields(self, identity: str) -> CronFields:
        return parse_cron(self.expression, self.dialect, self.day_rule, self._known(identity))

    def _known(self, identity: str) -> str:
        return identity if is_hashed(self.expression) else ""
