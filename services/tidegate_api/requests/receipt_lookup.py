"""Finds in the store what became of a request: its receipt, or for a message its row. Blocking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidegate_api.requests.receipt_decoding import ReceiptNotUnderstood, receipt_of
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import MessageSend, Request
from tidegate_core.language.values.derived_ids import message_shard
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message, MessageFence, MessageName, public_id
from tidegate_core.rows.receipt import StoredReceipt
from tidegate_core.rows.store_operations import Item, Key, RangeRead
from tidegate_ports.clock import Clock
from tidegate_ports.store import PartlyRead, Store, StoreUnavailable

VERSIONS_MAX = 50
"""Newest versions of a message that are looked at; without a key there is one for each requests topic that the cluster has had."""


class Sought(NamedTuple):
    """A request that this process sent; `key` is its receipt's, unless it is a message."""

    request: Request
    request_id: str
    shard: int

    @property
    def key(self) -> Key:
        return keys.receipt(self.shard, self.request.namespace, self.request_id)


class StoredAnswers:
    """Reads are consistent; nothing found means not applied yet, or longer ago than 7 days."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def of_all(self, sought: Sequence[Sought]) -> list[Receipt | Exception | None]:
        """Returns the answers to requests that this process sent, in their order; what an id answered for another request is none.

        One read for all of them but messages, each of which is a query. What keeps one from being read stands in its place, and is no
        concern of the others.
        """
        receipts = self._read([each.key for each in sought if not isinstance(each.request, MessageSend)])
        return [self._alone(each, receipts) for each in sought]

    def of_request(self, namespace: str | None, request_id: str, shard: int) -> Receipt | None:
        """Raises ReceiptNotUnderstood."""
        key = keys.receipt(shard, namespace, request_id)
        stored = _settled(self._store.get([key]).get(key))
        return None if stored is None else receipt_of(stored.body, shard)

    def _alone(self, sought: Sought, receipts: Mapping[Key, Item]) -> Receipt | Exception | None:
        try:
            return self._of(sought, receipts)
        except StoreUnavailable:
            raise
        except Exception as bug:  # noqa: BLE001 - whatever it is, who waits for this one is told
            return bug

    def _read(self, wanted: Sequence[Key]) -> Mapping[Key, Item]:
        try:
            return self._store.get(wanted) if wanted else {}
        except PartlyRead as partly:
            if len(partly.unread) == len(set(wanted)):
                raise  # The store answered nothing.
            return partly.found  # A throttled one is not found this time, and keeps no other from being found.

    def _of(self, sought: Sought, receipts: Mapping[Key, Item]) -> Receipt | None:
        request = sought.request
        if isinstance(request, MessageSend):
            return self.of_message(request.namespace, request.key, sought.request_id, sought.shard)
        stored = _settled(receipts.get(sought.key))
        if stored is None or not stored.answers(request):
            return None
        return receipt_of(stored.body, sought.shard)

    def of_message(self, namespace: str, key: str | None, request_id: str, shard: int) -> Receipt | None:
        """For messages the message row is the receipt."""
        name = MessageName.of_request(namespace, request_id) if key is None else MessageName.of_key(namespace, key)
        message = self._version_of(shard, name, request_id)
        if message is None:
            return None
        return Receipt.model_construct(
            request_id=request_id,
            status=ReceiptStatus.ACCEPTED,
            namespace=namespace,
            name=key,
            id=public_id(shard, name, message.version),
            at=self._clock.now_ms(),
        )

    def anywhere(self, namespace: str | None, request_id: str, key: str | None, shards: int) -> Receipt | None:
        """Returns the answer to a request of which only namespace (None where it has none) and id are known, of a message its key as well.

        Raises:
            ReceiptNotUnderstood: There is one that cannot be read, and none that can.
        """
        places = {keys.receipt(shard, namespace, request_id): shard for shard in range(shards)}
        unreadable: ReceiptNotUnderstood | None = None
        for place, item in self._store.get(list(places)).items():
            stored = from_item(StoredReceipt, item)
            if stored.settled:
                try:
                    return receipt_of(stored.body, places[place])
                except ReceiptNotUnderstood as refusal:
                    unreadable = refusal
        if unreadable is not None:
            raise unreadable
        if namespace is None:
            return None  # Messages have one.
        return self.of_message(namespace, key, request_id, message_shard(namespace, key, request_id, shards))

    def _version_of(self, shard: int, name: MessageName, request_id: str) -> Message | None:
        low, high = f"{keys.MESSAGE_PREFIX}{name.id}#", f"{keys.MESSAGE_PREFIX}{name.id}#{keys.LAST}"
        page = self._store.query(RangeRead(keys.shard_pk(shard), low, high, limit=VERSIONS_MAX, newest_first=True))
        found = [message for item in page.items if (message := from_item(Message, item)).request_id == request_id]
        if not found:
            return None
        # Of a repeat of the request a former owner may have written rows, which its successor has refused: they are no message.
        key = keys.message_fence(shard, name.id)
        guard = self._store.get([key]).get(key)
        refused = frozenset[str]() if guard is None else from_item(MessageFence, guard).refused
        return next((message for message in found if message.version not in refused), None)


def _settled(item: Item | None) -> StoredReceipt | None:
    """Returns the stored answer, unless it is still growing: not all that was pending has ended."""
    stored = None if item is None else from_item(StoredReceipt, item)
    return stored if stored is not None and stored.settled else None
