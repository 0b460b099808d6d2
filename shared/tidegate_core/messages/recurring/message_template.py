"""Builds the message of a fire: the schedule's definition gives the content, the fire gives the time.

Delivery loads fires here, as it loads payloads of stored rows. This module reads definitions and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidegate_core.engine.operations import Operation
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.targets.message_target import MessageBody
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
"""Bytes of templates in memory per shard; other templates are read again for each fire."""
TEMPLATE_BYTES: Final = 1_000
"""Bytes of a template without payload and headers: its entry, its key with namespace and name, its topic."""


@dataclass(frozen=True, slots=True)
class Template:
    """The content that each fire of a definition delivers, in its produced form.

    The parsed target is not kept: in memory, a payload of small lists and objects takes twenty times its bytes.
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
        """Approximate bytes in memory."""
        return TEMPLATE_BYTES + len(self.payload) + len(self.headers) + len((self.message_key or "").encode())


class Templates:
    """Templates of recurring messages. One per shard."""

    def __init__(self, messages: ShardMessages) -> None:
        self._messages = messages
        self._kept = LruCache[Key, Template](BYTES_KEPT_MAX)

    def load(self, rows: Sequence[QueuedMessage[Fire]]) -> Operation[None]:
        """Sets the messages of fires; reads missing definitions, and message rows of fires that a predecessor may have moved."""
        wanted = {row: row.fire for row in rows if row.fire is not None and row.message is None}
        for row in wanted:
            self._messages.payloads.hold(row)
        # Read from the cache now: the reads below may push a template out, and a fire without its template would be closed.
        templates = {key: self._kept.get(key) for key in map(self._key, wanted.values())}
        missing = [key for key, known in templates.items() if known is None]
        # A fire that the broker refused a predecessor has a message row: its timer row delivers it, not this fire. If the row is
        # missing now, it never comes: its write is conditional on the epoch.
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
                continue  # It ended during the read, and its bytes are free.
            if template is not None and not (row in moved and _is_of(found.get(moved[row]), fire)):
                self._messages.payloads.give(row, message_of(fire, template))
            elif row.stage is Stage.READY:
                # Read ahead only: the delivery finds the same. A gap begins after the last fire that was taken, not after this one.
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
    """Returns whether the message row belongs to this very fire.

    The same instant may have been refused under an earlier generation, or as a single occurrence: the last occurrence of an
    outage has the same id alone and in the delivery that covers the outage.
    """
    if item is None or item["origin"] != fire.interval.origin:
        return False
    return item.get("covered_from") == (None if fire.covered is None else fire.covered.first)


def message_of(fire: Fire, template: Template) -> Message:
    """Returns the message of a fire; all owners get the same one."""
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
