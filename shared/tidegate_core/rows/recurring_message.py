"""Records of recurring messages: when which version of a schedule counts (DESIGN 5).

Nothing is written when such a message fires: its fires follow from the intervals, and the delivery position says which of
them are done.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_nested
from tidegate_core.rows.store_operations import Key

INTERVALS_MAX = 16
"""Of one record. Closed ones are kept for the tally alone, so the oldest may go when requests come faster than checkpoints."""
INTERVALS_BYTES_MAX = 300_000
"""Of one record, for the same reason: its item may have 400 KB, and what no item holds would be refused until checkpoints pass."""
INTERVALS_KEPT = 2
"""However large: the open one, and the one that the same request has ended. In it the owner finds what still waits, and has to be cancelled.
Both together have 380 KB at most: a schedule's 64 KiB, in which a no-break space between a cron's fields is written with six bytes for two."""
SUMMONS = "+"
"""In place of a version, in the key of a row that brings a far record near: sorts before the fire that it announces, so that
no checkpoint passes that fire before the record is in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A span of activity of one version: it begins with a request, and ends with the next.

    Attributes:
        generation: Of the schedule: no two intervals of a name share it.
        origin: Position of the request that opened it.
        begin: No fire has an earlier slot.
        since: The first nominal; before `begin` only for an `at` that had passed, and behind a suspension whose end was carried out late.
        trigger: Its canonical JSON.
        size: Bytes of the payload.
        catch_up: What becomes of fires that fell into an outage: `last`, `all` or `none`.
        end: Fires from this slot on are not sent any more; all earlier ones were acknowledged. None while it is open.
        until: Fires from `end` to here were due, and are cancelled.
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
        """Returns the interval as it is once a request has ended it."""
        return replace(self, end=max(end, self.begin), until=max(until, self.begin))

    def text(self) -> str:
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """`C#`: a schedule with a message target whose next fire is near, read at each recovery; `CF#`: one whose is far.

    Attributes:
        intervals: Texts, oldest first; the last one may be open.
        summons: Slot of the timer row that brings a far record near; None where nothing is to come.
    """

    namespace: str
    name: str
    intervals: tuple[str, ...] = ()
    summons: int | None = None

    @property
    def ref(self) -> str:
        return keys.schedule_ref(self.namespace, self.name)

    def is_open_for(self, generation: int) -> bool:
        """Whether this generation of the schedule counts in it."""
        return any(span.is_open and span.generation == generation for span in self.spans())

    def spans(self) -> list[Interval]:
        return [from_nested(Interval, json.loads(text)) for text in self.intervals]

    def with_spans(self, spans: list[Interval], summons: int | None = None) -> Recurring:
        return replace(self, intervals=_latest([span.text() for span in spans]), summons=summons)


def _latest(texts: list[str]) -> tuple[str, ...]:
    """Returns the latest of a record's intervals, as many as it may hold."""
    kept, size = list[str](), 0
    for text in reversed(texts[-INTERVALS_MAX:]):
        size += len(text)  # ASCII: a character is a byte.
        if size > INTERVALS_BYTES_MAX and len(kept) >= INTERVALS_KEPT:
            break
        kept.append(text)
    return tuple(reversed(kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeRow:
    """`D#<slot>#<id>#+`: the next fire of a far record has this slot."""

    slot: int
    id: str
    namespace: str
    name: str
    version: str = SUMMONS

    def key(self, shard: int) -> Key:
        return keys.message_timer(shard, self.slot, self.id, self.version)


def series_id(namespace: str, name: str) -> str:
    """Returns what stands for the schedule in the places of its fires."""
    return keys.text_hash("recurring", namespace, name)


def fire_id(incarnation: str, nominal: int) -> str:
    """Returns the id of an occurrence's message: the same whoever sends it, and never that of another life of the name."""
    return keys.text_hash("recurring", incarnation, str(nominal))
