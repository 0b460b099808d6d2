"""Watches every write that the store accepts (I5): what a stale owner writes must be refused, positions and guards only rise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from tests.simulation.world.observations import UNTIL, UPSTREAM, Author, EndSeen, Record, UpstreamSeen
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.outage import outages_of
from tidegate_core.rows.receipt import StoredReceipt
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Action, Check, Delete, Key, Put, RangeRead, Transaction
from tidegate_core.writes.fencing import cursor_of
from tidegate_memory.store import BeforeImages, MemoryStore

OWNERLESS = frozenset({"start", "finished", "outputs", "raise_index"})


def _is_handed_over(action: Action) -> bool:
    """Inbox rows are put into anybody's shard, and so are rows of kind `L`, by whoever uses a key's limit; waiter rows are put, and
    removed, by the owners of their jobs.
    """
    if isinstance(action, Check) or action.key.sk.startswith("IW#"):
        return True
    if not isinstance(action, Put):
        return False
    return action.key.sk.startswith("I#") or (action.key.sk.startswith("T#") and action.item["kind"] == "L")


class Watched(Protocol):
    """A store that can be watched, and its clock."""

    @property
    def memory(self) -> MemoryStore: ...

    @property
    def now(self) -> int: ...


class StoreMonitor:
    """Knows from the accepted raises and acquires whose write may still be accepted; it trusts no condition."""

    def __init__(self, store: Watched, record: Record) -> None:
        self._store = store
        self._record = record
        self._queued: dict[int, set[str]] = {}
        store.memory.on_applied = self._applied

    def _applied(self, written: Transaction | Sequence[Put | Delete], before: BeforeImages) -> None:
        self._note_queues(written.actions if isinstance(written, Transaction) else written)
        if not isinstance(written, Transaction):
            return
        self._check_witness(written)
        self._note_evidence(written, before)
        self._note_outages(written, before)
        self._note_jobs(written)
        self._note_positions(written, before)
        self._note_upstreams(written)
        self._note_ends(written)
        self._check_pacing(written, before)
        self._check_ends(written)
        if written.name == "start":
            runs = [before[action.key] for action in written.actions if action.key.sk.startswith("R#")]
            self._record.past_gate |= {(str(run["id"]), int(str(run["attempt"]))) for run in runs if run is not None}
        if written.name in OWNERLESS:
            return
        author = Author.of(written.token)
        if written.name in {"raise", "acquire"}:
            for action in written.actions:
                self._rises(written, action.key, "epoch", before)
                self._record.holders[action.key.pk] = author
                self._record.taken[action.key.pk].append((self._store.now, author))
            return
        if written.name == "guard":
            self._rises(written, written.actions[0].key, "live_from", before)
        for pk in self._fenced_by(written):
            holder = self._record.holders.get(pk)
            if holder is None or not author.follows(holder):
                self._fail(f"I5: {written.name} {written.token} was accepted on {pk}, which {holder} holds")
        if written.name == "cursor":
            self._rises(written, written.actions[0].key, "next", before)

    def _note_queues(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Check) or not action.key.sk.startswith("I#"):
                continue
            shard = int(action.key.pk.removeprefix("SH#"))
            queued = self._queued.setdefault(shard, set())
            was_empty = not queued
            origin = action.key.sk.rsplit("#", 1)[1]
            if isinstance(action, Put):
                queued.add(action.key.sk)
                self._record.inboxed[origin] = None
            elif isinstance(action, Delete) and action.key.sk in queued:
                queued.discard(action.key.sk)
                self._record.inboxed[origin] = self._store.now
            if was_empty == bool(queued):
                self._record.queues[shard].append((self._store.now, not queued))

    def _note_evidence(self, written: Transaction, before: BeforeImages) -> None:
        """What was counted is judged in the end, when neither evidence nor entries are there any more."""
        evidence = self._record.evidence
        moved: set[str] = set()
        for action in written.actions:
            kind = action.key.sk.split("#", 1)[0]
            if isinstance(action, Put) and kind == "EC":
                seen = evidence[str(action.item["evidence_id"])]
                seen.chunks.append(str(action.item["entries"]))
                seen.taken.append(self._store.now)
            elif isinstance(action, Put) and kind in {"E", "J"}:
                seen = evidence[str(action.item["id"])]
                seen.schedule, seen.version = str(action.item["name"]), int(str(action.item["version"]))
                if kind == "E":
                    moved.add(str(action.item["id"]))
        for key in (action.key for action in written.actions if isinstance(action, Delete)):
            item = before.get(key) if key.sk.startswith("E#") else None
            if item is not None and str(item["id"]) not in moved:  # What waited for a tick moves to its instance.
                evidence[str(item["id"])].gone = self._store.now

    def _note_jobs(self, written: Transaction) -> None:
        """Their times are their owner's, in ms: what one transaction makes is of one time, and its actions are in their order."""
        for action in written.actions:
            kind = action.key.sk.split("#", 1)[0]
            if isinstance(action, Put) and kind in {"J", "R", "L"}:
                version = int(str(action.item["version"]))
                self._record.jobs.setdefault(str(action.item["job_id" if kind == "L" else "id"]), version)

    def _note_upstreams(self, written: Transaction) -> None:
        """Nobody is told of it by a receipt: the stored answers say what was pruned, and until when it ended things."""
        puts = [action.item for action in written.actions if isinstance(action, Put)]
        for item in (each for each in puts if str(each.get("request_id")).startswith(UPSTREAM)):
            answer = from_item(StoredReceipt, item)
            receipt = json.loads(answer.body)
            seen = self._record.upstreams.get(answer.request_id)
            if seen is None and receipt["status"] == "accepted":
                moved = next(each for each in puts if each["sk"] == f"S#{receipt['namespace']}/{receipt['name']}")
                state = from_item(ScheduleState, moved)
                ended = state.status == "deleted"
                upstream = (state.reason or "").split(",")[0] if ended else state.gone[-1]
                seen = UpstreamSeen(state.name, upstream.split("/")[1], self._store.now, state.version, ended)
                self._record.upstreams[answer.request_id] = seen
            if seen is not None and answer.settled and seen.done is None:
                seen.done, seen.running = self._store.now, tuple(receipt.get("running") or ())

    def _note_ends(self, written: Transaction) -> None:
        """Nobody is told of these either, and which requests came before and which behind them the order of the answers says."""
        for action in written.actions:
            if not isinstance(action, Put) or not action.key.sk.startswith("RQ#"):
                continue
            request_id = str(action.item["request_id"])
            place = self._record.answered.setdefault(request_id, len(self._record.answered))
            if not request_id.startswith(UNTIL):
                continue
            answer = from_item(StoredReceipt, action.item)
            receipt = json.loads(answer.body)
            seen = self._record.ends.get(request_id)
            if seen is None and receipt["status"] == "accepted":
                seen = EndSeen(receipt["name"], int(request_id.split("/")[1]), self._store.now, place)
                self._record.ends[request_id] = seen
            if seen is not None and answer.settled and seen.done is None:
                seen.done = self._store.now

    def _note_outages(self, written: Transaction, before: BeforeImages) -> None:
        """A fact is written once: nothing takes it back, makes it shorter, or writes it beside itself."""
        for key in (action.key for action in written.actions if action.key.sk == "PROGRESS"):
            old, new = outages_of(before.get(key)), outages_of(self._store.memory.look(key))
            if old == new:
                continue
            known = self._record.outages[int(key.pk.removeprefix("SH#"))]
            for fact in new:
                known.setdefault(fact, len(self._record.jobs))
            apart = all(first.end < second.begin for first, second in pairwise(new))
            if not apart or any(
                fact.begin != was.begin or fact.end < was.end for was, fact in zip(old, new, strict=False)
            ):
                self._fail(f"I1: {written.name} {written.token} made of the facts {old} of {key.pk} {new}")

    def _note_positions(self, written: Transaction, before: BeforeImages) -> None:
        for key in (action.key for action in written.actions if action.key.sk == "PROGRESS"):
            slot = (self._store.memory.look(key) or {}).get("fired_slot")
            if isinstance(slot, int) and slot != (before.get(key) or {}).get("fired_slot"):
                self._record.passed[int(key.pk.removeprefix("SH#"))].append((self._store.now, slot))
        for key in (action.key for action in written.actions if action.key.sk == "TP"):
            item, was = self._store.memory.look(key), before.get(key)
            if item is None:
                continue
            position = cursor_of(key, item)
            self._record.read[key.pk].append((self._store.now, position.next))
            for offset in set() if was is None else {*cursor_of(key, was).open} - {*position.open}:
                self._record.closed[key.pk, offset] = (self._store.now, Author.of(written.token))

    def _check_pacing(self, written: Transaction, before: BeforeImages) -> None:
        """What makes up for the past runs one at a time, however long that takes (SEMANTICS 3.5)."""
        for action in written.actions:
            if not isinstance(action, Put) or not action.item.get("catch_up") or before.get(action.key) is not None:
                continue
            if action.key.sk.startswith("R#"):
                runs = self._store.memory.query(RangeRead(action.key.pk, "R#", f"R#{keys.LAST}")).items
                mine = (action.item["namespace"], action.item["name"])
                of_past = [run["id"] for run in runs if run.get("catch_up") and (run["namespace"], run["name"]) == mine]
                if len(of_past) > 1:
                    self._fail(f"pacing: {written.name} began {action.key.sk[2:]} of {mine[1]!s} beside {of_past}")

    def _check_ends(self, written: Transaction) -> None:
        """A run has its permits for as long as its program runs (I4): neither is it over, nor does an attempt follow."""
        for action in written.actions:
            if isinstance(action, Check) or not action.key.sk.startswith("R#") or action.key.table != "main":
                continue
            present = (self._store.memory.look(action.key) or {}).get("attempt")
            run_id = action.key.sk.removeprefix("R#")
            for body in self._record.bodies:
                if body.run_id == run_id and body.end is None and body.attempt != present:
                    self._fail(f"I4: {written.name} ended attempt {body.attempt} of {run_id}, and its program runs")

    def _check_witness(self, written: Transaction) -> None:
        """A lost answer is settled by reading the witness, so it has to say who wrote it."""
        if written.witness is not None:
            item = self._store.memory.look(written.witness)
            if item is None or item.get("w") != written.token:
                self._fail(f"{written.name} {written.token} left its witness {written.witness} without its token")

    def _fenced_by(self, written: Transaction) -> list[str]:
        """Returns the partition keys whose holder alone may send this."""
        if written.name == "cursor":
            return [written.actions[0].key.pk]
        pks = [
            action.key.pk
            for action in written.actions
            if action.key.pk.startswith("SH#") and not _is_handed_over(action)
        ]
        return sorted(set(pks))

    def _rises(self, written: Transaction, key: Key, name: str, before: BeforeImages) -> None:
        old, new = (before.get(key) or {}).get(name), (self._store.memory.look(key) or {}).get(name)
        fell = new < old if isinstance(old, int) and isinstance(new, int) else old is not None and str(new) < str(old)
        if fell:
            self._fail(
                f"I5: {written.name} {written.token} took {name} of {key.pk} {key.sk} back from {old!r} to {new!r}"
            )

    def _fail(self, problem: str) -> None:
        self._record.failures.append(problem)
