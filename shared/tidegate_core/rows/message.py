"""Rows of one-shot messages: timer row, message, fence, key row and held message.

The message scheduler writes most of them in batches without conditions, under keys that contain the version. So a
late or repeated write equals the first one, or has no effect. Only writes of fences and of held messages are
conditional.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tidegate_core.language.requests.message_requests import MAX_PAYLOAD_BYTES
from tidegate_core.language.values.log_position import FIRST_POSITION
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Item, Key

FIRST_VERSION = "-"
"""Version of a message without a key, and of a recurring message's fire; it sorts below all positions."""
FOR_EVER = "~"
"""Fence of a cancelled message that can never be sent again; it sorts above every version."""


class MessageName(NamedTuple):
    """The name of a message within its shard.

    Attributes:
        id: 26 characters for the key, the request id or the position.
        keyed: True for a replaceable message: each send under the key is a new version.
    """

    id: str
    keyed: bool

    @classmethod
    def of_key(cls, namespace: str, key: str) -> MessageName:
        return cls(keys.text_hash("key", namespace, key), True)

    @classmethod
    def of_request(cls, namespace: str, request_id: str) -> MessageName:
        # Not cached: each message has its own request id.
        return cls(keys.text_hash_once("request", namespace, request_id), False)


def version_without_key(topic_id: str, first_topic_id: str) -> str:
    """Returns the version of a message that is named by its sender's request id.

    All records of one requests topic share a version, so a repeat meets the row of the first. A recreated topic has
    another version. So a late write for a record of the old topic replaces nothing.

    Args:
        topic_id: Id of the record's topic.
        first_topic_id: Id of the cluster's first requests topic.
    """
    return FIRST_VERSION if topic_id == first_topic_id else FIRST_POSITION._replace(topic_id=topic_id).text()


def public_id(shard: int, name: MessageName, version: str) -> str:
    """Returns the id in the delivered record. Retries and repeats keep it; a replacement changes it."""
    return f"{shard:04d}-{keys.text_hash_once(name.id, version) if name.keyed else name.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTimer:
    """The slot of a message, without its payload (`D#`).

    Attributes:
        slot: `deliver_at`, or the first slot after everything that was sent or checkpointed. A slot may change, the
            nominal time never does.
        id, version: Name of the message row.
        origin: Position of its create. Replay brings rows at or after the position at the fence.
        attempt: 1 for the first delivery.
        size: Bytes of the payload; the maximum when an older release wrote the row.
        ref, generation: Recurring message of this fire; the fire counts while the schedule has this generation.
        covered: Number of fires that this one stands for after an outage, itself included; None for one.
        maybe_sent: True when an owner may have sent the message before this slot, so that a cancel is too late.
    """

    slot: int
    id: str
    version: str
    origin: str
    attempt: int
    expires_at: int
    size: int = MAX_PAYLOAD_BYTES
    ref: str | None = None
    generation: int = 0
    covered: int | None = None
    maybe_sent: bool | None = None

    @staticmethod
    def implied(item: Item) -> dict[str, Any]:
        """Returns fields that the sort key states, and usual values.

        Under a message key the position of the create is the version.
        """
        _, slot, message_id, version = str(item["sk"]).split("#", 3)
        return {
            "slot": int(slot),
            "id": message_id,
            "version": version,
            "origin": version,
            "attempt": 1,
            "generation": 0,
        }

    def key(self, shard: int) -> Key:
        return keys.message_timer(shard, self.slot, self.id, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to deliver (`M#`).

    Attributes:
        nominal: Time at which it should be delivered.
        slot: Slot of its first timer row.
        expires: Time from which it is no longer delivered.
        expires_at: TTL; None while the message is held.
        headers: JSON list of [name, value].
        request_id: Request id of its sender, to recognise a repeat under a key.
        covered_from, covered_to, covered_count: Fires that this one stands for after an outage, itself included.
    """

    id: str
    version: str
    origin: str
    namespace: str
    nominal: int
    slot: int
    topic: str
    payload: bytes
    keyed: bool
    headers: str
    expires_at: int | None = None
    key_text: str | None = None
    message_key: str | None = None
    request_id: str | None = None
    expires: int | None = None
    covered_from: int | None = None
    covered_to: int | None = None
    covered_count: int = 1

    @staticmethod
    def implied(item: Item) -> dict[str, Any]:
        """Returns fields that the sort key states, and usual values: no key, no headers, the nominal time as slot."""
        _, message_id, version = str(item["sk"]).split("#", 2)
        return {
            "id": message_id,
            "version": version,
            "origin": version,
            "slot": item["nominal"],
            "keyed": False,
            "headers": "[]",
            "covered_count": 1,
        }

    def key(self, shard: int) -> Key:
        return keys.message(shard, self.id, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMessage:
    """A message that became due while its scope was suspended (`H#`). It has neither slot nor TTL.

    Attributes:
        slot: Slot of its former timer row.
        maybe_sent: True when an owner may have sent it before, so that a cancel is too late.
    """

    id: str
    version: str
    namespace: str
    origin: str
    slot: int
    attempt: int
    size: int
    maybe_sent: bool = False

    def key(self, shard: int) -> Key:
        return keys.held_message(shard, self.id, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFence:
    """The version below which a message is not delivered (`G#`), with exceptions in `late` and additions in `refused`.

    Attributes:
        live_from: First version that counts; cancels and replacements raise it. Empty when there was none.
        expires_at: TTL, later than that of all covered rows. None when `refused` has versions: their rows may come at
            any time.
        request_id: Id of the send or cancel that raised the fence; a mark stands before the id of a cancel. None
            without an id.
        before: Former `live_from`. Versions from here to `live_from` belong to this fence. When a crash causes a
            repeat, older versions, delivered long ago, do not count as its own.
        through: Latest slot of the versions that a cancel covered; None = none. A repeat of the cancel may find those
            rows gone: the repeated create before it removed them.
        late: Versions that were sent, or may have been, when the cancel came. They are delivered or become dead
            letters, as the cancel's answer said. A later fence covers them or names them again.
        refused: Versions whose create was refused because their request id named another record. A former owner may
            have written their rows, and those writes may arrive at any time.
    """

    id: str
    live_from: str = ""
    expires_at: int | None = None
    request_id: str | None = None
    before: str = ""
    through: int | None = None
    late: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()

    def covers(self, version: str) -> bool:
        """Returns whether this version must not be delivered."""
        return (version < self.live_from and version not in self.late) or version in self.refused

    def key(self, shard: int) -> Key:
        return keys.message_fence(shard, self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageKeyRow:
    """States that a message exists or existed under this key (`K#`).

    It outlives all messages under the key, whichever owner wrote it.
    """

    id: str
    expires_at: int

    def key(self, shard: int) -> Key:
        return keys.message_key_row(shard, self.id)
