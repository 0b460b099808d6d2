"""A stream of messages of every kind, and the client's own book of what must become of each.

Kinds: without any id, with a request id (some sent twice), under a key (some replaced), and with an id and then cancelled.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from tests.support.checkers.cancel_replies import Answer, SecondThought, after_cancel, after_replacement
from tests.support.checkers.messages import Delivery, Sent
from tests.support.cluster.agenda import Agenda
from tests.support.cluster.background import Background
from tests.support.cluster.topic_reader import Arrived
from tests.support.cluster.until import now_ms
from tests.support.cluster.user_client import Acknowledged, Client

NAMESPACE = "orders"
EVERY_S = 0.1
AHEAD_MS = (2_000, 6_000)
"""How far ahead a message's time lies."""
THOUGHT_S = 0.7
"""After this a message is replaced or cancelled, long before its time."""
Kind: TypeAlias = Literal["plain", "id", "id twice", "key", "key replaced", "id cancelled"]
MIX: Mapping[Kind, int] = {"plain": 6, "id": 6, "key": 4, "id twice": 2, "key replaced": 1, "id cancelled": 1}
"""How many of each kind in a round."""


@dataclass(slots=True)
class Booked:
    """A message in the client's book.

    Attributes:
        key: Of the message, or None.
        request_id: Of its request, or None.
        acknowledged: Where the broker put its request; None while it did not say.
        replaced_by, cancelled_by: Request id of the second thought.
        thought_appended_at: When the broker got that, ms since the epoch; None while it did not say.
    """

    number: int
    nominal: int
    key: str | None = None
    request_id: str | None = None
    acknowledged: Acknowledged | None = None
    replaced_by: str | None = None
    cancelled_by: str | None = None
    thought_appended_at: int | None = None

    def thought_taken(self, where: Acknowledged) -> None:
        """The broker has the second thought."""
        self.thought_appended_at = where.appended_at


def cancel_id(number: int) -> str:
    """Returns the request id of a message's cancel."""
    return f"cancel-{number}"


class MessageBook:
    """Sends messages to one topic and keeps the book.

    Attributes:
        booked: All so far.
    """

    def __init__(self, client: Client, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._lock = threading.Lock()
        self.booked: list[Booked] = []

    def send(
        self,
        nominal: int,
        key: str | None = None,
        request_id: str | None = None,
        copies: int = 1,
        receipt: bool = False,
        topic_partition: int | None = None,
        on_acknowledged: Callable[[Acknowledged], None] = lambda _: None,
    ) -> Booked:
        """Sends a message that is due at `nominal`, ms since the epoch."""
        with self._lock:
            message = Booked(len(self.booked) + 1, nominal, key, request_id)
            self.booked.append(message)

        def acknowledged(where: Acknowledged) -> None:
            message.acknowledged = message.acknowledged or where
            on_acknowledged(where)

        request: dict[str, Any] = {
            "type": "message.send",
            "namespace": NAMESPACE,
            "topic": self._topic,
            "deliver_at": instant(nominal),
            "payload": {"number": message.number},
            "receipt": receipt,
        }
        given = {"id": request_id, "key": key}
        request |= {name: text for name, text in given.items() if text is not None}
        for _ in range(copies):
            # Whatever key the record has, or none: requests find their shard by themselves.
            self._client.send("requests", request, key, topic_partition=topic_partition, on_acknowledged=acknowledged)
        return message

    def replace(self, message: Booked, nominal: int) -> None:
        """Sends another message under the same key."""
        message.replaced_by = f"replace-{message.number}"
        name = message.replaced_by
        self.send(nominal, message.key, name, receipt=True, on_acknowledged=message.thought_taken)

    def cancel(self, message: Booked) -> None:
        """Takes a message with a request id back."""
        message.cancelled_by = cancel_id(message.number)
        request = {"type": "message.cancel", "namespace": NAMESPACE, "message_id": message.request_id}
        document = {"id": message.cancelled_by, **request}
        self._client.send("requests", document, key="a cancel", on_acknowledged=message.thought_taken)

    @property
    def of_unknown_fate(self) -> int:
        """How many no broker acknowledged."""
        return sum(message.acknowledged is None for message in list(self.booked))

    def sent(self, receipts: Iterable[Arrived]) -> list[Sent]:
        """Returns what must become of each message, given all receipts as they lie on their topic."""
        answers: dict[str, Answer] = {}
        for receipt in receipts:
            document = receipt.document
            answers.setdefault(document["request_id"], Answer(document["status"], receipt.appended_at))
        return [_sent(message, answers) for message in list(self.booked)]

    def owed(self, deliveries: Iterable[Delivery], receipts: Iterable[Arrived]) -> list[int]:
        """Returns the numbers of messages that still have to come, or to be answered."""
        arrived = {delivery.number for delivery in deliveries}
        return [
            message.number
            for message in self.sent(receipts)
            if message.unanswered is not None or (message.must == "deliver" and message.number not in arrived)
        ]


def _sent(message: Booked, answers: Mapping[str, Answer]) -> Sent:
    sent = _after_thoughts(message, answers)
    answer = answers.get(message.request_id or "")
    is_known = message.acknowledged is not None or (answer is not None and answer.status == "accepted")
    if not is_known and sent.must == "deliver":
        return replace(
            sent, must="may"
        )  # It went with a client that had lost the broker: who knows whether it arrived?
    return sent


def _after_thoughts(message: Booked, answers: Mapping[str, Answer]) -> Sent:
    name = message.cancelled_by or message.replaced_by
    if name is None:
        return Sent(message.number, message.nominal)
    thought = SecondThought(name, message.thought_appended_at is not None, answers.get(name))
    if message.cancelled_by is not None:
        return after_cancel(message.number, message.nominal, thought, answers.get(message.request_id or ""))
    return after_replacement(message.number, message.nominal, thought)


def deliveries_of(records: Sequence[Arrived]) -> list[Delivery]:
    """Returns the sink's records as the judge wants them."""
    return [
        Delivery(
            number=record.document["number"],
            id=record.header("tidegate-id"),
            nominal=_milliseconds(record.header("tidegate-nominal")),
            appended_at=record.appended_at,
        )
        for record in records
    ]


class MessageLoad(Background):
    """Sends messages, of all kinds in turn, until it is left.

    Args:
        book: Of them.
        chance: Of their times.
        every_s: One message in so many seconds.
        burst: So many at once, as much less often.
    """

    def __init__(self, book: MessageBook, chance: random.Random, every_s: float = EVERY_S, burst: int = 1) -> None:
        super().__init__("message load")
        self._burst = burst
        self._book = book
        self._chance = chance
        self._every_s = every_s
        self._thoughts = Agenda()

    def run(self) -> None:
        due = time.monotonic()
        kinds = itertools.cycle([kind for kind, count in MIX.items() for _ in range(count)])
        while not self.stopping.wait(max(0.0, due - time.monotonic())):
            self._thoughts.do_due()
            for kind in itertools.islice(kinds, self._burst):
                self._send(kind)
            due += self._every_s * self._burst
        self._thoughts.do_all()

    def _send(self, kind: Kind) -> None:
        book, number = self._book, len(self._book.booked) + 1
        nominal = now_ms() + self._chance.randint(*AHEAD_MS)
        key, name = f"key-{number}", f"send-{number}"
        match kind:
            case "plain":
                book.send(nominal)
            case "id":
                book.send(nominal, request_id=name)
            case "id twice":
                book.send(nominal, request_id=name, copies=2)
            case "key":
                book.send(nominal, key=key)
            case "key replaced":
                # Far enough that the first version is not due when it is replaced.
                message = book.send(now_ms() + AHEAD_MS[1], key=key)
                self._thoughts.after(THOUGHT_S, lambda: book.replace(message, message.nominal + 1_000))
            case "id cancelled":
                message = book.send(now_ms() + AHEAD_MS[1], request_id=name)
                self._thoughts.after(THOUGHT_S, lambda: book.cancel(message))


def instant(milliseconds: int) -> str:
    """Returns RFC 3339 of ms since the epoch."""
    moment = datetime.fromtimestamp(milliseconds // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment}.{milliseconds % 1_000:03d}Z"


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000)
