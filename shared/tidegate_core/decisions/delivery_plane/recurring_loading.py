"""From a fire to the message that it delivers: its schedule's definition says what, the fire says when (DESIGN 5)."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tidegate_core.decisions.delivery_plane.recurring import Fire
from tidegate_core.decisions.delivery_plane.rows import row_expiry
from tidegate_core.decisions.delivery_plane.slots import Slotted
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import Items, Read
from tidegate_core.model.message_target import MessageTarget
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.records.codec import from_item
from tidegate_core.records.messages import FIRST_VERSION, Message
from tidegate_core.records.run_plane import Definition
from tidegate_core.store import keys
from tidegate_core.store.values import Item, Key

if TYPE_CHECKING:
    from tidegate_core.decisions.delivery_plane.plane import DeliveryPlane

BYTES_KEPT_MAX: Final = 2_000_000
"""Payloads of definitions in memory per shard; others are read again for each fire."""


class Templates:
    """What recurring messages deliver, as far as it is kept in memory."""

    def __init__(self, plane: DeliveryPlane) -> None:
        self._plane = plane
        self._kept: OrderedDict[Key, MessageTarget] = OrderedDict()
        self._bytes = 0

    def load(self, rows: Sequence[Slotted]) -> Operation[None]:
        """Gives rows their messages; reads definitions that are not in memory, and what a predecessor may have moved."""
        wanted = {row: row.fire for row in rows if row.fire is not None and row.message is None}
        for row in wanted:
            self._plane.payloads.hold(row)
        # Taken now: while the others are read it may be pushed out, and a fire without its definition would be left out.
        targets = {key: self._kept[key] for key in map(self._key, wanted.values()) if key in self._kept}
        missing = dict.fromkeys(self._key(fire) for fire in wanted.values() if self._key(fire) not in targets)
        # What the predecessor was refused has a message row: its timer row brings it, not this fire. Where there is none now, none
        # comes any more: whoever writes one demands the epoch.
        moved = {
            row: self._moved_key(fire) for row, fire in wanted.items() if row.slot <= self._plane.maybe_sent_through
        }
        found: dict[Key, Item] = {}
        if missing or moved:
            answer = yield from self._plane.host.read_for_good(Read(tuple(dict.fromkeys([*missing, *moved.values()]))))
            assert isinstance(answer, Items)
            found = dict(answer.found)
        targets |= {key: _target(from_item(Definition, found[key])) for key in missing if key in found}
        for row, fire in wanted.items():
            target = targets.get(self._key(fire))
            if row.stage.is_closed:
                continue  # Ended meanwhile: it holds nothing any more.
            if target is None or (row in moved and _is_of(found.get(moved[row]), fire)):
                if target is None:
                    self._plane.host.note("message_row_missing", shard=self._plane.shard, id=row.id, slot=row.slot)
                self._plane.recurring.leave_to_its_rows(row)
            else:
                self._plane.payloads.give(row, message_of(fire, target))
        for key, target in targets.items():
            self._keep(key, target)

    def _keep(self, key: Key, target: MessageTarget) -> None:
        if key in self._kept:
            return
        self._kept[key] = target
        self._bytes += len(target.payload_bytes)
        while self._bytes > BYTES_KEPT_MAX:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped.payload_bytes)

    def _key(self, fire: Fire) -> Key:
        return keys.definition(self._plane.shard, fire.namespace, fire.name, fire.interval.version)

    def _moved_key(self, fire: Fire) -> Key:
        return keys.message(self._plane.shard, fire.message_id, FIRST_VERSION)


def _is_of(item: Item | None, fire: Fire) -> bool:
    """Whether it is this fire that was refused, and not the same instant of a generation before."""
    return item is not None and item["origin"] == fire.interval.origin


def _target(definition: Definition) -> MessageTarget:
    target = ScheduleSpec.from_canonical(definition.spec).target
    assert isinstance(target, MessageTarget)
    return target


def message_of(fire: Fire, target: MessageTarget) -> Message:
    """Returns what a fire delivers: equal whoever computes it."""
    covered = fire.covered
    return Message(
        id=fire.message_id,
        version=FIRST_VERSION,
        origin=fire.interval.origin,
        namespace=fire.namespace,
        nominal=fire.nominal,
        slot=fire.slot,
        topic=target.topic,
        payload=target.payload_bytes,
        keyed=False,
        headers=json.dumps(list(target.headers.items())),
        expires_at=row_expiry(fire.slot),
        message_key=target.message_key,
        expires=None if target.expire_after is None else fire.nominal + target.expire_after,
        covered_from=None if covered is None else covered.first,
        covered_to=None if covered is None else covered.last,
        covered_count=fire.count,
    )
