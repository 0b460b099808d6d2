"""What a schedule's user knows: which requests were answered how, hence when it was active, under which generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate_testkit.simulation.requests import Asked
    from tidegate_testkit.simulation.schedules import Life

SKEW_MS = 1_000
"""Twice the largest deviation of a node's clock, and some rounding."""
NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Step:
    """One answered request on a schedule, with what it must have made of it.

    Attributes:
        status: What the answer must be.
        moves: Whether it changes what is active.
        active: Afterwards: whether its trigger goes on, though what it makes may be parked.
        generation, version: Afterwards.
        kept_from: The oldest generation whose jobs may still start afterwards.
        parks: Whether nothing at all starts afterwards, until the next request.
        incarnation: How many lives the name has had, this one included.
    """

    asked: Asked
    status: str
    moves: bool
    active: bool
    generation: int
    version: int
    incarnation: int
    kept_from: int = 0
    parks: bool = False

    @property
    def kind(self) -> str:
        return str(self.asked.document["type"]).removeprefix("schedule.")

    @property
    def sent(self) -> int:
        """Nothing of it can have happened before its first record was there."""
        return self.asked.appended[0]

    @property
    def done(self) -> int:
        """All of it has happened before its receipt was there."""
        return self.asked.acked_at


@dataclass(frozen=True, slots=True)
class Segment:
    """A span of activity: it began somewhere between `begin.sent` and `begin.done`, and ended likewise (None = never)."""

    begin: Step
    end: Step | None

    def surely(self, instant: int) -> bool:
        return self.begin.done < instant < (self.end.sent if self.end else NEVER)

    def maybe(self, instant: int) -> bool:
        return self.begin.sent <= instant <= (self.end.done if self.end else NEVER)


def steps_of(life: Life) -> list[Step]:
    """Replays a user's requests on a model of a few lines: the answers have to be these."""
    steps: list[Step] = []
    model = _Model(sends_messages=life.definition.sends_messages)
    for asked in life.steps:
        if asked.receipt is None:
            break
        status, moves = model.apply(asked.document)
        active = model.exists and model.mode in (None, "hold")
        parks = model.exists and model.mode in {"hold", "freeze"}
        numbers = (model.generation, model.version, model.incarnation, model.kept_from)
        steps.append(Step(asked, status, moves, active, *numbers, parks))
    return steps


@dataclass(slots=True)
class _Model:
    """A schedule, as its user knows it.

    Attributes:
        mode: How it is suspended; None = it is not.
    """

    sends_messages: bool
    exists: bool = False
    known: bool = False
    mode: str | None = None
    variant: int = -1
    generation: int = 0
    version: int = 0
    incarnation: int = 0
    kept_from: int = 0

    def apply(self, document: Any) -> tuple[str, bool]:
        """Returns the answer that the request must have, and whether it changes anything."""
        kind = document["type"].removeprefix("schedule.")
        known, self.known = self.known, True
        if kind == "apply":
            return self._replace(_variant(document), document.get("on_update", "restart"))
        if not self.exists:
            if kind == "delete" and not known:
                self.version += 1
                self._begin_anew()
            return "not_found", kind == "delete" and not known
        if kind == "delete":
            self.exists, self.mode, self.version = False, None, self.version + 1
            self._begin_anew()
            return "accepted", True
        if kind == "suspend":
            return self._suspend(document.get("mode", "drop"))
        if kind == "resume":
            return self._resume()
        return "rejected" if self.mode is not None or self.sends_messages else "accepted", False

    def _begin_anew(self, *, keeps: bool = False) -> None:
        """A new generation; what was pending ends, or goes on beside it."""
        self.generation += 1
        self.kept_from = self.kept_from if keeps else self.generation

    def _replace(self, variant: int, how: str) -> tuple[str, bool]:
        if self.exists and self.variant == variant:
            return "unchanged", False
        if not self.exists:
            self.incarnation += 1
            how = "restart"
        if how != "carry":
            self._begin_anew(keeps=how == "finish_old")
        self.exists, self.variant, self.version = True, variant, self.version + 1
        return "accepted", True

    def _suspend(self, mode: str) -> tuple[str, bool]:
        if self.mode is not None:
            return "unchanged" if mode == self.mode else "conflict", False
        self.mode = mode
        if mode != "hold":
            self._begin_anew(keeps=mode != "drop")
        return "accepted", True

    def _resume(self) -> tuple[str, bool]:
        if self.mode is None:
            return "unchanged", False
        if self.mode != "hold":
            self._begin_anew(keeps=True)
        self.mode = None
        return "accepted", True


def segments_of(steps: list[Step]) -> list[Segment]:
    """Returns the spans in which the schedule's trigger went on under one generation."""
    segments: list[Segment] = []
    begin: Step | None = None
    for step in (each for each in steps if each.moves):
        if begin is not None and step.active and step.generation == begin.generation:
            continue  # It is held, resumed or carried on: nothing that is counted or made ends.
        if begin is not None:
            segments.append(Segment(begin, step))
        begin = step if step.active else None
    if begin is not None:
        segments.append(Segment(begin, None))
    return segments


def _variant(document: Any) -> int:
    target = document["spec"]["target"]
    if target["type"] == "message":
        return int(target["payload_text"].split("/")[1])
    return int(target["program"]["args"][0].removeprefix("variant="))
