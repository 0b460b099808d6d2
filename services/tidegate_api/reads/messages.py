"""Reads the state of a message from its newest row, its message fence, and the shard's delivery position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tidegate_api.cluster_map import MapReader
from tidegate_api.http.problem_responses import not_found
from tidegate_api.reads.view_builders import moment
from tidegate_api.requests.shard_routing import shard_of_request
from tidegate_api.thread_pools import Pools
from tidegate_client.views import MessageView
from tidegate_core.language.requests.requests import MessageCancel
from tidegate_core.language.values.instants import as_datetime
from tidegate_core.messages.one_shot.cancellation import named
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message, MessageFence, MessageName, public_id
from tidegate_core.rows.store_operations import Item, RangeRead
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store


class MessageReads:
    """Reads messages."""

    def __init__(self, store: Store, pools: Pools, cluster: MapReader, clock: Clock) -> None:
        self._store = store
        self._pools = pools
        self._cluster = cluster
        self._clock = clock

    async def one(self, wanted: MessageCancel) -> MessageView:
        """Returns the message that a cancel with the same fields would cancel. Raises ApiProblem (404)."""
        shards = (await self._cluster.current()).shards
        shard = shard_of_request(wanted, "", shards)
        view = await self._pools.read(lambda: self._first_of(shard, named(wanted), wanted.namespace))
        if view is None:
            subject = f"key {wanted.key}" if wanted.key is not None else f"id {wanted.message_id}"
            raise not_found(f"message with {subject} in {wanted.namespace}: does not exist, or its row has expired")
        return view

    def _first_of(self, shard: int, names: Sequence[MessageName], namespace: str) -> MessageView | None:
        views = (self._read(shard, name) for name in names)
        return next((view for view in views if view is not None and view.namespace == namespace), None)

    def _read(self, shard: int, name: MessageName) -> MessageView | None:
        guard_key, progress_key = keys.message_fence(shard, name.id), keys.progress(shard)
        found = self._store.get([guard_key, progress_key])
        guard = found.get(guard_key)
        refused = frozenset[str]() if guard is None else from_item(MessageFence, guard).refused
        low, high = f"{keys.MESSAGE_PREFIX}{name.id}#", f"{keys.MESSAGE_PREFIX}{name.id}#{keys.LAST}"
        page = self._store.query(RangeRead(keys.shard_pk(shard), low, high, limit=1 + len(refused), newest_first=True))
        # A former owner may have written rows of a refused version, for a repeat of the request. They are no message.
        messages = (from_item(Message, item) for item in page.items)
        message = next((each for each in messages if each.version not in refused), None)
        if message is None:
            return None
        # Read after the position: the position passes a held message only when the held message has its row.
        held_key = keys.held_message(shard, message.id, message.version)
        is_held = held_key in self._store.get([held_key])
        state = state_of(message, guard, found.get(progress_key), self._clock.now_ms(), is_held=is_held)
        return MessageView(
            id=public_id(shard, MessageName(message.id, message.keyed), message.version),
            namespace=message.namespace,
            key=message.key_text,
            request_id=message.request_id,
            state=state,
            nominal=as_datetime(message.nominal),
            expires=moment(message.expires),
            topic=message.topic,
            message_key=message.message_key,
            size_bytes=len(message.payload),
        )


def state_of(
    message: Message, guard: Item | None, progress: Item | None, now: int, *, is_held: bool = False
) -> Literal["waiting", "withdrawn", "passed"]:
    """Returns the state of a message as far as stored rows show it.

    A message fence also covers messages that were delivered before they were replaced. So it proves a withdrawal only before the message's
    slot.
    """
    if guard is not None and from_item(MessageFence, guard).covers(message.version):
        return "withdrawn" if message.slot > now else "passed"
    if progress is None or is_held:
        return "waiting"
    slot, last = progress.get("fired_slot", 0), progress.get("fired_id", "")
    assert isinstance(slot, int)
    return "passed" if (message.slot, message.id) <= (slot, str(last)) else "waiting"
