"""A cluster object is one versioned item of the whole cluster; the owner of one shard moves it, and other nodes read it.

Scope suspensions (`scope_commands.py`) and sources (`source_commands.py`) are cluster objects. The inbox makes an `ApplyClusterObject` of each
request on such an object. The procedure:

1. answers a repeat of the request from its stored receipt (`ApplyRequest`);
2. moves the item by compare-and-set, and stores the receipt in the same transaction;
3. if the transition needs end offsets: reads them outside the transaction, and decides again;
4. wakes the owners of all topic partitions, which read the item (`ownership/cluster_object_watch.py`);
5. publishes the receipt; if the kind waits for all shards: after each shard has acknowledged the version (`roll_out.py`).

A wake-up can be lost. Owners therefore poll the item as well, and a lost wake-up costs latency only.

A kind of object is a subclass of `ClusterObjectKind`. For a new kind, for example a named calendar, write or change these files at most, besides its tests:

1. `language/requests/<kind>_requests.py`: the requests, with `CLUSTER_OBJECT`; it decides the shard and the name of the inbox rows.
2. `language/requests/requests.py`: the names of the requests in `Request` and `REQUEST_TYPES`.
3. `rows/<kind>_list.py`: the value and its stored form; its key is `keys.cluster_object(<kind>)`.
4. `commands/<kind>_commands.py`: the kind with its limits and its transition.
5. `ownership/inbox.py`: the kind in `CLUSTER_OBJECTS`.
6. The module that uses the object: it reads the item, or it listens to a `ClusterObjectWatch` of the partition actor.
7. `services/tidegate_api/routes/<kind>s.py`: its routes.
8. The page in `docs/` that describes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tidegate_core.commands.apply_request import ApplyRequest
from tidegate_core.commands.request_answer import Outcome, answer
from tidegate_core.commands.roll_out import PendingReceipt, RollOut
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import Request
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem
from tidegate_core.rows import keys
from tidegate_core.rows.effects import WakeUp
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.receipt import StoredReceipt, expiry
from tidegate_core.rows.store_operations import Batch, Item, Key, Put
from tidegate_core.shard.events.subscription_index import vector_item
from tidegate_core.writes.unit_of_work import UnitOfWork

CARRIED_OUT = frozenset({ReceiptStatus.ACCEPTED, ReceiptStatus.UNCHANGED})
"""Answers that promise a state in all shards. `unchanged` is one of them: an earlier request on the object may still be rolling out."""


class Versioned(Protocol):
    """The value of a cluster object."""

    @property
    def version(self) -> int:
        """The number of changes so far; 0: no item is stored."""
        ...


V = TypeVar("V", bound=Versioned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts for a transition that neither the item nor the request contains.

    Attributes:
        request_id: Id of the request; without one in the request, its position.
        now: Instant of the decision.
        own_topics: Prefix of the names of tidegate's own topics.
        end_offsets: Id of the stored vector of end offsets, or the reason why there is none; None: not read.
    """

    request_id: str
    now: int
    own_topics: str
    end_offsets: str | Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition(Generic[V]):
    """The decision about one request.

    Attributes:
        status: Status of the receipt; None: the transition needs end offsets, and is decided again with them.
        after: Next value of the object; the very value from before: no write.
        version: Version for the receipt.
        problems: Problems for the receipt.
        unused_vector: Id of a vector that the next value no longer names; the same transaction deletes it.
    """

    status: ReceiptStatus | None
    after: V
    version: int | None = None
    problems: tuple[Problem, ...] = ()
    unused_vector: str | None = None


class ClusterObjectKind(ABC, Generic[V]):
    """The parts in which one kind of cluster object differs from another.

    Attributes:
        name: Name of the object, as in `CLUSTER_OBJECT` of its requests.
        label: Name of the transaction that moves the item; a metric label.
        empty: Value while no item is stored.
        record: Stored form of the item; its `of` encodes a value.
        keeps_order: Whether a request waits for earlier requests on the object that wait for end offsets.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    empty: V
    record: ClassVar[type[Any]]
    keeps_order: ClassVar[bool] = True

    @property
    def key(self) -> Key:
        return keys.cluster_object(self.name)

    def decode(self, item: Item) -> V:
        """Returns the value of a stored item."""
        return self.value_of(from_item(self.record, item))

    @abstractmethod
    def value_of(self, stored: Any) -> V:
        """Returns the value of a record."""

    @abstractmethod
    def about(self, request: Any) -> str:
        """Returns the part of the object that a request names, for the log."""

    @abstractmethod
    def transition(self, before: V, request: Any, position: Position, facts: Facts) -> Transition[V]:
        """Decides a request. Pure.

        Args:
            before: Present value of the object.
            request: The request, of one of the kind's types.
            position: Position of its record; a request older than the last one on its subject is superseded.
            facts: Facts that were gathered for it.
        """

    def known_end_offsets(self, _writer: ShardWriter, _request: Any, _arrived: int) -> Problem | None:
        """Returns why there are no end offsets, if another request has found that out since this one arrived."""
        return None

    def read_end_offsets(
        self, writer: ShardWriter, row: InboxRow, request: Any, arrived: int, asked: int
    ) -> Operation[str | Problem]:
        """Reads the end offsets that a transition asked for, and stores them. Returns the id of their vector, or why there is none.

        Args:
            writer: Writer of the shard.
            row: Inbox row of the request.
            request: The request.
            arrived: Number of the last reading that had begun when the row was found.
            asked: Number of the last reading that had begun when the transition first asked.

        Raises:
            NotImplementedError: A transition asked for end offsets, and its kind does not read any. That is a bug of the kind.
        """
        raise NotImplementedError(f"{self.name} has no end offsets")

    def topics_to_ask(self, _writer: ShardWriter, unanswered: Sequence[str]) -> Sequence[str]:
        """Returns the topics to ask while a request waits for topics that did not answer at once."""
        return unanswered

    def roll_out(self, _writer: ShardWriter) -> RollOut | None:
        """Returns the part of a shard that waits until all shards have acknowledged a version; None: receipts wait for no shard."""
        return None


@dataclass(frozen=True, slots=True)
class ApplyClusterObject(ApplyRequest):
    """Applies a request on a cluster object.

    Attributes:
        kind: Kind of the object.
        roll_out: Roll-outs of the kind in this shard; None: the kind waits for no shard.
        done: Removes the inbox row of a repeat; the first request's receipt answers both.
        asked: Number of the last reading of end offsets that had begun when the transition first asked; empty before that.
    """

    kind: ClusterObjectKind[Any] = field(kw_only=True)
    roll_out: RollOut | None = field(kw_only=True)
    done: Callable[[InboxRow], None] = field(kw_only=True)
    asked: list[int] = field(default_factory=list, compare=False)

    @property
    def ordering_key(self) -> str | None:
        return keys.schedule_ref(self.row.namespace, self.row.name) if self.kind.keeps_order else None

    def run(self, writer: ShardWriter) -> Operation[None]:
        body = yield from self._receipt_once_told(writer)
        if self.roll_out is None:
            _wake_all_owners(writer)
            self.announce(self.row, body)
            return
        receipt = Receipt.model_validate_json(body)
        if _is_settled(writer, receipt):
            self.announce(self.row, body)
            return
        _wake_all_owners(writer)
        if not self.roll_out.begin(PendingReceipt(self.row, receipt, self.announce)):
            self.done(self.row)

    def _topics_to_ask(self, writer: ShardWriter, untold: Sequence[str]) -> Sequence[str]:
        return self.kind.topics_to_ask(writer, untold)

    def _apply(self, writer: ShardWriter, request: Request, request_id: str, outcome: Outcome) -> Operation[None]:
        if outcome.receipt is not None:
            return  # A former owner has written the change; only the wait for the other shards is left.
        position = Position.parse(self.row.origin)
        known = self.kind.known_end_offsets(writer, request, self.arrived)
        yield from writer.decide_alone(self._decision(writer, request, request_id, position, known, outcome))
        if outcome.receipt is None:
            if not self.asked:
                self.asked.append(writer.host.readings.begun)
            found = yield from self.kind.read_end_offsets(writer, self.row, request, self.arrived, self.asked[0])
            yield from writer.decide_alone(self._decision(writer, request, request_id, position, found, outcome))

    def _decision(
        self,
        writer: ShardWriter,
        request: Request,
        request_id: str,
        position: Position,
        end_offsets: str | Problem | None,
        outcome: Outcome,
    ) -> MoveClusterObject:
        return MoveClusterObject(
            self.kind,
            request,
            request_id,
            position,
            end_offsets,
            own_topics(writer),
            outcome,
            waits=self.roll_out is not None,
            stale=(self.kind.key,),
            name=self.kind.label,
        )


@dataclass(frozen=True, slots=True)
class MoveClusterObject:
    """Moves the item by compare-and-set, with the receipt in the same transaction.

    Attributes:
        kind: Kind of the object.
        request, request_id, position: The request.
        end_offsets, own_topics: As in `Facts`.
        outcome: Takes the receipt; it takes none while the transition needs end offsets.
        waits: Whether an answer that is carried out stays unsettled until all shards have acknowledged its version.
    """

    kind: ClusterObjectKind[Any]
    request: Any
    request_id: str
    position: Position
    end_offsets: str | Problem | None
    own_topics: str
    outcome: Outcome
    waits: bool
    stale: tuple[Key, ...]
    name: str

    @property
    def about(self) -> str:
        return self.kind.about(self.request)

    def decide(self, unit: UnitOfWork, now: int) -> None:
        stored = unit.record(self.kind.record, self.kind.key)
        before = self.kind.empty if stored is None else self.kind.value_of(stored)
        facts = Facts(request_id=self.request_id, now=now, own_topics=self.own_topics, end_offsets=self.end_offsets)
        moved = self.kind.transition(before, self.request, self.position, facts)
        if moved.unused_vector is not None:
            # After this write no row names the vector: a successor could not find it.
            unit.forget_row(keys.offsets_vector(moved.unused_vector))
        if moved.after is not before:
            unit.put(self.kind.record.of(moved.after), self.kind.key)
        if moved.status is None:
            return
        receipt = Receipt.model_construct(
            request_id=self.request_id,
            status=moved.status,
            namespace=self.request.namespace,
            name=getattr(self.request, "name", None),
            version=moved.version,
            errors=moved.problems,
            at=now,
        )
        waits = self.waits and moved.status in CARRIED_OUT and bool(moved.version)
        answer(unit, self.outcome, receipt, now, settled=not waits)


def store_end_offsets(
    writer: ShardWriter, label: str, offsets: Mapping[str, int], days: int | None = None
) -> Operation[str]:
    """Stores end offsets, before an item names them. Returns the id of their vector.

    Args:
        writer: Writer of the shard.
        label: Text from which the id follows.
        offsets: End offsets by `<topic id>/<topic partition>`.
        days: Days after which the store deletes the vector; None: it stays.
    """
    vector_id, key, item = vector_item(label, dict(offsets))
    expiring = item if days is None else {**item, "expires_at": expiry(writer.host.now, days)}
    yield from writer.host.write_for_good(Batch("vector", (Put(key, expiring),)))
    return vector_id


def own_topics(writer: ShardWriter) -> str:
    """Returns the prefix of the names of tidegate's own topics."""
    return writer.host.holding.requests.name.removesuffix("requests")


def _wake_all_owners(writer: ShardWriter) -> None:
    for shard in range(writer.host.holding.topic_partitions):
        writer.host.emit(WakeUp(shard, controls=True))  # The owner of topic partition p also owns shard p.


def _is_settled(writer: ShardWriter, receipt: Receipt) -> bool:
    """Whether no shard has to acknowledge the receipt. A refusal may have been returned without being stored."""
    key = keys.receipt(writer.shard, receipt.namespace, receipt.request_id)
    item = writer.view.item(key) if writer.view.knows(key) else None
    return receipt.status not in CARRIED_OUT or item is None or from_item(StoredReceipt, item).settled
