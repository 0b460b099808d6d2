"""Expected occurrences of a schedule with a time trigger: a pure function of its generations. It uses no row that firing writes.

A generation counts from its activation to the request that ends it. Some instants may have an occurrence and need not. They came due between the
append time of that request and its application, or in a scope suspension that had not reached the shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate_core.commands.scope_commands import forgotten_before
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.explain.target_audit import audit_of
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import Instant
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import PastGeneration, ScheduleState
from tidegate_core.rows.scope_suspension import SPANS_KEPT, ScopeSuspensions
from tidegate_core.shard.schedule_state import fires, parsed


def next_instant(trigger: TimeTrigger, ref: str, after: Instant, through: Instant) -> Instant | None:
    """Returns the first instant later than `after`; None: there is none up to `through`.

    The search ends at `through`, because exclusions may leave out years.
    """
    found = trigger.seek(after, ref, Search(ahead=max(0, through - after))).found
    return None if found is None or found > through else found


def instants_between(trigger: TimeTrigger, ref: str, first: Instant, last: Instant) -> Iterator[Instant]:
    """Yields the instants from `first` to `last`, including both."""
    instant = next_instant(trigger, ref, first - 1, last)
    while instant is not None:
        yield instant
        instant = next_instant(trigger, ref, instant, last)


WALKED_MAX: Final = 1_000_000
"""Instants of one schedule that an audit walks, in some 30 s; more instants need several audits of shorter windows."""

FOLLOWED_WITHIN_MS: Final = 60_000
"""Time after which every shard follows the resume of a scope. A served shard needs 5 s, and sends no recurring message before. No row says when
a shard followed."""
TOO_MANY: Final = f"they have more than {WALKED_MAX:,} instants in it: take a shorter window"
NO_VERSION: Final = "a version of their definition is gone"
BOUNDED_AND_SUSPENDED: Final = "max_fires counts what was made, and a wide suspend lies among it"


@dataclass(frozen=True, slots=True)
class WideSuspends:
    """Scope suspensions that concern a namespace, as far as they are stored.

    Attributes:
        forgotten: Instant before which suspensions may be forgotten.
        ends: Ends of the suspensions that are over.
    """

    controls: ScopeSuspensions
    namespace: str
    forgotten: int
    ends: tuple[int, ...]

    @classmethod
    def of(cls, controls: ScopeSuspensions, namespace: str) -> WideSuspends:
        scopes = [scope for scope in controls.scopes if scope.namespace in (None, namespace)]
        begins = (scope.spans[0][0] for scope in scopes if len(scope.spans) == SPANS_KEPT)
        forgotten = max([forgotten_before(controls), *begins])
        ends = tuple(end for scope in scopes for _, end in scope.spans if end is not None)
        return cls(controls, namespace, forgotten, ends)

    def cover(self, instant: int) -> bool:
        return self.controls.suspended_until(self.namespace, instant, instant) is not None

    def may_have_dropped(self, instant: int) -> bool:
        """Whether a scope suspension may have dropped a message that was due at an instant.

        A later suspension drops messages that were not sent in time. So does an ended suspension whose end had not reached the shard.
        """
        return instant < max(
            self.forgotten, *(end + FOLLOWED_WITHIN_MS for end in self.ends), 0
        ) or self.controls.covers(self.namespace)

    def may_cover(self, instant: int) -> bool:
        """Whether a forgotten suspension may cover the instant."""
        return instant < self.forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Generation of a schedule, past or present.

    Attributes:
        fired: Whether its trigger was active.
        must_before: Instant before which every due instant has an occurrence; None: the generation has not ended.
        may_through: Instant up to which due instants may have an occurrence.
        resumed: Whether it began with a resume; the suspended span is no misfire.
        fired_before: Latest instant that earlier generations of the incarnation fired.
        fires_before: Instants that its version fired before, for `max_fires`.
        suspended_since: Begin of a scope suspension that was open at its end, as its shard knew.
        missed_by_update: Whether an update caused its catch-up; then instants in a scope suspension are no misfires.
    """

    number: int
    incarnation: str
    version: int
    fired: bool
    activated_at: int
    missed_from: int | None
    missed_until: int | None
    must_before: int | None = None
    may_through: int | None = None
    resumed: bool = False
    fired_before: int = 0
    fires_before: int = 0
    suspended_since: int | None = None
    missed_by_update: bool = False

    def due(self, instant: int) -> int:
        """Returns when an instant came due; an instant before the activation, such as a past `at`, is due at the activation."""
        return max(instant, self.activated_at)

    def outside_of_spans(self, instant: int) -> tuple[int, ...]:
        """Returns the instants that must not lie in a scope suspension, if an occurrence is expected.

        It is the instant of coming due, and after an update also the caught-up instant. Other catch-up comes due after all suspensions.
        """
        due = self.due(instant)
        if instant >= due:
            return (due,)
        if self.missed_by_update:
            return (due, instant)
        was_missed = self.missed_from is not None and instant >= self.missed_from and self.missed_until == due
        return () if was_missed else (due,)

    def ended_suspended(self, due: int) -> bool:
        """Whether it ended in a scope suspension in which an instant came due, as far as the shard knew before the resume was answered."""
        return self.suspended_since is not None and due >= self.suspended_since


@dataclass(slots=True)
class Expected:
    """Due instants of a window, by incarnation.

    Attributes:
        must: Instants that need an occurrence.
        may: Instants that may have an occurrence; `must` is a part of them.
        suspended: Instants in a scope suspension, also by the knowledge of a shard when the generation ended.
        unsure: Instants that a forgotten suspension may cover.
        unjudged: Reasons why instants are in neither.
    """

    must: dict[str, set[int]] = field(default_factory=dict)
    may: dict[str, set[int]] = field(default_factory=dict)
    suspended: set[int] = field(default_factory=set)
    unsure: set[int] = field(default_factory=set)
    unjudged: list[str] = field(default_factory=list)

    def add(self, generation: Generation, instant: int, *, wide: WideSuspends) -> None:
        due = generation.due(instant)
        outside = generation.outside_of_spans(instant)
        self.may.setdefault(generation.incarnation, set()).add(instant)
        if any(map(wide.cover, outside)) or generation.ended_suspended(due):
            self.suspended.add(instant)
        elif any(map(wide.may_cover, outside)):
            self.unsure.add(instant)
        elif generation.must_before is None or due < generation.must_before:
            self.must.setdefault(generation.incarnation, set()).add(instant)

    def add_all_of(
        self, ref: str, spec: ScheduleSpec, generation: Generation, window: Window, wide: WideSuspends
    ) -> None:
        """Adds the instants of one generation, or the reason why they cannot be known."""
        for walked, instant in enumerate(_instants(ref, spec, generation, window)):
            if walked == WALKED_MAX:
                self.unjudged.append(TOO_MANY)
                return
            is_bounded = isinstance(spec.trigger, TimeTrigger) and spec.trigger.max_fires is not None
            outside = generation.outside_of_spans(instant)
            may_be_suspended = any(wide.cover(each) or wide.may_cover(each) for each in outside)
            if is_bounded and (may_be_suspended or generation.ended_suspended(generation.due(instant))):
                self.unjudged.append(BOUNDED_AND_SUSPENDED)
                return
            if instant >= window.begin:
                self.add(generation, instant, wide=wide)


def generations_of(state: ScheduleState, past: Sequence[PastGeneration]) -> list[Generation]:
    """Returns all generations that are known, oldest first; the state's is the last."""
    found: list[Generation] = []
    before: PastGeneration | None = None
    for each in sorted(past, key=lambda each: each.generation):
        fired_before, fires_before = _made_before(before, each)
        found.append(
            Generation(
                number=each.generation,
                incarnation=each.incarnation,
                version=each.version,
                fired=each.fired,
                activated_at=each.activated_at,
                missed_from=each.missed_from,
                missed_until=each.missed_until,
                must_before=min(each.asked_at, each.ended_at),
                may_through=each.ended_at,
                resumed=_resumes(before, each),
                fired_before=fired_before,
                fires_before=fires_before,
                suspended_since=each.suspended_since,
                missed_by_update=bool(each.missed_by_update),
            )
        )
        before = each
    fired_before, fires_before = _made_before(before, state)
    present = Generation(
        number=state.generation,
        incarnation=state.incarnation,
        version=state.version,
        fired=fires(state),
        activated_at=state.activated_at,
        missed_from=state.missed_from,
        missed_until=state.missed_until,
        resumed=_resumes(before, state),
        fired_before=fired_before,
        fires_before=fires_before,
        missed_by_update=bool(state.missed_by_update),
    )
    return [*found, present]


def _made_before(before: PastGeneration | None, present: PastGeneration | ScheduleState) -> tuple[int, int]:
    if before is None or before.incarnation != present.incarnation:
        return 0, 0
    return before.fired_through, before.fires if _resumes(before, present) else 0


def _resumes(before: PastGeneration | None, present: PastGeneration | ScheduleState) -> bool:
    """Whether a generation began with a resume: only a resume activates a stopped trigger.

    Versions do not show it, because a carried version begins within a generation.
    """
    if before is None or before.incarnation != present.incarnation:
        return False
    is_firing = present.fired if isinstance(present, PastGeneration) else fires(present)
    return is_firing and not before.fired


def expected_of(
    ref: str,
    generations: Sequence[Generation],
    spec_of: Callable[[int], str | None],
    controls: ScopeSuspensions,
    window: Window,
) -> Expected:
    """Returns the expected occurrences of a schedule's generations in a window. Only time triggers have expected occurrences."""
    expected = Expected()
    wide = WideSuspends.of(controls, ref.split("/", 1)[0])
    for generation in generations:
        if not generation.fired or _ended_before(generation, window):
            continue
        text = spec_of(generation.version)
        spec = None if text is None else parsed(text)
        if spec is None:
            expected.unjudged.append(NO_VERSION)
        elif audit_of(spec).expects_ledger(spec):
            expected.add_all_of(ref, spec, generation, window, wide)
    return expected


def _ended_before(generation: Generation, window: Window) -> bool:
    return generation.may_through is not None and generation.may_through < window.begin


def _instants(ref: str, spec: ScheduleSpec, generation: Generation, window: Window) -> Iterator[int]:
    """Yields the instants of a generation up to the end of the window; with `max_fires` also those before its begin, to count them."""
    trigger = spec.trigger
    assert isinstance(trigger, TimeTrigger)
    last = window.end if generation.may_through is None else min(window.end, generation.may_through)
    left = trigger.fires_left(generation.fires_before)
    first = _first(ref, trigger, generation, last)
    if first is not None and left is None:
        first = max(first, window.begin)
    for instant in () if first is None else instants_between(trigger, ref, first, last):
        if left == 0:
            return
        yield instant
        left = None if left is None else left - 1


def _first(ref: str, trigger: TimeTrigger, generation: Generation, last: int) -> int | None:
    """Returns the first instant that counts and was not fired before; catch-up comes first."""
    activated, made = generation.activated_at, generation.fired_before
    if generation.missed_from is not None and generation.missed_until == activated:
        after = max(generation.missed_from, made + 1) - 1
    elif generation.resumed:
        after = activated - 1
    else:
        after = trigger.counts_from(activated) - 1
    return next_instant(trigger, ref, max(after, made), last)


def known_since(generations: Sequence[Generation]) -> int:
    """Returns the instant from which all generations are stored; 0: all are, from the first on."""
    oldest = generations[0]
    if oldest.number <= 1:
        return 0
    if oldest.fired:
        return oldest.activated_at
    return oldest.activated_at if oldest.may_through is None else oldest.may_through


def ref_of(state: ScheduleState) -> str:
    return keys.schedule_ref(state.namespace, state.name)
