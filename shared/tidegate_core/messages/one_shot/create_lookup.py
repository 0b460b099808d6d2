"""Looks a create up in the store and classifies it: new, a repeat, superseded, or a replacement.

`create_writer` calls `look_up` and then `classify`. A look-up only writes where a version of a deleted topic must be refused for
good (`fence_version`).
"""

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
"""Separator in the version of a create that takes the place of its repeat: repeat's version, separator, own position. Such a text
sorts after the repeat's version and before that of any later record.
"""


@dataclass(frozen=True, slots=True)
class PendingCreate:
    """A create that the scheduler is to write.

    Attributes:
        position: Log position of its record.
        replay: A predecessor may have written its rows.
    """

    request: MessageSend
    position: Position
    replay: bool


@dataclass(frozen=True, slots=True)
class Unkept:
    """A create that the store never takes, and the reason for its dead letter: the message is never delivered."""

    sending: PendingCreate
    refused: RefusedRecord


@dataclass(slots=True)
class Create:
    """One create, and the result of its look-up.

    Attributes:
        answered: Version that its receipt names; None when the receipt names none.
        mine: Stored message of its version.
        left_behind: Messages of this record under other versions. An older release gave all topics one version; or the record
            got its own version later.
        leans_on: Origin of the record that it repeats.
        is_answered_elsewhere: The receipt of another record of the request, which is still to be applied, answers the sender.
    """

    sending: PendingCreate
    name: MessageName
    version: str
    answered: str | None
    fence: MessageFence | None = None
    present: bool = False
    others: list[Message] = field(default_factory=list)
    mine: Message | None = None
    left_behind: list[Message] = field(default_factory=list)
    leans_on: str | None = None
    is_answered_elsewhere: bool = False
    status: ReceiptStatus = ReceiptStatus.ACCEPTED
    replaces: bool = False

    def again(self) -> Create:
        """Returns the create for another look-up. It counts as a replay, because some of its rows may be written."""
        return Create(replace(self.sending, replay=True), self.name, self.version, answered=self.version)

    @property
    def live_from(self) -> str:
        return "" if self.fence is None else self.fence.live_from

    @property
    def is_covered(self) -> bool:
        """Returns whether the fence covers the create. A fence does not cover a version whose cancel came too late."""
        return self.fence is not None and self.version < self.fence.live_from and self.version not in self.fence.late

    @property
    def origin(self) -> str:
        return self.sending.position.text()

    @property
    def nominal(self) -> Instant:
        """Returns when the message is due, whichever slot its rows have."""
        return self.sending.request.due(self.sending.position.append_time)

    @property
    def is_covered_by_repeat(self) -> bool:
        """Returns whether another record of the same request raised the fence above this create."""
        request_id, fence = self.sending.request.id, self.fence
        if request_id is None or fence is None:
            return False
        return self.version < fence.live_from and fence.request_id == request_id

    @property
    def may_have_hidden_others(self) -> bool:
        """Returns whether a version of this message without a key was refused.

        Then other records of its id may have their own versions, which a look-up by topic does not find.
        """
        return not self.name.keyed and self.fence is not None and len(self.fence.refused) > 0

    @property
    def has_its_own_version(self) -> bool:
        """Returns whether no other record writes rows of this version.

        With a key, no other record does. Without a key, all records of the topic with the same id do.
        """
        return self.name.keyed or self.sending.request.id is None or self.answered not in (None, self.version)

    def may_outlast_its_fence(self, now: Instant) -> bool:
        """Returns whether rows of this create by a former owner may outlive the fence.

        Either no fence is above the version, or the fence was raised without knowledge of the rows and expires before them.
        """
        if not self.has_its_own_version:
            return False
        if self.fence is None or self.version >= self.fence.live_from:
            return True
        return not outlives(self.fence, max(self.nominal, now))

    @property
    def alive(self) -> list[Message]:
        """Returns the other versions that no fence covers; versions below an earlier fence were withdrawn when it was raised."""
        late = frozenset[str]() if self.fence is None else self.fence.late
        return [other for other in self.others if other.version >= self.live_from or other.version in late]


def name_of(messages: ShardMessages, sending: PendingCreate) -> tuple[MessageName, str]:
    """Returns name and version: the version of a create with a key is its log position, of others it names the topic."""
    request, position = sending.request, sending.position
    if request.key is not None:
        return MessageName.of_key(request.namespace, request.key), position.text()
    name = MessageName.of_request(request.namespace, request.id or position.text())
    return name, messages.version_without_key(position.topic_id)


def look_up(messages: ShardMessages, creates: Sequence[Create]) -> Operation[None]:
    """Reads fences, key rows and messages of the creates. A create without id and key needs no look-up, except on replay."""
    wanted: dict[Key, Create] = {}
    for create in creates:
        if create.name.keyed:
            wanted[keys.message_key_row(messages.shard, create.name.id)] = create
        if create.name.keyed or create.sending.request.id is not None or create.sending.replay:
            # A replay without an id has a fence if its printed id was cancelled.
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
            create.fence = from_item(MessageFence, item)
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
        create.others = [each for each in create.others if counts(messages, each, create.fence)]
        if create.is_covered_by_repeat and messages.elsewhere.is_gone(create.live_from):
            yield from _stand_in(messages, create)
        if create.present:
            create.others = yield from _others_in_store(messages, create)
        elif create.may_have_hidden_others:
            yield from _read_all_versions(messages, create)
        elif _outlives_its_topic(messages, create):
            yield from _stand_apart(messages, create)


def _versions_looked_up(messages: ShardMessages, create: Create) -> Sequence[str]:
    """Returns the versions to read: without a key, a record of each known requests topic may have created the message."""
    if create.name.keyed or create.sending.request.id is None:
        return [create.version] if create.sending.replay else []
    # Includes the create's own version, whose topic this owner may not know.
    return tuple(dict.fromkeys([*messages.versions_without_key.values(), create.version]))


def _stand_in(messages: ShardMessages, create: Create) -> Operation[None]:
    """Gives the create its own version in the place of a lost repeat.

    The repeat, later in the topic, raised the fence as a replacement. Then its topic was deleted before the position passed the
    repeat, so this create is the request now. Late rows of a former owner for either record are covered or do not count.
    """
    if create.may_outlast_its_fence(messages.host.now):
        yield from fence_version(messages, create.name.id, create.version, create.fence)
    yield from _give_version(messages, create, f"{create.live_from}{STANDS_IN}{create.origin}")


def _read_all_versions(messages: ShardMessages, create: Create) -> Operation[None]:
    """Reads all versions of the message, and gives the create its own version if its topic's version was refused for good.

    The version was refused for the message of another topic. That message's rows may have expired since.
    """
    assert create.fence is not None
    create.others = yield from _others_in_store(messages, create)
    if create.version in create.fence.refused and not create.others:
        yield from _give_version(messages, create, f"{create.version}{STANDS_IN}{create.origin}")


def _outlives_its_topic(messages: ShardMessages, create: Create) -> bool:
    """Returns whether the create is the first valid record of its id, and lost records of its topic may share its version."""
    if create.name.keyed or create.sending.request.id is None or create.version < create.live_from:
        return False
    is_first = not create.others and (create.mine is None or create.mine.origin == create.origin)
    return is_first and messages.elsewhere.was_recreated(create.sending.position)


def _stand_apart(messages: ShardMessages, create: Create) -> Operation[None]:
    """Refuses the topic's version for good, and gives the create its own version.

    A former owner may still write rows of a lost record over the rows of this create: the create would then look like the lost
    record, which does not count.
    """
    yield from fence_version(messages, create.name.id, create.version, create.fence)
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
    versions = yield from versions_of(messages, create.name.id, create.fence)
    return [each for each in versions if each.origin != create.origin]


def _counting(messages: ShardMessages, item: Item) -> Message | None:
    mine = from_item(Message, item)
    return None if messages.elsewhere.is_gone(mine.origin) else mine


def classify(create: Create) -> None:
    """Decides whether the create is new, a repeat, superseded or cancelled, or a replacement."""
    request_id = create.sending.request.id
    repeated = next((other for other in create.others if other.request_id == request_id), None)
    if create.mine is not None and create.mine.origin != create.origin:
        create.status, create.leans_on = ReceiptStatus.UNCHANGED, create.mine.origin  # The same id from another record.
    elif request_id is not None and repeated is not None:
        create.status, create.answered, create.leans_on = ReceiptStatus.UNCHANGED, repeated.version, repeated.origin
    elif create.is_covered_by_repeat:
        # The repeat's record is in the log, and its rows will follow; its receipt answers then. An earlier receipt would name a
        # message that no cancel finds, because the message row is missing.
        create.status, create.answered, create.is_answered_elsewhere = ReceiptStatus.UNCHANGED, None, True
        create.leans_on = create.live_from
    elif create.is_covered:
        create.status = ReceiptStatus.SUPERSEDED if create.name.keyed else ReceiptStatus.CANCELLED
        create.answered = None
    elif any(other.version > create.version for other in create.others):
        create.status, create.answered = ReceiptStatus.SUPERSEDED, None
    else:
        # A fence of this very version shows a replay: the create was a replacement the first time too.
        create.replaces = (create.name.keyed and create.live_from == create.version) or bool(create.alive)
