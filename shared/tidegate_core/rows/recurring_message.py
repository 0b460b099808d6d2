"""Rows of recurring messages: intervals in which a version of a schedule counts.

A fire of such a message writes nothing. Its fires follow from the intervals, and the delivery position says which are
complete.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_nested
from tidegate_core.rows.store_operations import Key

INTERVALS_MAX = 16
"""Intervals of one record.

Closed ones serve only the tally, so the oldest may go when requests come faster than checkpoints.
"""
INTERVALS_BYTES_MAX = 300_000
"""Bytes of the intervals of one record. An item may have 400 KB; a larger one would be refused until checkpoints pass.
"""
INTERVALS_KEPT = 2
"""Intervals that are kept at any size: the open one, and the one that the same request ended.

The owner finds in them the fires that it must cancel. Two have 380 KB at most: 64 KiB of a schedule, in which JSON
writes a no-break space in a cron expression with six bytes instead of two.
"""
SUMMONS = "+"
"""Version in the key of a wake row.

It sorts before the announced fire, so no checkpoint passes that fire before the record is loaded.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A span in which one version was active, from one request to the next.

    Attributes:
        generation: Generation of the schedule; no two intervals of a name share it.
        origin: Position of the request that opened it.
        begin: Earliest slot of its fires.
        since: First nominal time. It lies before `begin` for an `at` in the past, and after a suspension that ended
            late.
        trigger: Canonical JSON of the trigger.
        size: Bytes of the payload.
        catch_up: Catch-up mode for fires during an outage: `last`, `all` or `none`.
        end: Slot from which fires are no longer sent; all earlier ones were acknowledged. None while it is open.
        until: End of the fires from `end` on that were due and are cancelled.
    """

    generation: int
    version: int
    incarnation: str
    origin: str
    begin: int
    since: int
    trigger: str
    size: int
    catch_up: str = "last"
    end: int | None = None
    until: int | None = None

    @property
    def is_open(self) -> bool:
        return self.end is None

    def closed(self, end: int, until: int) -> Interval:
        """Returns the interval after a request has ended it."""
        return replace(self, end=max(end, self.begin), until=max(until, self.begin))

    def text(self) -> str:
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """The record of a schedule with a message target: `C#` when its next fire is near, `CF#` when it is far.

    Each recovery reads the near ones.

    Attributes:
        intervals: Texts of the intervals, oldest first; the last one may be open.
        summons: Slot of the wake row that loads a far record; None when no fire follows.
    """

    namespace: str
    name: str
    intervals: tuple[str, ...] = ()
    summons: int | None = None

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.namespace, self.name)

    def is_open_for(self, generation: int) -> bool:
        """Returns whether the record is open for this generation of the schedule."""
        return any(span.is_open and span.generation == generation for span in self.spans())

    def spans(self) -> list[Interval]:
        return [from_nested(Interval, json.loads(text)) for text in self.intervals]

    def with_spans(self, spans: list[Interval], summons: int | None = None) -> Recurring:
        return replace(self, intervals=_latest([span.text() for span in spans]), summons=summons)


def _latest(texts: list[str]) -> tuple[str, ...]:
    """Returns the latest intervals of a record that fit its bounds."""
    kept, size = list[str](), 0
    for text in reversed(texts[-INTERVALS_MAX:]):
        size += len(text)  # The text is ASCII, so a character is a byte.
        if size > INTERVALS_BYTES_MAX and len(kept) >= INTERVALS_KEPT:
            break
        kept.append(text)
    return tuple(reversed(kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeRow:
    """States the slot of the next fire of a far record (`D#<slot>#<id>#+`)."""

    slot: int
    id: str
    namespace: str
    name: str
    version: str = SUMMONS

    def key(self, shard: int) -> Key:
        return keys.message_timer(shard, self.slot, self.id, self.version)


def series_id(namespace: str, name: str) -> str:
    """Returns the id of a schedule's fires in delivery positions."""
    return keys.text_hash("recurring", namespace, name)


def fire_id(incarnation: str, nominal: int) -> str:
    """Returns the id of a fire's message: equal for every owner, and different for each incarnation of the name."""
    return keys.text_hash("recurring", incarnation, str(nominal))
