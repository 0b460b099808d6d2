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
        active: Afterwards.
        generation, version: Afterwards.
        incarnation: How many lives the name has had, this one included.
    """

    asked: Asked
    status: str
    moves: bool
    active: bool
    generation: int
    version: int
    incarnation: int

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
    exists, suspended, known, variant = False, False, False, -1
    generation = version = incarnation = 0
    for asked in life.steps:
        if asked.receipt is None:
            break
        kind, moves, status = asked.document["type"], False, "accepted"
        if kind == "schedule.apply":
            wanted = _variant(asked.document)
            if exists and variant == wanted:
                status = "unchanged"
            else:
                moves, incarnation = True, incarnation + (0 if exists else 1)
                suspended = suspended and exists
                exists, variant, version = True, wanted, version + 1
        elif not exists:
            status = "not_found"
            moves = kind == "schedule.delete" and not known
            version += 1 if moves else 0
        elif kind == "schedule.delete":
            moves, exists, suspended, version = True, False, False, version + 1
        elif kind == "schedule.suspend":
            status, moves, suspended = ("unchanged" if suspended else "accepted"), not suspended, True
        elif kind == "schedule.resume":
            status, moves, suspended = ("accepted" if suspended else "unchanged"), suspended, False
        elif suspended or life.definition.sends_messages:
            status = "rejected"
        known = True
        generation += 1 if moves else 0
        steps.append(Step(asked, status, moves, exists and not suspended, generation, version, incarnation))
    return steps


def segments_of(steps: list[Step]) -> list[Segment]:
    """Returns the spans in which the schedule was active under one generation."""
    segments: list[Segment] = []
    begin: Step | None = None
    for step in (each for each in steps if each.moves):
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
