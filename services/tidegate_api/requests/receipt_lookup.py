"""Finds the stored answer to a request: its receipt, or for a message its row. It blocks and writes nothing."""

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
"""Newest versions of a message that are read. A message without a key has one version for each requests topic that the cluster has had."""


class Sought(NamedTuple):
    """A request that this process sent; `key` is the key of its receipt, unless it is a message."""

    request: Request
    request_id: str
    shard: int

    @property
    def key(self) -> Key:
        return keys.receipt(self.shard, self.request.namespace, self.request_id)


class StoredAnswers:
    """Reads stored answers consistently. A missing answer means: the request is not applied, or it was applied more than 7 days ago."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def of_all(self, sought: Sequence[Sought]) -> list[Receipt | Exception | None]:
        """Returns the answers to requests of this process, in their order. An answer to another request with the same id does not count.

        Receipts are read together; each message needs a query. If one answer cannot be read, its exception takes its place and the others
        are not affected.
        """
        receipts = self._read([each.key for each in sought if not isinstance(each.request, MessageSend)])
        return [self._alone(each, receipts) for each in sought]

    def of_request(self, namespace: str | None, request_id: str, shard: int) -> Receipt | None:
        """Returns the stored receipt of an id, or None. Raises ReceiptNotUnderstood."""
        key = keys.receipt(shard, namespace, request_id)
        stored = _settled(self._store.get([key]).get(key))
        return None if stored is None else receipt_of(stored.body, shard)

    def _alone(self, sought: Sought, receipts: Mapping[Key, Item]) -> Receipt | Exception | None:
        try:
            return self._of(sought, receipts)
        except StoreUnavailable:
            raise
        except Exception as bug:  # noqa: BLE001 - any error goes to the client that waits for this answer
            return bug

    def _read(self, wanted: Sequence[Key]) -> Mapping[Key, Item]:
        try:
            return self._store.get(wanted) if wanted else {}
        except PartlyRead as partly:
            if len(partly.unread) == len(set(wanted)):
                raise  # The store answered nothing.
            return partly.found  # A throttled receipt is read at the next check; the others are found now.

    def _of(self, sought: Sought, receipts: Mapping[Key, Item]) -> Receipt | None:
        request = sought.request
        if isinstance(request, MessageSend):
            return self.of_message(request.namespace, request.key, sought.request_id, sought.shard)
        stored = _settled(receipts.get(sought.key))
        if stored is None or not stored.answers(request):
            return None
        return receipt_of(stored.body, sought.shard)

    def of_message(self, namespace: str, key: str | None, request_id: str, shard: int) -> Receipt | None:
        """Returns a receipt made from the message's row, or None."""
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
        """Returns the answer to a request by namespace and id, searching all shards. The namespace may be None; a message also needs its
        key.

        Raises:
            ReceiptNotUnderstood: The only receipt cannot be read.
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
            return None  # Every message has a namespace.
        return self.of_message(namespace, key, request_id, message_shard(namespace, key, request_id, shards))

    def _version_of(self, shard: int, name: MessageName, request_id: str) -> Message | None:
        low, high = f"{keys.MESSAGE_PREFIX}{name.id}#", f"{keys.MESSAGE_PREFIX}{name.id}#{keys.LAST}"
        page = self._store.query(RangeRead(keys.shard_pk(shard), low, high, limit=VERSIONS_MAX, newest_first=True))
        found = [message for item in page.items if (message := from_item(Message, item)).request_id == request_id]
        if not found:
            return None
        # A former owner may have written rows for a repeat of the request. If its successor refused them, they are no message.
        key = keys.message_fence(shard, name.id)
        guard = self._store.get([key]).get(key)
        refused = frozenset[str]() if guard is None else from_item(MessageFence, guard).refused
        return next((message for message in found if message.version not in refused), None)


def _settled(item: Item | None) -> StoredReceipt | None:
    """Returns the stored answer, or None while it is incomplete because some of its jobs or runs have not ended."""
    stored = None if item is None else from_item(StoredReceipt, item)
    return stored if stored is not None and stored.settled else None
