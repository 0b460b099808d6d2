"""From a fire to the message that it delivers: its schedule's definition says what, the fire says when (DESIGN 5)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidegate_core.engine.operations import Operation
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.targets.message_body import MessageBody
from tidegate_core.messages.recurring.fire_series import Fire
from tidegate_core.messages.wire.due_queue import QueuedMessage, Stage
from tidegate_core.messages.wire.payload_budget import LruCache
from tidegate_core.messages.wire.row_expiry import row_expiry
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import FIRST_VERSION, Message
from tidegate_core.rows.schedule import Definition
from tidegate_core.rows.store_operations import Item, Key

BYTES_KEPT_MAX: Final = 4_000_000
"""Of templates in memory per shard; others are read again for each fire."""
TEMPLATE_BYTES: Final = 1_000
"""Of one, whatever it delivers: its place, its key with namespace and name, its topic."""


@dataclass(frozen=True, slots=True)
class Template:
    """What each fire of a definition delivers, in the form in which it goes out.

    Not the target as it was parsed: of that a payload of small lists and objects has twenty times its bytes in memory.
    """

    topic: str
    payload: bytes
    headers: str
    message_key: str | None
    expire_after: int | None

    @classmethod
    def of(cls, body: MessageBody) -> Template:
        headers = json.dumps(list(body.headers.items()))
        return cls(body.topic, body.payload_bytes, headers, body.message_key, body.expire_after)

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return TEMPLATE_BYTES + len(self.payload) + len(self.headers) + len((self.message_key or "").encode())


class Templates:
    """What recurring messages deliver, as far as it is kept in memory."""

    def __init__(self, messages: ShardMessages) -> None:
        self._messages = messages
        self._kept = LruCache[Key, Template](BYTES_KEPT_MAX)

    def load(self, rows: Sequence[QueuedMessage]) -> Operation[None]:
        """Gives rows their messages; reads definitions that are not in memory, and what a predecessor may have moved."""
        wanted = {row: row.fire for row in rows if row.fire is not None and row.message is None}
        for row in wanted:
            self._messages.payloads.hold(row)
        # Taken now: while the others are read it may be pushed out, and a fire without its definition would be left out.
        templates = {key: self._kept.get(key) for key in map(self._key, wanted.values())}
        missing = [key for key, known in templates.items() if known is None]
        # What the predecessor was refused has a message row: its timer row brings it, not this fire. Where there is none now, none
        # comes any more: whoever writes one demands the epoch.
        moved = {
            row: self._moved_key(fire) for row, fire in wanted.items() if row.slot <= self._messages.maybe_sent_through
        }
        found: dict[Key, Item] = {}
        if missing or moved:
            answer = yield from self._messages.host.read_for_good(
                Read(tuple(dict.fromkeys([*missing, *moved.values()])))
            )
            assert isinstance(answer, Items)
            found = dict(answer.found)
        for key in missing:
            if key in found:
                definition = from_item(Definition, found[key])
                templates[key] = read = Template.of(ScheduleSpec.from_canonical(definition.spec).message)
                self._kept.keep(key, read, read.size)
        for row, fire in wanted.items():
            template = templates[self._key(fire)]
            if row.stage.is_closed:
                continue  # Ended meanwhile: it holds nothing any more.
            if template is not None and not (row in moved and _is_of(found.get(moved[row]), fire)):
                self._messages.payloads.give(row, message_of(fire, template))
            elif row.stage is Stage.READY:
                # Read ahead: it says so again once it is taken. A gap begins behind the last that was taken, not behind this one.
                self._messages.payloads.drop(row)
            else:
                if template is None:
                    self._messages.host.note(
                        "message_row_missing", shard=self._messages.shard, id=row.id, slot=row.slot
                    )
                self._messages.close(row, Stage.GONE)

    def _key(self, fire: Fire) -> Key:
        return keys.definition(self._messages.shard, fire.namespace, fire.name, fire.interval.version)

    def _moved_key(self, fire: Fire) -> Key:
        return keys.message(self._messages.shard, fire.message_id, FIRST_VERSION)


def _is_of(item: Item | None, fire: Fire) -> bool:
    """Whether it is this fire that was refused, and not the same instant of a generation before, or alone, where this one stands for others as
    well: the last of an outage has one id in both.
    """
    if item is None or item["origin"] != fire.interval.origin:
        return False
    return item.get("covered_from") == (None if fire.covered is None else fire.covered.first)


def message_of(fire: Fire, template: Template) -> Message:
    """Returns what a fire delivers: equal whoever computes it."""
    covered = fire.covered
    return Message(
        id=fire.message_id,
        version=FIRST_VERSION,
        origin=fire.interval.origin,
        namespace=fire.namespace,
        nominal=fire.nominal,
        slot=fire.slot,
        topic=template.topic,
        payload=template.payload,
        keyed=False,
        headers=template.headers,
        expires_at=row_expiry(fire.slot),
        message_key=template.message_key,
        expires=None if template.expire_after is None else fire.nominal + template.expire_after,
        covered_from=None if covered is None else covered.first,
        covered_to=None if covered is None else covered.last,
        covered_count=fire.count,
    )
