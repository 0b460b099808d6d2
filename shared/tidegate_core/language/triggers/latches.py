"""The automaton of evidence: what was counted, how long it holds, and what its next deadline makes of it (SEMANTICS 6.2).

Pure and blind to what the events are: it knows leaves by their place and entries by their key. All of its state follows from
the entries in the order in which they were counted, so whoever reads them back is where the one before was.
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
"""By the schedule's clock, and by the world's: amid a suspension, in which the first stands still, the second says what came before what."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How long evidence may wait, and for what; durations in ms, None is for ever.

    Attributes:
        ttls: Per leaf: how long what it counted holds, from its first entry on.
        timeout: From the earliest latch that holds; what happens then is `on_timeout`.
        ends_at: No later than this instant; of evidence that belongs to a day.
        max_wait: From the earliest latch that holds; then it fires with what is there.
        settle: Satisfied, it fires when nothing has come for so long,
        max_settle: and at the latest so long after it was satisfied.
        from_first_read: A leaf's first entry is the one that was read first, whatever came before it: a tick that has passed would have
            taken that one, had it been read in time, and what is here it does not make older.
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
    """One entry as the automaton sees it.

    Attributes:
        leaf: Place of the leaf.
        key: Entries of a leaf with the same key are one, the one that was appended later replaces the earlier.
        at: Append time, by the schedule's clock.
        weight: How much it counts.
        about: The data partition that it speaks of.
        gone: All that `about` counted as is taken back, and nothing comes instead.
        anew: All that `about` counted as is taken back, and this comes instead.
        appended: Append time by the clock of the world.
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
    """The next deadline: when, and what it does. `forget` drops the latches of `leaves`."""

    at: int
    outcome: Outcome
    leaves: tuple[int, ...] = ()


@dataclass(slots=True)
class _Latch:
    """What one leaf has counted: by its key, and the keys by what they speak of.

    Append times decide, not the order of reading: an older version of what is here replaces nothing, and what is known to have been taken back
    before it was read stays so.

    Attributes:
        entries: The latest version of each key, with the time since which something of it is here.
        times: When each of its versions came that are here, in order.
        taken_back: When what a data partition counted as was taken back last,
        renewed: and what came instead of it last: when, and as which key.
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
        """Whether something of it is here that came by then."""
        return any(self.times[key][0] <= moment for key in self.about.get(about, ()))

    def take_back(self, about: str, moment: Moment, since: Moment = (0, 0)) -> Moment:
        """Takes back what of it had come by then; returns since when that was here, `since` where nothing was."""
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
        """Something was taken back then. Where all that is left came after that, nothing was here in between."""
        first_at = min(each.at for each in self.entries.values())
        if first_at > at:
            self.first_at = first_at

    def add(self, entry: Counted, *, from_first_read: bool = False) -> None:
        """Counts a version: beside what is here, or instead of it."""
        if entry.moment < self.taken_back.get(entry.about, entry.moment):
            return
        since, first_at = entry.moment, self.first_at
        if entry.anew:
            since, self.first_at = self.take_back(entry.about, entry.moment, since), first_at
        renewed_at, renewed = self.renewed.get(entry.about, (entry.moment, entry.key))
        here = self.entries.get(entry.key)
        if entry.moment < renewed_at:  # What came instead of it has been here since then.
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
        elif not from_first_read:  # Of what was read late the first may come last.
            self.first_at = min(self.first_at, since[0])

    def _came(self, key: str, since: Moment) -> None:
        insort(self.times[key], since)
        self.entries[key] = self.entries[key]._replace(at=self.times[key][0][0])

    def _count(self, entry: Counted, here: Counted | None, since: Moment) -> None:
        if here is not None and here.about != entry.about:
            self._leave(here)  # An id that was used again speaks of the later data partition alone.
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
        """Nothing of it is here any more."""
        self.count -= here.weight
        del self.times[here.key]
        keys = self.about[here.about]
        keys.discard(here.key)
        if not keys:
            del self.about[here.about]


class Latches:
    """What was counted for one job.

    Args:
        is_enough: The trigger's own question, whether such counts satisfy it; it is asked for each entry that is read back.
        terms: Its deadlines.
    """

    def __init__(self, is_enough: IsSatisfied, terms: Terms) -> None:
        self._is_enough = is_enough
        self._terms = terms
        self._latches = [_Latch() for _ in terms.ttls]
        self._satisfied_at: int | None = None
        self._last_at = 0

    def copy(self) -> Latches:
        """Returns another one that has counted the same."""
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
        """The earliest latch that holds; None when nothing is there."""
        return min((latch.first_at for latch in self._latches if latch.first_at is not None), default=None)

    @property
    def is_satisfied(self) -> bool:
        """Once satisfied it stays so."""
        return self._satisfied_at is not None

    @property
    def fires(self) -> bool:
        """Whether there is nothing to wait for any more."""
        return self.is_satisfied and self._terms.settle is None

    @property
    def last_at(self) -> int:
        """When the last of all that was counted came, be it still here or not."""
        return self._last_at

    def is_latched(self, leaf: int) -> bool:
        """Whether something that the leaf has counted holds."""
        return bool(self._latches[leaf].entries)

    def holds(self, entry: Counted) -> bool:
        """Whether something about the entry's data partition is here, to be taken back: what came later is not."""
        return self._latches[entry.leaf].holds(entry.about, entry.moment)

    def has(self, entry: Counted) -> bool:
        """Whether the entry repeats, replaces or takes back something that is here."""
        if entry.gone or entry.anew:
            return self.holds(entry)
        return entry.key in self._latches[entry.leaf].entries

    def is_stale(self, entry: Counted) -> bool:
        """Whether an entry that was read late had ceased to hold before the last of what is here came: they would be no pair."""
        ttl = self._terms.ttls[entry.leaf]
        return ttl is not None and entry.at + ttl <= self._last_at

    def ends_amid(self, entry: Counted) -> bool:
        """Whether a deadline that counts from an entry lies before the last of what is here."""
        terms = self._terms
        timeout = None if terms.on_timeout == "wait" else terms.timeout
        lengths = (terms.ttls[entry.leaf], timeout, terms.max_wait, terms.settle)
        return any(length is not None and entry.at + length <= self._last_at for length in lengths)

    def add(self, entry: Counted) -> None:
        """Counts an entry, or takes back what it says is gone."""
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
            self._satisfied_at = self._last_at  # Not before all of it had come, be it read late.

    def forget(self, leaf: int) -> None:
        """Drops what a leaf has counted: it holds no longer."""
        self._latches[leaf] = _Latch(taken_back=self._latches[leaf].taken_back, renewed=self._latches[leaf].renewed)

    def due(self) -> Due | None:
        """Returns the next deadline. Of several at one instant: what ends the wait before what only shortens it."""
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
