"""The automaton of evidence: which entries count, how long they hold, and what happens at the next deadline.

It knows leaves by their index and entries by their key, and nothing of the events themselves. Its state follows from the
entries in the order in which they were counted. So a new owner that reads the evidence log gets the same state.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

OnTimeout: TypeAlias = Literal["abort", "partial", "wait"]
Outcome: TypeAlias = Literal["abort", "fire", "partial", "forget"]
IsSatisfied: TypeAlias = Callable[[Sequence[int]], bool]
Moment: TypeAlias = tuple[int, int]
"""An instant by the schedule's clock and by real time. The schedule's clock stops in a suspension; then real time gives the order."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Deadlines of evidence. Durations are in ms; None is for ever.

    Attributes:
        ttls: For each leaf the time for which its entries hold, from its first entry on.
        timeout: Time from the earliest latch that holds until `on_timeout` applies.
        on_timeout: Outcome at the time-out.
        ends_at: Instant at which evidence of one day or tick ends.
        max_wait: Time from the earliest latch that holds until the evidence fires as it is.
        settle: Quiet time after which satisfied evidence fires.
        max_settle: Longest time from satisfaction until it fires.
        from_first_read: Whether the first entry of a leaf is the one that was read first, even if an older entry follows. A
            passed tick would have taken the older entry if it had been read in time. So it must not make this evidence older.
    """

    ttls: tuple[int | None, ...]
    timeout: int | None = None
    on_timeout: OnTimeout = "abort"
    ends_at: int | None = None
    max_wait: int | None = None
    settle: int | None = None
    max_settle: int | None = None
    from_first_read: bool = False


class Counted(NamedTuple):
    """One entry of evidence.

    Attributes:
        leaf: Index of the leaf.
        key: Key of the entry. A later appended entry of the same leaf and key replaces the earlier one.
        at: Append time by the schedule's clock.
        weight: Weight in the leaf's count.
        about: Data partition of the entry.
        gone: Whether the entry removes all entries of `about`.
        anew: Whether the entry replaces all entries of `about`.
        appended: Append time in real time.
    """

    leaf: int
    key: str
    at: int
    weight: int = 1
    about: str = ""
    gone: bool = False
    anew: bool = False
    appended: int = 0

    @property
    def moment(self) -> Moment:
        return self.at, self.appended


class Due(NamedTuple):
    """The next deadline: its instant and its outcome. The outcome `forget` drops the latches of `leaves`."""

    at: int
    outcome: Outcome
    leaves: tuple[int, ...] = ()


@dataclass(slots=True)
class _Latch:
    """Entries that one leaf has counted.

    Append times decide, not the order of reading. An older version replaces nothing, and an entry that is read after its
    removal stays removed.

    Attributes:
        entries: Latest version of each key. Its `at` is the time since which the key counts.
        times: Append times of the counted versions, by key, in order.
        about: Keys of the entries, by data partition.
        taken_back: Time of the last removal of a data partition's entries.
        renewed: Time and key of the last entry that replaced a data partition's entries.
        count: Sum of the weights.
        first_at: Time since which the leaf has entries without interruption; None without entries.
    """

    entries: dict[str, Counted] = field(default_factory=dict)
    times: dict[str, list[Moment]] = field(default_factory=dict)
    about: dict[str, set[str]] = field(default_factory=dict)
    taken_back: dict[str, Moment] = field(default_factory=dict)
    renewed: dict[str, tuple[Moment, str]] = field(default_factory=dict)
    count: int = 0
    first_at: int | None = None

    def copy(self) -> _Latch:
        about = {name: set(keys) for name, keys in self.about.items()}
        times = {key: list(each) for key, each in self.times.items()}
        over = dict(self.taken_back), dict(self.renewed)
        return _Latch(dict(self.entries), times, about, *over, self.count, self.first_at)

    def holds(self, about: str, moment: Moment) -> bool:
        """Whether the data partition has an entry that was appended at `moment` or before."""
        return any(self.times[key][0] <= moment for key in self.about.get(about, ()))

    def take_back(self, about: str, moment: Moment, since: Moment = (0, 0)) -> Moment:
        """Removes the versions of a data partition that were appended at `moment` or before.

        Returns:
            The earliest append time of a removed version, or `since` if nothing was removed.
        """
        gone: list[Moment] = []
        for key in sorted(self.about.get(about, ())):
            times = self.times[key]
            gone += [each for each in times if each <= moment]
            left = [each for each in times if each > moment]
            if left:
                self.times[key], self.entries[key] = left, self.entries[key]._replace(at=left[0][0])
            else:
                self._leave(self.entries.pop(key))
        if not self.entries:
            self.first_at = None
        return min(gone, default=since)

    def gone_late(self, at: int) -> None:
        """Corrects `first_at` after a late removal at `at`: if all remaining entries are younger, the leaf was empty in between."""
        first_at = min(each.at for each in self.entries.values())
        if first_at > at:
            self.first_at = first_at

    def add(self, entry: Counted, *, from_first_read: bool = False) -> None:
        """Counts a version of an entry, in addition to others or instead of them."""
        if entry.moment < self.taken_back.get(entry.about, entry.moment):
            return
        since, first_at = entry.moment, self.first_at
        if entry.anew:
            since, self.first_at = self.take_back(entry.about, entry.moment, since), first_at
        renewed_at, renewed = self.renewed.get(entry.about, (entry.moment, entry.key))
        here = self.entries.get(entry.key)
        if entry.moment < renewed_at:  # A later entry has replaced this one, and counts since this one came.
            if renewed not in self.entries:
                self.first_at = first_at if self.entries else None
                return
            self._came(renewed, since)
        elif here is None or here.about == entry.about or self.times[entry.key][-1] <= entry.moment:
            self._count(entry, here, since)
        if entry.anew and renewed_at <= entry.moment:
            self.renewed[entry.about] = entry.moment, entry.key
        if self.first_at is None:
            self.first_at = since[0]
        elif not from_first_read:  # Of entries that are read late, the oldest may be read last.
            self.first_at = min(self.first_at, since[0])

    def _came(self, key: str, since: Moment) -> None:
        insort(self.times[key], since)
        self.entries[key] = self.entries[key]._replace(at=self.times[key][0][0])

    def _count(self, entry: Counted, here: Counted | None, since: Moment) -> None:
        if here is not None and here.about != entry.about:
            self._leave(here)  # A reused id belongs to the later data partition only.
            here = None
        times = self.times.setdefault(entry.key, [])
        latest = entry if here is None or times[-1] <= entry.moment else here
        self.count += latest.weight - (0 if here is None else here.weight)
        insort(times, entry.moment)
        if since < entry.moment:
            insort(times, since)
        self.entries[entry.key] = latest._replace(at=times[0][0])
        self.about.setdefault(entry.about, set()).add(entry.key)

    def _leave(self, here: Counted) -> None:
        """Removes the last version of an entry."""
        self.count -= here.weight
        del self.times[here.key]
        keys = self.about[here.about]
        keys.discard(here.key)
        if not keys:
            del self.about[here.about]


class Latches:
    """Evidence of one job: its entries by leaf, whether it is satisfied, and its next deadline.

    Args:
        is_enough: Function of the trigger that says whether counts satisfy it. It is called for each entry.
        terms: Deadlines of the evidence.
    """

    def __init__(self, is_enough: IsSatisfied, terms: Terms) -> None:
        self._is_enough = is_enough
        self._terms = terms
        self._latches = [_Latch() for _ in terms.ttls]
        self._satisfied_at: int | None = None
        self._last_at = 0

    def copy(self) -> Latches:
        """Returns an independent copy."""
        copy = Latches(self._is_enough, self._terms)
        copy._latches = [latch.copy() for latch in self._latches]
        copy._satisfied_at = self._satisfied_at
        copy._last_at = self._last_at
        return copy

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(latch.count for latch in self._latches)

    @property
    def first_at(self) -> int | None:
        """Time of the earliest latch that holds; None without entries."""
        return min((latch.first_at for latch in self._latches if latch.first_at is not None), default=None)

    @property
    def is_satisfied(self) -> bool:
        """Whether the evidence was ever satisfied; it stays so."""
        return self._satisfied_at is not None

    @property
    def fires(self) -> bool:
        """Whether the evidence fires now: it is satisfied and has no time to settle."""
        return self.is_satisfied and self._terms.settle is None

    @property
    def last_at(self) -> int:
        """Latest append time of all counted entries, including removed ones."""
        return self._last_at

    def is_latched(self, leaf: int) -> bool:
        """Whether the leaf has an entry that holds."""
        return bool(self._latches[leaf].entries)

    def holds(self, entry: Counted) -> bool:
        """Whether the entry's data partition has older entries, which the entry can remove."""
        return self._latches[entry.leaf].holds(entry.about, entry.moment)

    def has(self, entry: Counted) -> bool:
        """Whether the entry repeats, replaces or removes a counted entry."""
        if entry.gone or entry.anew:
            return self.holds(entry)
        return entry.key in self._latches[entry.leaf].entries

    def is_stale(self, entry: Counted) -> bool:
        """Whether a late entry had expired before the latest counted entry was appended, so that the two never held together."""
        ttl = self._terms.ttls[entry.leaf]
        return ttl is not None and entry.at + ttl <= self._last_at

    def ends_amid(self, entry: Counted) -> bool:
        """Whether a deadline that the entry starts passes before the latest counted entry was appended."""
        terms = self._terms
        timeout = None if terms.on_timeout == "wait" else terms.timeout
        lengths = (terms.ttls[entry.leaf], timeout, terms.max_wait, terms.settle)
        return any(length is not None and entry.at + length <= self._last_at for length in lengths)

    def add(self, entry: Counted) -> None:
        """Counts an entry, or removes the entries of its data partition."""
        latch = self._latches[entry.leaf]
        if entry.gone:
            latch.take_back(entry.about, entry.moment)
            latch.taken_back[entry.about] = max(entry.moment, latch.taken_back.get(entry.about, entry.moment))
            if latch.entries and entry.at < self._last_at and not self._terms.from_first_read:
                latch.gone_late(entry.at)
        else:
            latch.add(entry, from_first_read=self._terms.from_first_read)
        self._last_at = max(self._last_at, entry.at)
        if not self.is_satisfied and self._is_enough(self.counts):
            self._satisfied_at = (
                self._last_at
            )  # An entry that is read late cannot satisfy before the latest entry came.

    def forget(self, leaf: int) -> None:
        """Drops the expired entries of a leaf."""
        self._latches[leaf] = _Latch(taken_back=self._latches[leaf].taken_back, renewed=self._latches[leaf].renewed)

    def due(self) -> Due | None:
        """Returns the next deadline. At the same instant, a deadline that ends the wait precedes the expiry of latches."""
        first_at, terms = self.first_at, self._terms
        if self._satisfied_at is not None:
            if terms.settle is None:
                return None
            assert terms.max_settle is not None
            latest = self._satisfied_at + terms.max_settle
            return Due(min(latest, self._last_at + terms.settle), "fire")
        if first_at is None:
            return None
        found: list[Due] = []
        if terms.ends_at is not None:
            found.append(Due(terms.ends_at, "partial" if terms.on_timeout == "partial" else "abort"))
        if terms.timeout is not None and terms.on_timeout != "wait":
            found.append(Due(first_at + terms.timeout, terms.on_timeout))
        if terms.max_wait is not None:
            found.append(Due(first_at + terms.max_wait, "fire"))
        return min([*found, *self._expiries()], key=lambda due: due.at, default=None)

    def _expiries(self) -> list[Due]:
        ends: dict[int, list[int]] = {}
        for place, (latch, ttl) in enumerate(zip(self._latches, self._terms.ttls, strict=True)):
            if latch.first_at is not None and ttl is not None:
                ends.setdefault(latch.first_at + ttl, []).append(place)
        return [Due(at, "forget", tuple(places)) for at, places in ends.items()]
