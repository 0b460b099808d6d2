"""The client's methods for operators: nodes, shards, limits, a stop of all firing, dead letters."""

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
    """Calls for operators of a cluster."""

    # -- nodes and shards ---------------------------------------------------------------------------------------------

    def nodes(self) -> list[NodeView]:
        """Returns the serving processes, and those of the last day that did not end cleanly."""
        return self._transport.ask(Page[NodeView].model_validate, "GET", f"{BASE}/nodes").items

    def node(self, node: str) -> NodeView:
        """Returns a node by owner id, the beginning of one, or name."""
        return self._get(node_path(node), NodeView)

    def drain_node(
        self, node: str, *, force: bool = False, actor: str | None = None, reason: str | None = None
    ) -> NodeView:
        """Orders a node to hand its share over and take none; it obeys within seconds (`NodeView.state`).

        Args:
            node: Owner id, the beginning of one, or name.
            force: Whether to drain even if no other node can take over.
            actor: Who wants it, for the record.
            reason: Why, for the record.
        """
        body = given({"force": force, "actor": actor, "reason": reason})
        return self._transport.ask(NodeView.model_validate, "POST", f"{BASE}{node_path(node)}/drain", body=body)

    def undrain_node(self, node: str) -> NodeView:
        """Withdraws the drain order."""
        return self._transport.ask(NodeView.model_validate, "DELETE", f"{BASE}{node_path(node)}/drain")

    def shards(self, node: str | None = None) -> list[ShardView]:
        """Returns all shards, or those of a node; a cluster has at most 10,000."""
        return self._transport.ask(Page[ShardView].model_validate, "GET", f"{BASE}/shards", query={"node": node}).items

    def shard(self, shard: int, most: int | None = None) -> ShardDetail:
        """Returns a shard with up to `most` limits of its schedules, 1 to 1,000; None uses the API's default, 100."""
        return self._get(f"/shards/{shard}", ShardDetail, page_size=most)

    def limits(self, namespace: str | None = None) -> list[LimitSummary]:
        """Returns the limits in use or with a queue; those with stuck permits first."""
        query = {"namespace": namespace}
        return self._transport.ask(Page[LimitSummary].model_validate, "GET", f"{BASE}/limits", query=query).items

    def limit(self, limit: str, most: int | None = None) -> LimitDetail:
        """Returns a limit by its id, `<namespace>/<scope>/<name>`, with up to `most` holders and waiting jobs each: 1
        to 1,000, default 100.
        """
        return self._get(limit_path(limit), LimitDetail, page_size=most)

    def stop_firing(self, *, request_id: str | None = None, **fields: Any) -> ReceiptView:
        """Stops all firing; the receipt comes when each shard has stopped. `fields`: `actor`, `reason`."""
        return self._write("POST", "/firing/stop", given(fields), {}, request_id)

    def start_firing(self, *, request_id: str | None = None, **fields: Any) -> ReceiptView:
        """Starts all firing from now on. Instants of the stopped span are not caught up; held messages are sent."""
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
        """Yields records that could not be used, the oldest of each topic partition first.

        Args:
            queue: `requests`, `events` or `runs`.
            topic: Topic of the record, or topic that it was to be delivered to.
            error_class: Class such as `invalid` or `undeliverable`.
            namespace: Only letters known to be of this namespace.
            since: Only letters written then or later.
            handled: Whether to include letters that were replayed or dropped.
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
        """Returns a letter with its record's key, value and headers; long ones are cut."""
        return self._get(letter_path(letter), DeadLetterDetail)

    def dead_letter_value(self, letter: str) -> bytes:
        """Returns the whole value of the record."""
        path = f"{BASE}{letter_path(letter)}/value"
        return self._transport.ask(lambda answer: base64.b64decode(answer["base64"]), "GET", path)

    def replay_dead_letter(self, letter: str, **fields: Any) -> DeadLetterAnswer:
        """Produces the record again to its original topic. `fields`: `actor`, `reason`, `again`."""
        return self._deal_with(letter, "replay", fields)

    def drop_dead_letter(self, letter: str, **fields: Any) -> DeadLetterAnswer:
        """Marks the letter as needing no action. `fields`: `actor`, `reason`, `again`."""
        return self._deal_with(letter, "drop", fields)

    def _deal_with(self, letter: str, action: str, fields: Mapping[str, Any]) -> DeadLetterAnswer:
        path = f"{BASE}{letter_path(letter)}/{action}"
        return self._transport.ask(DeadLetterAnswer.model_validate, "POST", path, body=given(fields))
