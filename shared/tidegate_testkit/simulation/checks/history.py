"""What a schedule's user knows: which requests were answered how, hence when it was active, under which generation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate_testkit.simulation.record import UPSTREAM, ReceiptSeen
from tidegate_testkit.simulation.requests import Asked

if TYPE_CHECKING:
    from tidegate_testkit.simulation.record import UpstreamSeen
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


def steps_of(life: Life, lost: Sequence[UpstreamSeen] = ()) -> list[Step]:
    """Replays a user's requests on a model of a few lines: the answers have to be these.

    Args:
        life: The requests.
        lost: When the schedule lost another one that it waited for: it ended then as by a delete, or its trigger was pruned.
    """
    steps: list[Step] = []
    model = _Model(sends_messages=life.definition.sends_messages)
    ends = [each for each in lost if each.ended]
    answered = [asked for asked in life.steps if asked.receipt is not None]
    for asked in _with_ends(answered, ends):
        model.pruned = model.pruned or any(not each.ended and each.at <= asked.acked_at for each in lost)
        status, moves = model.apply(asked.document, asked.status)
        active = model.exists and model.mode in (None, "hold")
        parks = model.exists and model.mode in {"hold", "freeze"}
        numbers = (model.generation, model.version, model.incarnation, model.kept_from)
        steps.append(Step(asked, status, moves, active, *numbers, parks))
    return steps


def _with_ends(answered: list[Asked], ends: list[UpstreamSeen]) -> Iterator[Asked]:
    """Yields the requests, and in their midst a delete that nobody asked for wherever the schedule ended by itself."""
    left = list(ends)
    for asked in answered:
        while left and _came_after(asked, left[0]):
            yield _as_delete(left.pop(0))
        yield asked
    yield from map(_as_delete, left)


def _came_after(asked: Asked, end: UpstreamSeen) -> bool:
    """Versions tell, tombstones included; a run asked for by hand says none, and is accepted or not."""
    assert asked.receipt is not None
    version = asked.receipt.body.get("version")
    return asked.status == "not_found" if version is None else bool(version >= end.version)


def _as_delete(end: UpstreamSeen) -> Asked:
    document = {"id": f"{UPSTREAM}{end.upstream}", "type": "schedule.delete"}
    seen = ReceiptSeen(NEVER if end.done is None else end.done, {"status": "accepted", "running": end.running})
    return Asked(document, end.at, appended=[end.at], receipt=seen)


@dataclass(slots=True)
class _Model:
    """A schedule, as its user knows it.

    Attributes:
        mode: How it is suspended; None = it is not.
        pruned: Its trigger may do without something that was deleted: to apply it again is a change then.
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
    pruned: bool = False

    def apply(self, document: Any, answer: str) -> tuple[str, bool]:
        """Returns the answer that the request must have, and whether it changes anything."""
        kind = document["type"].removeprefix("schedule.")
        known, self.known = self.known, True
        if kind == "apply":
            return self._replace(_variant(document), document.get("on_update", "restart"), answer)
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

    def _replace(self, variant: int, how: str, answer: str) -> tuple[str, bool]:
        if self.exists and self.variant == variant and not (self.pruned and answer == "accepted"):
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
