"""What came of it on a bench: everything that was asked and sent, and pictures of the store to compare."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tests.support.builders import RECEIPTS, RUNS, RUNS_DLQ, Doc
from tests.support.harness.decision_harness import rows_of
from tidegate_core.rows.effects import Commit, Effect, LaunchOrder, Notice
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Item, Transaction
from tidegate_memory.store import MemoryStore

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")
OUR_TOPICS = frozenset({RECEIPTS, RUNS, "tidegate.requests.dlq", "tidegate.events.dlq", RUNS_DLQ})


@dataclass(frozen=True, slots=True)
class Sent:
    """A record that was produced."""

    at: int
    topic: str
    key: bytes | None
    value: bytes
    headers: dict[str, str]

    @property
    def document(self) -> Doc:
        document: Doc = json.loads(self.value)
        return document


class Outcomes:
    """Questions to a bench.

    Attributes:
        asked: Everything that was asked, in order.
        sent: Everything that was produced, in order.
    """

    store: MemoryStore
    started: list[LaunchOrder]

    def __init__(self) -> None:
        self.asked: list[Effect] = []
        self.sent: list[Sent] = []

    def all_asked(self, kind: type[R]) -> list[R]:
        return [effect for effect in self.asked if isinstance(effect, kind)]

    def commits(self, name: str) -> list[Transaction]:
        return [each.transaction for each in self.all_asked(Commit) if each.transaction.name == name]

    def notices(self, event: str) -> list[Notice]:
        return [each for each in self.all_asked(Notice) if each.event == event]

    def on(self, topic: str) -> list[Sent]:
        return [each for each in self.sent if each.topic == topic]

    def receipts(self) -> dict[str, Doc]:
        """Returns the receipts by request id; of several the last."""
        return {(each.key or b"").decode(): each.document for each in self.on(RECEIPTS)}

    def status_of(self, request_id: str) -> str | None:
        receipt = self.receipts().get(request_id)
        return None if receipt is None else str(receipt["status"])

    def rows(self, prefix: str) -> list[Item]:
        """Returns the items whose sort key begins so, of all shards and both tables."""
        return rows_of(self.store, prefix)

    def state_of(self, name: str = "nightly") -> ScheduleState | None:
        found = [from_item(ScheduleState, row) for row in self.rows(f"S#flights/{name}")]
        return found[0] if found else None

    def ledger(self) -> list[tuple[str, str, int, str | None]]:
        """Returns (disposition/reason, schedule, nominal, state) of all that has ended."""
        found = [from_item(LedgerRow, row) for row in self.rows("L#")]
        return sorted(
            (f"{row.disposition}/{row.reason}".rstrip("/"), row.name, row.nominal, row.state) for row in found
        )

    def delivered(self) -> list[bytes]:
        """Returns the payloads of delivered messages, in order."""
        return [each.value for each in self.sent if each.topic not in OUR_TOPICS]

    def picture(self) -> dict[str, object]:
        """Returns all that a user or a successor could tell apart, without what a crash may change: epochs, revisions,
        repeats of what is at least once.
        """
        return {
            "main": [_plain(row) for row in self.rows("") if _kind(row) in _COMPARED],
            "ended": [_plain(row) for row in rows_of(self.store, "") if str(row["sk"]).startswith(("L#", "R#"))],
            "receipts": {_sorted_receipt(each.value) for each in self.on(RECEIPTS)},
            "runs": {each.value for each in self.on(RUNS)},
            "delivered": {(each.topic, each.headers["tidegate-id"], each.value) for each in self._messages()},
            "dead": {(each.topic, each.value) for each in self.sent if each.topic.endswith(".dlq")},
            # Sorted: which of several open runs a successor submits first is nobody's promise.
            "started": sorted((order.run_id, order.attempt, order.args, str(order.context)) for order in self.started),
        }

    def summary(self) -> dict[str, object]:
        """Returns what came of it without any instant, for faults that take time (retries after a pause)."""
        ledger = [from_item(LedgerRow, row) for row in self.rows("L#")]
        receipts = [each.document for each in self.on(RECEIPTS)]
        open_rows = [row for row in self.rows("") if str(row["sk"]).split("#")[0] in {"J", "R", "E", "I", "Z"}]
        holders = [(str(row["pk"]), str(row["sk"]), str(row.get("holders", ""))) for row in self.rows("LIM")]
        return {
            "ledger": sorted((row.name, row.job_id, row.disposition, row.reason, str(row.state)) for row in ledger),
            "open": sorted((str(row["pk"]), _without_end(str(row["sk"])), str(row.get("state"))) for row in open_rows),
            "permits": [each for each in sorted(holders) if each[2] not in {"", "frozenset()"}],
            "receipts": sorted({(each["request_id"], each["status"], str(each["version"])) for each in receipts}),
            "delivered": sorted({(each.topic, each.headers["tidegate-id"], each.value) for each in self._messages()}),
            "dead": sorted({(each.topic, each.value) for each in self.sent if each.topic.endswith(".dlq")}),
            "started": sorted(
                (order.run_id, order.attempt, order.args, manifest_text(order)) for order in self.started
            ),
        }

    def _messages(self) -> list[Sent]:
        return [each for each in self.sent if each.topic not in OUR_TOPICS]


def manifest_text(order: LaunchOrder) -> str:
    """Returns the data partitions that a program was told of."""
    rows = order.context["manifest"]
    assert isinstance(rows, list)
    return ",".join(sorted(str(row["partition"]) for row in rows if isinstance(row, dict)))


_COMPARED = frozenset({"S", "DEF", "J", "E", "EC", "I", "LIM", "LIMIT", "RQ", "T", "Z", "G", "PR", "data", "run"})
"""Kinds of items that a picture shows, by the first part of their sort key; messages are compared by their delivery."""


def _kind(row: Item) -> str:
    return str(row["sk"]).split("#")[0].split("/")[0]


_OF_THE_NODE = frozenset({"rev", "w", "node", "host", "driver_host", "boot_id", "external_id"})


def _plain(item: Item) -> tuple[tuple[str, str], ...]:
    told = _sorted_receipt(item["body"]) if str(item["sk"]).startswith("RQ#") else ""
    fields = {name: str(value) for name, value in item.items() if name not in _OF_THE_NODE}
    return tuple(sorted({**fields, "body": told or fields.get("body", "")}.items()))


def _sorted_receipt(body: object) -> str:
    """What a receipt lists is a set: the order in which pending things ended says nothing."""
    assert isinstance(body, str | bytes)
    receipt: Doc = json.loads(body)
    if receipt["discarded"]:
        receipt["discarded"]["jobs"].sort()
    return json.dumps({**receipt, "running": sorted(receipt["running"])}, sort_keys=True)


def _without_end(sk: str) -> str:
    """Returns a row's sort key; of a run that has ended without the instant of its end, which faults move."""
    kind, *parts = sk.split("#")
    return f"R#{parts[-1]}" if kind == "R" else sk
