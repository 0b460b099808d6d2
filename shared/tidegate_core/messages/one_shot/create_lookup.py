"""A create of a message and what the store says about it: new, a repeat, too old, or a replacement (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tidegate_core.engine.operations import Operation
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import MessageSend
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import RefusedRecord
from tidegate_core.messages.one_shot.withdrawal import counts, fence_version, versions_of
from tidegate_core.messages.wire.row_expiry import outlives
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message, MessageFence, MessageName
from tidegate_core.rows.store_operations import Item, Key

STANDS_IN = "+"
"""Between the two positions in the version of a create that takes the place of a repeat of itself: such a text comes behind that
repeat's version and before that of any later record.
"""


@dataclass(frozen=True, slots=True)
class PendingCreate:
    """A create on its way into the messages.

    Attributes:
        position: Of its record.
        replay: A predecessor may have written its rows already.
    """

    request: MessageSend
    position: Position
    replay: bool


@dataclass(frozen=True, slots=True)
class Unkept:
    """A create that the store will never take, as its dead letter has it: nothing of it will be sent."""

    sending: PendingCreate
    refused: RefusedRecord


@dataclass(slots=True)
class Create:
    """One create with what the look-up said about it.

    Attributes:
        answered: Version of the message that its sender is told of; None when there is none.
        mine: What lies under its version.
        left_behind: What was made of this very record under other versions: by a node of a release that knew one for all topics, or before
            it was given one of its own.
        leans_on: Origin of the record that it repeats.
        is_answered_elsewhere: Its sender is told by the receipt of another record of the request, which is still to come.
    """

    sending: PendingCreate
    name: MessageName
    version: str
    answered: str | None
    guard: MessageFence | None = None
    present: bool = False
    others: list[Message] = field(default_factory=list)
    mine: Message | None = None
    left_behind: list[Message] = field(default_factory=list)
    leans_on: str | None = None
    is_answered_elsewhere: bool = False
    status: ReceiptStatus = ReceiptStatus.ACCEPTED
    replaces: bool = False

    def again(self) -> Create:
        """Returns it as it is looked up anew: some of it may have been written, as by a predecessor."""
        return Create(replace(self.sending, replay=True), self.name, self.version, answered=self.version)

    @property
    def live_from(self) -> str:
        return "" if self.guard is None else self.guard.live_from

    @property
    def is_covered(self) -> bool:
        """Whether its guard covers it; not where its cancel came too late."""
        return self.guard is not None and self.version < self.guard.live_from and self.version not in self.guard.late

    @property
    def origin(self) -> str:
        return self.sending.position.text()

    @property
    def nominal(self) -> Instant:
        """When it is due, whatever slot its rows have."""
        return self.sending.request.due(self.sending.position.append_time)

    @property
    def is_covered_by_repeat(self) -> bool:
        """The guard above it was raised by the same request, from another record."""
        request_id, guard = self.sending.request.id, self.guard
        if request_id is None or guard is None:
            return False
        return self.version < guard.live_from and guard.request_id == request_id

    @property
    def may_have_hidden_others(self) -> bool:
        """Whether some version of it without a key was refused: then records of its id may have versions of their own, which no look-up of
        another record knows.
        """
        return not self.name.keyed and self.guard is not None and len(self.guard.refused) > 0

    @property
    def has_its_own_version(self) -> bool:
        """Whether no other record makes rows of its version: under a key none does; without, those of its topic that bear its id do."""
        return self.name.keyed or self.sending.request.id is None or self.answered not in (None, self.version)

    def may_outlast_its_guard(self, now: Instant) -> bool:
        """Whether rows that a former owner made of it would be there without a guard that covers them: none is above them, or one that
        was raised when nobody knew of them and expires before they do.
        """
        if not self.has_its_own_version:
            return False
        if self.guard is None or self.version >= self.guard.live_from:
            return True
        return not outlives(self.guard, max(self.nominal, now))

    @property
    def alive(self) -> list[Message]:
        """Other versions that no guard covered so far; what an earlier one covers was dealt with then."""
        late = frozenset[str]() if self.guard is None else self.guard.late
        return [other for other in self.others if other.version >= self.live_from or other.version in late]


def name_of(messages: ShardMessages, sending: PendingCreate) -> tuple[MessageName, str]:
    """Returns name and version: keyed creates are versioned by their position, others by their topic."""
    request, position = sending.request, sending.position
    if request.key is not None:
        return MessageName.of_key(request.namespace, request.key), position.text()
    name = MessageName.of_request(request.namespace, request.id or position.text())
    return name, messages.version_without_key(position.topic_id)


def look_up(messages: ShardMessages, creates: Sequence[Create]) -> Operation[None]:
    """A create without any id needs no look-up, unless a predecessor may have written it (replay)."""
    wanted: dict[Key, Create] = {}
    for create in creates:
        if create.name.keyed:
            wanted[keys.message_key_row(messages.shard, create.name.id)] = create
        if create.name.keyed or create.sending.request.id is not None or create.sending.replay:
            # Without any id too, where it may have been written: then its printed id may have been cancelled.
            wanted[keys.message_fence(messages.shard, create.name.id)] = create
        for version in _versions_looked_up(messages, create):
            wanted[keys.message(messages.shard, create.name.id, version)] = create
    if not wanted:
        return
    answer = yield from messages.host.read_for_good(Read(tuple(wanted)))
    assert isinstance(answer, Items)
    for key, create in wanted.items():
        item = answer.found.get(key)
        if item is None:
            continue
        if key.sk.startswith(keys.MESSAGE_FENCE_PREFIX):
            create.guard = from_item(MessageFence, item)
        elif key.sk.startswith(keys.MESSAGE_KEY_PREFIX):
            create.present = True
        elif (message := _counting(messages, item)) is None:
            continue
        elif message.version == create.version:
            create.mine = message
        elif message.origin == create.origin:
            create.left_behind.append(message)
        else:
            create.others.append(message)
    for create in creates:
        if create.left_behind and create.mine is None:
            create.mine = create.left_behind.pop()
            create.version = create.answered = create.mine.version
        create.others = [each for each in create.others if counts(messages, each, create.guard)]
        if create.is_covered_by_repeat and messages.elsewhere.is_gone(create.live_from):
            yield from _stand_in(messages, create)
        if create.present:
            create.others = yield from _others_in_store(messages, create)
        elif create.may_have_hidden_others:
            yield from _look_at_all(messages, create)
        elif _outlives_its_topic(messages, create):
            yield from _stand_apart(messages, create)


def _versions_looked_up(messages: ShardMessages, create: Create) -> Sequence[str]:
    """Without a key a record of each requests topic that there was may have made the message."""
    if create.name.keyed or create.sending.request.id is None:
        return [create.version] if create.sending.replay else []
    # Of a topic that this holder has not heard of as well.
    return tuple(dict.fromkeys([*messages.versions_without_key.values(), create.version]))


def _stand_in(messages: ShardMessages, create: Create) -> Operation[None]:
    """A repeat of it, later in its topic, raised the guard as a replacement and went with that topic, unpassed: this one, which
    was passed, is the request now. What a former owner wrote of either is covered or does not count, whenever it comes, so it has a
    version of its own in that one's place.
    """
    if create.may_outlast_its_guard(messages.host.now):
        yield from fence_version(messages, create.name.id, create.version, create.guard)
    yield from _give_version(messages, create, f"{create.live_from}{STANDS_IN}{create.origin}")


def _look_at_all(messages: ShardMessages, create: Create) -> Operation[None]:
    """Where its topic's version of the id was refused, for good, for the message of another topic, whose rows may have expired since then,
    what it makes has a version of its own.
    """
    assert create.guard is not None
    create.others = yield from _others_in_store(messages, create)
    if create.version in create.guard.refused and not create.others:
        yield from _give_version(messages, create, f"{create.version}{STANDS_IN}{create.origin}")


def _outlives_its_topic(messages: ShardMessages, create: Create) -> bool:
    """Whether it is the first record of its id that counts, and others that share its version may have gone with their topic."""
    if create.name.keyed or create.sending.request.id is None or create.version < create.live_from:
        return False
    is_first = not create.others and (create.mine is None or create.mine.origin == create.origin)
    return is_first and messages.elsewhere.was_recreated(create.sending.position)


def _stand_apart(messages: ShardMessages, create: Create) -> Operation[None]:
    """What a former owner wrote of a record that is gone may come yet, over its rows: it would pass for that one, which does not count.
    So its topic's version is refused for good, and it has one of its own.
    """
    yield from fence_version(messages, create.name.id, create.version, create.guard)
    yield from _give_version(messages, create, f"{create.version}{STANDS_IN}{create.origin}")


def _give_version(messages: ShardMessages, create: Create, version: str) -> Operation[None]:
    if create.mine is not None and create.mine.origin == create.origin:
        create.left_behind.append(create.mine)
    create.version = create.answered = version
    key = keys.message(messages.shard, create.name.id, version)
    answer = yield from messages.host.read_for_good(Read((key,)))
    assert isinstance(answer, Items)
    item = answer.found.get(key)
    create.mine = None if item is None else _counting(messages, item)


def _others_in_store(messages: ShardMessages, create: Create) -> Operation[list[Message]]:
    versions = yield from versions_of(messages, create.name.id, create.guard)
    return [each for each in versions if each.origin != create.origin]


def _counting(messages: ShardMessages, item: Item) -> Message | None:
    mine = from_item(Message, item)
    return None if messages.elsewhere.is_gone(mine.origin) else mine


def classify(create: Create) -> None:
    """Decides what the create is: new, a repeat, too old, or a replacement."""
    request_id = create.sending.request.id
    repeated = next((other for other in create.others if other.request_id == request_id), None)
    if create.mine is not None and create.mine.origin != create.origin:
        create.status, create.leans_on = ReceiptStatus.UNCHANGED, create.mine.origin  # The same id from another record.
    elif request_id is not None and repeated is not None:
        create.status, create.answered, create.leans_on = ReceiptStatus.UNCHANGED, repeated.version, repeated.origin
    elif create.is_covered_by_repeat:
        # That one's rows are not there yet; its record is, so that they will be, and then it is answered. Who were told before
        # could cancel what no cancel finds: the message row is the receipt (DESIGN 5).
        create.status, create.answered, create.is_answered_elsewhere = ReceiptStatus.UNCHANGED, None, True
        create.leans_on = create.live_from
    elif create.is_covered:
        create.status = ReceiptStatus.SUPERSEDED if create.name.keyed else ReceiptStatus.CANCELLED
        create.answered = None
    elif any(other.version > create.version for other in create.others):
        create.status, create.answered = ReceiptStatus.SUPERSEDED, None
    else:
        # A guard of this very version is a replay's: it was a replacement the first time too.
        create.replaces = (create.name.keyed and create.live_from == create.version) or bool(create.alive)
