"""Places events that were read after later ones of another topic partition; the result is the same as in time.

The automaton runs again over late and present entries in the order of their append times. Late entries that were over
before the latest present entry form pieces of their own. Late entries that would still be present, or would have
fired with present ones, join them. Present entries stay, even if an ended latch would have removed them: each entry
is in one piece of evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from tidegate_core.language.triggers.latches import Counted, Due, Latches
from tidegate_core.shard.events.evidence_log import Entry, counted_of, is_of_a_tick, moment_of

Opens: TypeAlias = Callable[[Entry], Latches]
"""Returns the automaton of evidence that an entry opens."""


@dataclass(slots=True)
class LateEntries:
    """The places of late entries, each list in the order of append times.

    Attributes:
        apart: Pieces that were over without present entries.
        joining: Entries that join the present ones.
    """

    apart: list[list[Entry]] = field(default_factory=list)
    joining: list[Entry] = field(default_factory=list)


def place_late_entries(opens: Opens, here: Iterable[Entry], late: list[Entry], last_at: int) -> LateEntries:
    """Returns the places of late entries relative to the present entries of open evidence, the last of which came at
    `last_at`.
    """
    walk = _Walk(opens)
    places = [*((entry, False) for entry in here), *((entry, True) for entry in late)]
    for entry, is_late in sorted(places, key=lambda place: moment_of(place[0])):
        walk.add(entry, is_late=is_late)
    return walk.found_by(last_at)


class _Walk:
    """The automaton over all entries in order.

    `_piece` holds the late entries of the open evidence, and `_over` those that were forgotten since. `_meets` is
    True when the open evidence has a present entry.
    """

    def __init__(self, opens: Opens) -> None:
        self._found = LateEntries()
        self._opens = opens
        self._latches: Latches | None = None
        self._piece: list[Entry] = []
        self._over: list[Entry] = []
        self._meets = False
        self._has_fired = False
        self._here: set[tuple[int, str]] = set()

    def add(self, entry: Entry, *, is_late: bool) -> None:
        counted = counted_of(entry)
        if not is_late:
            self._here.add((counted.leaf, counted.about))
        if not self._has_fired:
            self._pass_time(counted.at)
        if self._has_fired:
            self._found.joining += [entry] if is_late else []
            return
        if self._latches is None:
            self._latches = self._opens(entry)
        if is_late:
            # A withdrawal removes the entry from the present ones and from this evidence; without an entry to
            # withdraw it has no effect.
            if counted.gone and (self._meets or (counted.leaf, counted.about) in self._here):
                self._found.joining.append(entry)
            self._piece.append(entry)
        self._meets |= not is_late
        if not self._says_nothing(entry, counted):
            self._latches.add(counted)
        if self._latches.fires:
            self._conclude(fires=True)
        elif self._latches.first_at is None and not self._latches.is_satisfied:
            self._end(joins=self._meets)

    def found_by(self, last_at: int) -> LateEntries:
        """Returns the places; evidence that is open at the end is the present one."""
        if not self._has_fired:
            self._pass_time(last_at)
            self._join()
        self._found.joining.sort(key=moment_of)
        return self._found

    def _says_nothing(self, entry: Entry, counted: Counted) -> bool:
        assert self._latches is not None
        if is_of_a_tick(entry):
            return self._latches.is_latched(counted.leaf)
        return counted.gone and not self._latches.holds(counted)

    def _pass_time(self, at: int) -> None:
        while self._latches is not None and not self._has_fired:
            due = self._latches.due()
            if due is None or due.at > at:
                return
            if due.outcome != "forget":
                self._conclude(fires=due.outcome != "abort")
            else:
                self._forget(self._latches, due)

    def _forget(self, latches: Latches, due: Due) -> None:
        for leaf in due.leaves:
            latches.forget(leaf)
        self._over += [entry for entry in self._piece if entry["leaf"] in due.leaves and entry not in self._over]
        if latches.first_at is None:
            self._conclude(fires=False)

    def _conclude(self, *, fires: bool) -> None:
        """Ends the open evidence.

        If it has present entries and fires, its late entries join them; otherwise they form a piece.
        """
        self._has_fired = fires and self._meets
        self._end(joins=self._has_fired)

    def _end(self, *, joins: bool) -> None:
        if joins:
            self._join()
        elif self._piece:
            self._found.apart.append(self._piece)
        self._latches, self._piece, self._over, self._meets = None, [], [], False

    def _join(self) -> None:
        if self._over:
            self._found.apart.append(self._over)
        self._found.joining += [entry for entry in self._piece if entry not in self._over]
