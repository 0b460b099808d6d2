"""The client's methods for operators: nodes, shards, a stop of all firing, dead letters."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tidegate_client.api_calls import BASE, Calls, given, text_of
from tidegate_client.resource_paths import letter_path, limit_path, node_path
from tidegate_client.views import (
    DeadLetterAnswer,
    DeadLetterDetail,
    DeadLetterView,
    LimitDetail,
    LimitSummary,
    NodeView,
    Page,
    ReceiptView,
    ShardDetail,
    ShardView,
)


class OperatorCalls(Calls):
    """What somebody asks who keeps a cluster running."""

    # -- nodes and shards ---------------------------------------------------------------------------------------------

    def nodes(self) -> list[NodeView]:
        """The processes that serve, and those of the last day that did not end well."""
        return self._transport.ask(Page[NodeView].model_validate, "GET", f"{BASE}/nodes").items

    def node(self, node: str) -> NodeView:
        """By owner id, the beginning of one, or name."""
        return self._get(node_path(node), NodeView)

    def drain_node(
        self, node: str, *, force: bool = False, actor: str | None = None, reason: str | None = None
    ) -> NodeView:
        """Orders a node to hand everything over and to take nothing; it obeys within seconds (`NodeView.state`).

        Args:
            node: See `node`.
            force: Also when no other node is there to take over.
            actor: Who wants it, for the record.
            reason: Why, for the record.
        """
        body = given({"force": force, "actor": actor, "reason": reason})
        return self._transport.ask(NodeView.model_validate, "POST", f"{BASE}{node_path(node)}/drain", body=body)

    def undrain_node(self, node: str) -> NodeView:
        """Takes the order back."""
        return self._transport.ask(NodeView.model_validate, "DELETE", f"{BASE}{node_path(node)}/drain")

    def shards(self, node: str | None = None) -> list[ShardView]:
        """All shards, or those of a node; a cluster has at most 10,000."""
        return self._transport.ask(Page[ShardView].model_validate, "GET", f"{BASE}/shards", query={"node": node}).items

    def shard(self, shard: int, most: int | None = None) -> ShardDetail:
        """With so many limits of its schedules, 1 to 1,000; the API's own number, 100, where none is named."""
        return self._get(f"/shards/{shard}", ShardDetail, page_size=most)

    def limits(self, namespace: str | None = None) -> list[LimitSummary]:
        """Limits that somebody holds or waits for; those with stuck permits first."""
        query = {"namespace": namespace}
        return self._transport.ask(Page[LimitSummary].model_validate, "GET", f"{BASE}/limits", query=query).items

    def limit(self, limit: str, most: int | None = None) -> LimitDetail:
        """By its id, `<namespace>/<scope>/<name>`: who holds its permits, and who waits. So many of each, 1 to 1,000; 100 where none is named."""
        return self._get(limit_path(limit), LimitDetail, page_size=most)

    def stop_firing(self, *, request_id: str | None = None, **fields: Any) -> ReceiptView:
        """Stops all firing; the receipt comes when each shard has stopped. `fields`: `actor`, `reason`."""
        return self._write("POST", "/firing/stop", given(fields), {}, request_id)

    def start_firing(self, *, request_id: str | None = None, **fields: Any) -> ReceiptView:
        """Lets all go on from now: what was due meanwhile is not made up for, messages that were held back go out."""
        return self._write("POST", "/firing/start", given(fields), {}, request_id)

    # -- dead letters -------------------------------------------------------------------------------------------------

    def dead_letters(
        self,
        queue: str | None = None,
        *,
        topic: str | None = None,
        error_class: str | None = None,
        namespace: str | None = None,
        since: datetime | None = None,
        handled: bool = False,
    ) -> Iterator[DeadLetterView]:
        """Records that could not be used, the oldest of each topic partition first.

        Args:
            queue: `requests`, `events` or `runs`.
            topic: Where the record stood, or was to be delivered.
            error_class: Such as `invalid` or `undeliverable`.
            namespace: Those that are known to be of this one.
            since: Given up then or later.
            handled: Also those that were replayed or dropped.
        """
        query = {
            "queue": queue,
            "topic": topic,
            "error_class": error_class,
            "namespace": namespace,
            "since": text_of(since),
            "all": "true" if handled else None,
        }
        return self._all("/dlq", DeadLetterView, query)

    def dead_letter(self, letter: str) -> DeadLetterDetail:
        """A letter with its record's key, value and headers, long ones cut."""
        return self._get(letter_path(letter), DeadLetterDetail)

    def dead_letter_value(self, letter: str) -> bytes:
        """The value of the record, all of it."""
        path = f"{BASE}{letter_path(letter)}/value"
        return self._transport.ask(lambda answer: base64.b64decode(answer["base64"]), "GET", path)

    def replay_dead_letter(self, letter: str, **fields: Any) -> DeadLetterAnswer:
        """Has the record produced again to where it stood. `fields`: `actor`, `reason`, `again`."""
        return self._deal_with(letter, "replay", fields)

    def drop_dead_letter(self, letter: str, **fields: Any) -> DeadLetterAnswer:
        """Says that nothing is to be done about it. `fields`: `actor`, `reason`, `again`."""
        return self._deal_with(letter, "drop", fields)

    def _deal_with(self, letter: str, action: str, fields: Mapping[str, Any]) -> DeadLetterAnswer:
        path = f"{BASE}{letter_path(letter)}/{action}"
        return self._transport.ask(DeadLetterAnswer.model_validate, "POST", path, body=given(fields))
