"""A bench, and the audit of what it did: its store, and what it sent as the topics would have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.builders import DEFAULT_SHARDS, NOW, SECOND, Doc
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.explain.audit.audit_shard import asked_for
from tidegate_core.explain.audit.findings import Findings
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.rows.store_operations import Delete, Item, Key, Put
from tidegate_node.commands.audit.audit_command import Audit
from tidegate_ports.topic_snapshot import Landed

OUT = "out"


class Topics:
    """What a bench has sent, without what a test takes away."""

    def __init__(self, bench: ActorHarness) -> None:
        self._bench = bench
        self.lost: set[str] = set()
        self.more: list[Landed] = []

    def read(self, topics: Sequence[str], since: int) -> Iterator[Landed]:
        for sent in self._bench.sent:
            if sent.topic in topics and sent.headers.get("tidegate-id") not in self.lost:
                headers = tuple((name, value.encode()) for name, value in sent.headers.items())
                yield Landed(sent.topic, sent.at, headers)
        yield from self.more


class AuditedBench(ActorHarness):
    """A bench whose history can be audited, and spoiled."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.landed = Topics(self)
        self.second_looks = 0
        self.run(SECOND)

    def does(self, *documents: Doc, then: int = 0) -> None:
        """Carries out requests one after the other, then lets time pass."""
        for document in documents:
            self.request(document)
            self.run()
        self.run(then)

    def audit(self, begin: int = NOW, end: int | None = None, **more: Any) -> Findings:
        asked, beyond = asked_for(Window(begin, self.now - 20 * SECOND if end is None else end), self.now)
        found = Audit(
            self.store,
            DEFAULT_SHARDS,
            asked,
            pause=lambda: None,
            look_again=self._look_again,
            landed=self.landed,
            dead_letters="tidegate.requests.dlq",
            **more,
        ).run()
        found.unjudged += beyond
        return found

    def _look_again(self) -> None:
        self.second_looks += 1

    # -- spoiling it ----------------------------------------------------------------------------------------------------

    def rows(self, prefix: str, table: Any = "history") -> list[Item]:
        return sorted(
            (item for item in self.store.items(table) if str(item["sk"]).startswith(prefix)),
            key=lambda item: str(item["sk"]),
        )

    def remove(self, item: Item, table: Any = "history") -> None:
        self.store.write([Delete(Key(str(item["pk"]), str(item["sk"]), table))])

    def put(self, item: Item, table: Any = "history", **changes: Any) -> None:
        changed = {**item, **changes}
        self.store.write([Put(Key(str(changed["pk"]), str(changed["sk"]), table), changed)])


def kinds(found: Findings) -> list[str]:
    """Returns the kinds of all differences."""
    return sorted(each.kind for each in found.differences)
