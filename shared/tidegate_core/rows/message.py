"""Records of the delivery plane: timer row, message row, guard, presence row (DESIGN 5).

Rows are written in batches without conditions, to keys that contain their version: a late or repeated write is identical to
the first, or inert. Only guards are conditional.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tidegate_core.language.requests.message_requests import MAX_PAYLOAD_BYTES
from tidegate_core.language.values.log_position import FIRST_POSITION
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Item, Key

FIRST_VERSION = "-"
"""Version of a message without a key, and of a recurring one's fire: below all positions."""
FOR_EVER = "~"
"""Guard of a cancelled message that can never be sent again: above every version."""


class MessageName(NamedTuple):
    """How a message is known inside of its shard.

    Attributes:
        id: 26 characters for the key, the request id, or the position.
        keyed: Replaceable: each send under the key is a further version.
    """

    id: str
    keyed: bool

    @classmethod
    def of_key(cls, namespace: str, key: str) -> MessageName:
        return cls(keys.text_hash("key", namespace, key), True)

    @classmethod
    def of_request(cls, namespace: str, request_id: str) -> MessageName:
        # Nothing is kept in mind: each has one of its own.
        return cls(keys.text_hash_once("request", namespace, request_id), False)


def version_without_key(topic_id: str, first_topic_id: str) -> str:
    """Returns the version of a message under its sender's request id. All records of one requests topic have one, so that a repeat meets
    the row of the first; a topic that was made anew has another one, so that what is still written of a record that went with the old
    topic, however late, replaces nothing.

    Args:
        topic_id: Of the record's topic.
        first_topic_id: Of the cluster's first one.
    """
    return FIRST_VERSION if topic_id == first_topic_id else FIRST_POSITION._replace(topic_id=topic_id).text()


def public_id(shard: int, name: MessageName, version: str) -> str:
    """Returns the id that the delivered record carries: stable over retries and repeats, different after a replacement."""
    return f"{shard:04d}-{keys.text_hash_once(name.id, version) if name.keyed else name.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTimer:
    """`D#`: a message's slot, without payload.

    Attributes:
        slot: `deliver_at`, or the first one behind what was sent and what a checkpoint covers; the nominal instant never
            changes, the slot may.
        id, version: Name the message row.
        origin: Position of its create; a row at or beyond the position at the fence is the replay's to bring.
        attempt: 1 for the first delivery.
        size: Bytes of the payload (an older node's row does not say it: the largest).
        ref, generation: Of the recurring message that this is an occurrence of; live while the schedule has this generation.
        covered: Occurrences that this one stands for, itself included, after an outage; None for itself alone.
        maybe_sent: True where somebody may have sent it before it came to this slot: a cancel is too late.
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
        """Returns what the row's sort key tells, and what most rows have; under a key the create's position is the version."""
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
    """`M#`: what is delivered.

    Attributes:
        nominal: When it should be delivered.
        slot: Of its first timer row.
        expires: Not delivered any more from this instant on.
        expires_at: None while it is held back.
        headers: JSON list of [name, value].
        request_id: Of its sender, to recognise a repeat under a key.
        covered_from, covered_to, covered_count: Occurrences that this one stands for, itself included, after an outage.
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
        """Returns what the row's sort key tells, and what most rows have: no key, no headers, their own time for a slot."""
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
    """`H#`: a message whose time came while its namespace was suspended; it has no slot, and no time to live.

    Attributes:
        slot: Of the timer row that it was.
        maybe_sent: Somebody may have sent it before: a cancel is too late.
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
    """`G#`: versions below `live_from` are not delivered, but for those for which its cancel came too late, nor those that were
    refused one by one.

    Attributes:
        live_from: Raised by cancels and replacements; "" where there was none.
        expires_at: Later than that of all that it covers; None where some were refused: how late those come nobody knows.
        request_id: Of the send that raised it as a replacement, or of the cancel, behind a mark; None where it had no id.
        before: `live_from` as it was before: what lies in between is what this guard was raised for. Whoever does it again
            after a crash would else take older versions, delivered long ago, for its own.
        through: Latest slot of what a cancel covered; None = nothing. Rows that it covered may be gone when it is done again:
            the create in front of it, done again too, removes them.
        late: Versions that were sent, or may have been, when its cancel came: they are delivered, or become dead letters, as the
            cancel was told. A guard that is raised over it covers them, or names them again.
        refused: Versions whose create was refused for another record of its request, when a former owner may have written
            their rows already: those may come at any time.
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
        """Whether this version is not to be delivered."""
        return (version < self.live_from and version not in self.late) or version in self.refused

    def key(self, shard: int) -> Key:
        return keys.message_fence(shard, self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageKeyRow:
    """`K#`: there is, or was, a message under this key. Whoever writes it, and however late, it outlives all of them."""

    id: str
    expires_at: int

    def key(self, shard: int) -> Key:
        return keys.message_key_row(shard, self.id)
