"""What a schedule's user knows: which requests were answered how, hence when it was active, under which generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulation.users.requests import Asked
from tests.simulation.users.schedule_updates import variant_of
from tests.simulation.world.observations import UNTIL, UPSTREAM, ReceiptSeen
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS

if TYPE_CHECKING:
    from tests.simulation.users.schedule_users import Life
    from tests.simulation.world.observations import EndSeen, UpstreamSeen

SKEW_MS = 1_000
"""Twice the largest deviation of a node's clock, and some rounding."""
NEVER = 1 << 60
KEEPING = frozenset({"keep_due", "carry", "finish_admitted"})
"""Modes of an update under which what is due of a time trigger goes on under the new version."""


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
        counts_from: Where a suspension has ended by itself, or somebody resumes it behind that instant: the earliest and the latest
            instant from which on its trigger counts, whenever that was carried out.
        is_asked_for: Nobody asks for an end that comes by itself.
        until: When the suspension ends by itself that goes on afterwards.
        mode: How it is suspended afterwards; None = it is not.
        variant: Of its definition, afterwards.
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
    counts_from: tuple[int, int] | None = None
    is_asked_for: bool = True
    until: int | None = None
    mode: str | None = None
    variant: int = -1

    @property
    def takes_back(self) -> bool:
        """Whether runs before the gate become jobs again: nothing of them starts, or they go on under a new version."""
        how = self.asked.document.get("on_update", "keep_due")
        return self.parks or (self.kind == "apply" and self.moves and how == "keep_due")

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

    @property
    def first_counted(self) -> int:
        """No earlier instant of a time trigger counts."""
        return self.sent - SKEW_MS if self.counts_from is None else self.counts_from[0]

    @property
    def all_counted(self) -> int:
        """From here on all instants of a time trigger count."""
        return self.done + SKEW_MS if self.counts_from is None else self.counts_from[1]

    @property
    def heard(self) -> int:
        """Nothing earlier is heard: of what a request asks for, before its record; of what nobody asks for, before its time."""
        return self.sent if self.is_asked_for or self.counts_from is None else self.counts_from[0] - SKEW_MS


@dataclass(frozen=True, slots=True)
class Segment:
    """A span of activity: it began somewhere between `begin.heard` and `begin.done`, and ended likewise (None = never)."""

    begin: Step
    end: Step | None

    def surely(self, instant: int) -> bool:
        return self.begin.done < instant < (self.end.sent if self.end else NEVER)

    def maybe(self, instant: int) -> bool:
        return self.begin.heard <= instant <= (self.end.done if self.end else NEVER)


class _Asked(NamedTuple):
    """A request, and where nobody asked for it, but a suspension has ended by itself: which one."""

    asked: Asked
    end: EndSeen | None = None


def steps_of(
    life: Life,
    lost: Sequence[UpstreamSeen] = (),
    ended: Sequence[EndSeen] = (),
    answered: Mapping[str, int] | None = None,
) -> list[Step]:
    """Replays a user's requests on a model of a few lines: the answers have to be these.

    Args:
        life: The requests.
        lost: When the schedule lost another one that it waited for: it ended then as by a delete, or its trigger was pruned.
        ended: Suspensions that have ended by themselves.
        answered: The places of requests in the order in which the store took their answers.
    """
    steps: list[Step] = []
    model = _Model(life)
    ends = [each for each in lost if each.ended]
    requests = [asked for asked in life.steps if asked.receipt is not None]
    for asked, end in _with_resumes(_with_ends(requests, ends), ended, answered or {}):
        model.pruned = model.pruned or any(not each.ended and each.at <= asked.acked_at for each in lost)
        ended_at = model.until
        status, moves = model.end(end.until) if end is not None else model.apply(asked)
        active = model.exists and model.mode in (None, "hold")
        parks = model.exists and model.mode in {"hold", "freeze"}
        numbers = (model.generation, model.version, model.incarnation, model.kept_from)
        counts_from = None
        if moves and ended_at is not None and asked.document["type"] == "schedule.resume":
            counts_from = _counts_from(ended_at, asked, end, steps, sends_messages=life.definition.sends_messages)
        after = (model.until, model.mode, model.variant)
        steps.append(Step(asked, status, moves, active, *numbers, parks, counts_from, end is None, *after))
    return steps


def _with_resumes(requests: Iterator[Asked], ended: Sequence[EndSeen], answered: Mapping[str, int]) -> Iterator[_Asked]:
    """Yields the requests, and in their midst a resume that nobody asked for wherever a suspension ended by itself."""
    left = sorted(ended, key=lambda each: each.place)
    for asked in requests:
        while left and _is_behind(asked, left[0], answered):
            yield _as_resume(left.pop(0))
        yield _Asked(asked)
    yield from map(_as_resume, left)


def _is_behind(asked: Asked, end: EndSeen, answered: Mapping[str, int]) -> bool:
    place = answered.get(asked.id)
    return end.at < asked.appended[0] if place is None else end.place < place


def _as_resume(end: EndSeen) -> _Asked:
    document = {"id": f"{UNTIL}{end.until}", "type": "schedule.resume"}
    seen = ReceiptSeen(NEVER if end.done is None else end.done, {"status": "accepted"})
    return _Asked(Asked(document, end.at, appended=[end.at], receipt=seen), end)


def _counts_from(
    until: int, asked: Asked, end: EndSeen | None, before: Sequence[Step], *, sends_messages: bool
) -> tuple[int, int] | None:
    """As promised, whoever carries it out, but for what an update has begun anew meanwhile; of messages what is later than the grace is not
    sent (docs/schedules.md). A resume that comes before that instant counts from itself.
    """
    earliest, latest = (
        (asked.appended[0] - SKEW_MS, asked.acked_at + SKEW_MS) if end is None else (end.at, end.at + SKEW_MS)
    )
    if latest < until:
        return None
    first, last = min(until, earliest) if end is None else until, until
    changed = next((step for step in reversed(before) if step.moves), None)
    if changed is not None and changed.kind == "apply":
        first = max(first, min(changed.sent - SKEW_MS, earliest))
        last = max(last, changed.done + SKEW_MS)
    if sends_messages:
        last = max(last, latest - OUTAGE_GRACE_MS)
    return first, last


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
        until: When the suspension ends by itself.
    """

    life: Life
    exists: bool = False
    known: bool = False
    mode: str | None = None
    variant: int = -1
    generation: int = 0
    version: int = 0
    incarnation: int = 0
    kept_from: int = 0
    pruned: bool = False
    until: int | None = None

    def end(self, until: int) -> tuple[str, bool]:
        """The same of a suspension that ended by itself, if there was one that was to end then."""
        return self._resume() if self.mode is not None and self.until == until else ("unchanged", False)

    def apply(self, asked: Asked) -> tuple[str, bool]:
        """Returns the answer that the request must have, and whether it changes anything."""
        document: Any = asked.document
        answer = asked.status
        kind = document["type"].removeprefix("schedule.")
        known, self.known = self.known, True
        found = self.version if self.exists else 0
        if document.get("expected_version", found) != found:
            return self._mistaken(kind), False
        if kind == "apply":
            return self._replace(document, answer)
        if not self.exists:
            if kind == "delete" and not known:
                self.version += 1
                self._begin_anew()
            return "not_found", kind == "delete" and not known
        if kind == "delete":
            self.exists, self.mode, self.until, self.version = False, None, None, self.version + 1
            self._begin_anew()
            return "accepted", True
        if kind == "suspend":
            return self._suspend(asked, document.get("mode"))
        if kind == "resume":
            return self._resume()
        return "rejected" if self.mode is not None or self.life.definition.sends_messages else "accepted", False

    def _mistaken(self, kind: str) -> str:
        """A run is asked for of a schedule that is there, or of none."""
        return "conflict" if self.exists or kind != "trigger" else "not_found"

    def _begin_anew(self, *, keeps: bool = False) -> None:
        """A new generation; what was pending ends, or goes on beside it."""
        self.generation += 1
        self.kept_from = self.kept_from if keeps else self.generation

    def _replace(self, document: Any, answer: str) -> tuple[str, bool]:
        variant, how = variant_of(document), document.get("on_update", "keep_due")
        begins_suspended = document["spec"].get("suspended", False)
        if self.exists and self.variant == variant and not (self.pruned and answer == "accepted"):
            return "unchanged", False
        if not self.exists:
            self.incarnation += 1
            how, self.mode = "restart", "drop" if begins_suspended else None
        elif self._is_refused(variant, how, begins_suspended=begins_suspended):
            return "rejected", False
        if how != "carry":
            self._begin_anew(keeps=how == "finish_old")
        self.exists, self.variant, self.version = True, variant, self.version + 1
        return "accepted", True

    def _is_refused(self, variant: int, how: str, *, begins_suspended: bool) -> bool:
        """What is active does not begin suspended, and evidence of one trigger is not carried on to another."""
        former, new = self.life.shape(self.variant), self.life.shape(variant)
        is_active = self.mode is None and not former.suspended
        return (begins_suspended and is_active) or (how == "carry" and former.trigger != new.trigger)

    def _suspend(self, asked: Asked, mode: str | None) -> tuple[str, bool]:
        until = None if "until" not in asked.document else parse_instant(asked.document["until"])
        if self.mode is not None:
            is_same = mode in (None, self.mode) and until in (None, self.until)
            return "unchanged" if is_same else "conflict", False
        if until is not None and _has_passed(until, asked):
            return "rejected", False
        self.mode, self.until = mode or self.life.shape(self.variant).suspend_mode or "drop", until
        if self.mode != "hold":
            self._begin_anew(keeps=self.mode != "drop")
        return "accepted", True

    def _resume(self) -> tuple[str, bool]:
        if self.mode is None:
            return "unchanged", False
        if self.mode != "hold":
            self._begin_anew(keeps=True)
        self.mode = self.until = None
        return "accepted", True


def _has_passed(until: int, asked: Asked) -> bool:
    """Whether an end must be refused: by its answer, where it depends on the owner's clock."""
    if asked.appended[0] - SKEW_MS < until <= asked.acked_at + SKEW_MS:
        return asked.status == "rejected"
    return until <= asked.appended[0] - SKEW_MS


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


def stood_still(steps: Sequence[Step], begin: int, end: int) -> int:
    """Returns for how long the clocks of a schedule's time-outs may have stood still between two append times, at the longest: while it
    was held or frozen (docs/schedules.md, Suspended).
    """
    parked = ((since, over) for step, since, over in _spans(steps) if step.parks)
    return sum(max(0, min(over, end) - max(since, begin)) for since, over in parked)


def kept_evidence(steps: Sequence[Step], begin: int, end: int) -> bool:
    """Whether a suspension that discards no evidence may have gone on at some time in between: clocks stood still then, or events were ignored."""
    keeping = (
        (since, over)
        for step, since, over in _spans(steps)
        if step.parks or (step.kind, step.mode) == ("suspend", "drain")
    )
    return any(since <= end and begin <= over for since, over in keeping)


def _spans(steps: Sequence[Step]) -> Iterator[tuple[Step, int, int]]:
    """Yields each step that moves something, with when what it made of the schedule can have begun at the earliest and ended at the latest."""
    moving = [step for step in steps if step.moves]
    for step, following in zip_longest(moving, moving[1:]):
        yield step, step.sent - SKEW_MS, NEVER if following is None else following.done + SKEW_MS
