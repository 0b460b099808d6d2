"""The constraint `since_last_run`: keeps a minimum time between two runs of the schedule."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from tidegate_core.language.constraints.constraint import Allow, ConstraintSpec, Hold, Verdict
from tidegate_core.language.constraints.facts import Facts, RunHistory
from tidegate_core.language.values.durations import DurationField, format_duration
from tidegate_core.language.values.instants import Instant, format_instant


class SinceLastRunConstraint(ConstraintSpec):
    """Holds a job until `at_least` has passed since the schedule's last run.

    A run counts from its admission; a run that is cancelled before its program starts does not count. With `of: finish` or
    `of: success` an open run holds the job as well, because its end is unknown.

    Attributes:
        at_least: Minimum time, 1 ms or longer.
        of: Instant of the last run that counts: its `start`, its `finish` with any outcome, or its `success`.
    """

    EXAMPLE: ClassVar = {"type": "since_last_run", "at_least": "2h", "of": "finish"}
    FIELD_HINTS: ClassVar = {
        "duration": "the field is called at_least",
        "min": "the field is called at_least",
        "since": "the field is called of",
    }

    type: Literal["since_last_run"] = "since_last_run"
    at_least: DurationField = Field(gt=0)
    of: Literal["start", "finish", "success"] = "start"

    def check(self, facts: Facts) -> Verdict:
        past = facts.past
        if self.of != "start" and past.open:
            return Hold(
                until=None,
                reason_code="still_running",
                reason=f"{past.open} runs of the schedule are still open, and the {self.of} of the last one counts",
                values={"of": self.of, "open": past.open},
            )
        last = self._last(past)
        if last is None or facts.now >= last + self.at_least:
            return Allow()
        return Hold(
            until=last + self.at_least,
            reason_code="ran_recently",
            reason=f"the last {self.of} was at {format_instant(last)}, less than {format_duration(self.at_least)} ago",
            values={"of": self.of, "last": format_instant(last), "at_least": self.at_least},
        )

    def _last(self, past: RunHistory) -> Instant | None:
        match self.of:
            case "start":
                return past.admitted[-1] if past.admitted else None
            case "finish":
                return past.finished
            case "success":
                return past.succeeded

    @property
    def admissions_remembered(self) -> int:
        # One suffices even if that admission is reversed: the run before it was at least `at_least` earlier.
        return 1

    @property
    def only_once(self) -> str | None:
        return f"counts from the last {self.of}"
