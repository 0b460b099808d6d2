"""Reads the status rows of nodes, and writes drain orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tidegate_api.http.problem_responses import ApiProblem, not_found
from tidegate_api.reads.node_status import read_cards, read_owners
from tidegate_api.thread_pools import Pools
from tidegate_client.views import NodeView
from tidegate_core.language.values.instants import as_datetime
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.node_status import Absence, DrainOrder, NodeStatus, absences, may_be_gone
from tidegate_core.rows.store_operations import Delete, Put
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store, StoreUnavailable

OWNER_CHARACTERS_MIN: Final = 4
"""Characters of the beginning of an owner id; fewer would match many ids."""


class NodeReads:
    """Reads nodes and writes drain orders. Orders are unconditional writes: the newest counts, and a node obeys within seconds."""

    def __init__(self, store: Store, pools: Pools, clock: Clock) -> None:
        self._store = store
        self._pools = pools
        self._clock = clock

    async def all(self) -> list[NodeView]:
        """Returns nodes by name: nodes that serve, and nodes of the last day that did not end cleanly."""
        cards = await self.cards()
        ordered = await self._ordered(cards)
        absent = await self._absences(cards)
        return [_view(card, card.owner in ordered, absent.get(card.owner)) for card in cards]

    async def one(self, name: str) -> NodeView:
        """Returns the node with this owner id, beginning of an id, or name. Raises ApiProblem: 404; 409 if several match."""
        cards = await self.cards()
        card = self._found(name, cards)
        absent = await self._absences(cards)
        return _view(card, card.owner in await self._ordered([card]), absent.get(card.owner))

    async def drain(self, name: str, actor: str | None, reason: str | None, *, force: bool) -> NodeView:
        """Orders a node to hand over its shards.

        Raises:
            ApiProblem: 404; 409 if several nodes match, the node is silent, or no other node can take over.
        """
        card, now = self._found(name, await self.cards()), self._clock.now_ms()
        if card.is_silent(now):
            raise ApiProblem(409, f"node {card.node} ({card.owner}) is silent and would not obey; end its process")
        order = DrainOrder(at=now, actor=actor, reason=reason)
        key = order.key(card.owner)
        if not force:
            await self._check_others(card)
        await self._write(Put(key, {**to_item(order, key), "expires_at": card.expires_at}))
        if not force:
            # Checked again after the write: if two requests drain the last two nodes at once, at least one sees the other's order.
            try:
                await self._check_others(card)
            except ApiProblem:
                await self._write(Delete(key))
                raise
        return _view(card, True, None)

    async def undrain(self, name: str) -> NodeView:
        """Deletes the drain order, if there is one. Raises as `one`."""
        cards = await self.cards()
        card = self._found(name, cards)
        await self._write(Delete(keys.drain_order(card.owner)))
        return _view(card, False, (await self._absences(cards)).get(card.owner))

    async def cards(self) -> list[NodeStatus]:
        """Returns all status rows, by name."""
        return await self._pools.read(lambda: read_cards(self._store, self._clock.now_ms()))

    def _found(self, name: str, cards: Iterable[NodeStatus]) -> NodeStatus:
        found = [
            card
            for card in cards
            if card.node == name or (len(name) >= OWNER_CHARACTERS_MIN and card.owner.startswith(name))
        ]
        if len(found) > 1:
            # After a kill and a restart both processes have a status row with this name; the running one is meant.
            now = self._clock.now_ms()
            found = [card for card in found if not card.is_silent(now)] or found
        if not found:
            raise not_found(f"node {name}: does not exist; tidegate node list shows the nodes")
        if len(found) > 1:
            ids = ", ".join(card.owner for card in found)
            raise ApiProblem(409, f"node {name}: matches several nodes; use an id: {ids}")
        return found[0]

    async def _check_others(self, card: NodeStatus) -> None:
        """Raises ApiProblem if no other node could take over the shards of this node."""
        now = self._clock.now_ms()
        others = [each for each in await self.cards() if each.owner != card.owner and not each.is_silent(now)]
        # An order counts from its write, not from the time at which its node reports it.
        ordered = await self._ordered(others)
        if not any(each.owner not in ordered and not each.drained for each in others):
            detail = "no other node can take over, so nothing would fire; start one, or use --force (force=true)"
            raise ApiProblem(409, f"node {card.node}: {detail}")

    async def _absences(self, cards: list[NodeStatus]) -> Mapping[str, Absence]:
        now = self._clock.now_ms()
        owners = await self._pools.read(lambda: read_owners(self._store)) if may_be_gone(cards, now) else None
        return absences(cards, now, owners)

    async def _ordered(self, cards: Iterable[NodeStatus]) -> frozenset[str]:
        wanted = {keys.drain_order(card.owner): card.owner for card in cards}
        found = await self._pools.read(lambda: self._store.get(list(wanted))) if wanted else {}
        return frozenset(wanted[key] for key in found)

    async def _write(self, action: Put | Delete) -> None:
        if await self._pools.read(lambda: self._store.write([action])):
            raise StoreUnavailable("the drain order was not written")


def _view(card: NodeStatus, ordered: bool, absent: Absence | None) -> NodeView:
    return NodeView(
        id=card.owner,
        name=card.node,
        state=(
            absent
            if absent is not None
            else ("draining" if card.held or not card.drained else "drained")
            if ordered
            else ("not_ready" if card.unready else "ready")
        ),
        version=card.version,
        tzdata=card.tzdata,
        started=as_datetime(card.started_at),
        seen=as_datetime(card.seen),
        clock_offset_ms=card.clock_offset_ms,
        topic_partitions=list(card.held),
        shards=card.shards,
        unready=list(card.unready),
    )
