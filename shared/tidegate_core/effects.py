"""What an actor asks of its driver, and what the driver answers. Values only: tests compare them, logs print them.

An effect goes out as `Ask(token, effect)`; its one answer comes back as `Answer(token, result)`. The answer that belongs to
an effect is named in the effect's docstring. A driver never decides: it retries what its port may retry, and answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tidegate_core.store.values import Batch, Item, Key, Page, RangeRead, Transaction, Value

# -- store ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read:
    """Strongly consistent read of items. Answer: `Items`, or `Unavailable` after the port's patience."""

    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class ReadRange:
    """Answer: `Page`, or `Unavailable`."""

    range: RangeRead


@dataclass(frozen=True, slots=True)
class Commit:
    """One conditional transaction, settled (DESIGN 2, `transactions/settlement.py`). Answer: `Committed`, `Refused`,
    `Unavailable` or `Invalid`.

    `Unavailable` means that nobody knows: the author must send it again, or read, before it goes on.
    """

    transaction: Transaction


@dataclass(frozen=True, slots=True)
class Write:
    """An unconditional batch, repeated until all of it is acknowledged. Answer: `Written`, or `Unavailable` (some of it may be there)."""

    batch: Batch


@dataclass(frozen=True, slots=True)
class Items:
    """What was found; keys of absent items are left out."""

    found: Mapping[Key, Item]


@dataclass(frozen=True, slots=True)
class Committed:
    """All of it is in the store."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was applied.

    Attributes:
        failed: Key and stored item (None = absent) of each action whose condition was false; empty when it was only
            a conflict that outlived the port's retries.
        doubtful: An earlier send got no answer: until what it consumes has changed it may still be applied, late.
    """

    failed: tuple[tuple[Key, Item | None], ...]
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Invalid:
    """The store will never take this transaction as it is (an item or the whole too large, an expression that does not
    fit what is stored): nothing was applied, no repeat helps.
    """

    message: str


@dataclass(frozen=True, slots=True)
class Written:
    """All of it is acknowledged."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The brick did not answer within the port's patience; nothing is known."""

    what: str


# -- events and schedules --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadEndOffsets:
    """End offsets of all topic partitions of a topic, asked now. Answer: `EndOffsets` or `Unavailable`.

    Attributes:
        may_be_missing: A topic that is not there, or that the node may not read, is told as one without topic partitions.
    """

    topic: str
    may_be_missing: bool = False


@dataclass(frozen=True, slots=True)
class EndOffsets:
    """`<topic id>/<topic partition>` to the next offset to be written there."""

    offsets: Mapping[str, int]


# -- bus --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Produce:
    """A record for a topic. Answer: `Produced` or `NotProduced`.

    Attributes:
        topic_partition: Fixed target, or None for the client's partitioner by key.
        guarded: Irreversible outside tidegate: the driver sends it only while the local guard holds (DESIGN 3),
            and answers `NotProduced(kind="guard")` else.
    """

    topic: str
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    topic_partition: int | None = None
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class Produced:
    """The broker acknowledged the record."""


@dataclass(frozen=True, slots=True)
class NotProduced:
    """`kind`: `guard` (not sent), `refused` (will not work as it is: unknown topic, too large, not allowed), `unavailable` (may or may not be there)."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Poke:
    """Tells whoever owns the shard that there is something for it. Lost ones cost latency only; no answer.

    Attributes:
        run_id: The run whose item changed; a job that was offered a slot of a shared limit; partition key of a limit, for
            its home; or None for "look into the inbox".
        controls: The wide controls have changed; for all shards of whoever holds this one.
    """

    shard: int
    run_id: str | None = None
    controls: bool = False


# -- launchers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """All that a launcher needs for one attempt of a run; a value of the core that knows nothing of any launcher."""

    run_id: str
    attempt: int
    program_type: str
    file: str
    args: tuple[str, ...]
    conf: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submit:
    """Start the attempt under its name; guarded. Answer: `Submitted`, `SubmitFailed` or `NotSubmitted`."""

    order: LaunchOrder


@dataclass(frozen=True, slots=True)
class Submitted:
    """The launcher took the attempt, or had it already.

    Attributes:
        external_id: The launcher's name for it.
        host, boot_id: Where it runs, for launchers that can only look on their own host.
    """

    external_id: str
    host: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class SubmitFailed:
    """Will not work as it is: `error_class` of SEMANTICS 8."""

    error_class: str
    message: str


@dataclass(frozen=True, slots=True)
class NotSubmitted:
    """The guard had lapsed, or the launcher could not be reached: ask again later. It may have been accepted."""

    message: str


@dataclass(frozen=True, slots=True)
class Lookup:
    """Is there something under the attempt's name? Answer: `LookedUp`."""

    run_id: str
    attempt: int
    host: str | None
    boot_id: str | None


@dataclass(frozen=True, slots=True)
class LookedUp:
    """`where`: `found`, `absent`, `elsewhere` (this node cannot know), `unknown` (launcher unreachable)."""

    where: str
    external_id: str | None = None
    host: str | None = None
    boot_id: str | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Tell me once nothing of the attempt is left. Answer, maybe much later: `Gone`."""

    run_id: str
    attempt: int


DUPLICATE = "duplicate"
"""`Gone.error_class` of what did not run, because another driver of the attempt had passed the start gate."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The whole process group (or pod, or application) is gone, where its launcher can see it. `exit_code` None when it
    cannot be known.
    """

    exit_code: int | None
    error_class: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the attempt and see to it that it is gone; `Watch` tells when. No answer."""

    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Inspect:
    """Can this program be launched from here? Asked when a schedule is applied. Answer: `Inspected`."""

    program_type: str
    file: str


@dataclass(frozen=True, slots=True)
class Inspected:
    """`problem` says what is wrong with the file, or is None."""

    problem: str | None = None


@dataclass(frozen=True, slots=True)
class SampleLoad:
    """How busy is this resource of the source now? Asked while a job waits for it. Answer: `LoadSampled`."""

    source: str
    resource: str


@dataclass(frozen=True, slots=True)
class LoadSampled:
    """`value` is None when it cannot be said, and `problem` says why."""

    value: float | None
    problem: str = ""


# -- reading topics ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartReading:
    """Deliver the records of a topic partition from `offset` on (None = from its beginning) as `RecordsArrived`. No answer.

    Attributes:
        topic_id: Of the topic that is meant: one that was made anew under its name is another one.
        topic_partitions: Their number, as far as the reader knows.
    """

    topic: str
    topic_partition: int
    offset: int | None
    topic_id: str
    topic_partitions: int


@dataclass(frozen=True, slots=True)
class StopReading:
    """No further record of it is wanted. No answer."""

    topic: str
    topic_partition: int


@dataclass(frozen=True, slots=True)
class Taken:
    """`count` delivered records were dealt with: their credits go back to the reader. `next_offset` is the durable
    position; that of the requests topic is committed as a hint for lag tools.
    """

    topic: str
    topic_partition: int
    count: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing of this topic partition is in flight any more; it may be given away. No answer."""

    topic_partition: int


# -- life of the actor ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Notice:
    """A named event with fields for logs and metrics (names in `tidegate_telemetry`); no answer, no influence."""

    event: str
    fields: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProveMembership:
    """Proof that the ownership topic partition is ours, by the guard or by a commit probe (DESIGN 3). Answer: `Membership`."""

    topic_partition: int


@dataclass(frozen=True, slots=True)
class Membership:
    """`holds` is False when the group coordinator refused the member for good, None when it could not be known yet."""

    holds: bool | None


Effect: TypeAlias = (
    Read
    | ReadRange
    | Commit
    | Write
    | ReadEndOffsets
    | Produce
    | Poke
    | Submit
    | Lookup
    | Watch
    | Cancel
    | Inspect
    | SampleLoad
    | StartReading
    | StopReading
    | Taken
    | Drained
    | Notice
    | ProveMembership
)
Result: TypeAlias = (
    Items
    | Page
    | Committed
    | Refused
    | Invalid
    | Written
    | Unavailable
    | EndOffsets
    | Produced
    | NotProduced
    | Submitted
    | SubmitFailed
    | NotSubmitted
    | LookedUp
    | Gone
    | Inspected
    | LoadSampled
    | Membership
)


STORE_ANSWERS: Final = (Items, Page, Committed, Refused, Invalid, Written)
"""Results that only a store gives that was reached."""


@dataclass(frozen=True, slots=True)
class Ask:
    """An effect with the token under which its answer is awaited; token 0 = no answer is awaited."""

    token: int
    effect: Effect


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of the effect with this token."""

    token: int
    result: Result
