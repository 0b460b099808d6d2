"""Sources and records of their topic on a bench, and what was counted of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.support.builders import SECOND, Doc, a_spec, on_data
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.source_list import NO_SOURCES, Sources, StoredSources
from tidegate_core.rows.store_operations import Put

TOPIC = "lake.commits"
WAITS = a_spec(trigger=on_data(count=1_000))


def a_source(name: str = "landed", **more: Any) -> Doc:
    mapping = {"dataset": "raw", "partition": {"pointer": "/day"}} | more.pop("event", {})
    return {"kind": "source", "namespace": "flights", "name": name, "topic": TOPIC, "event": mapping, **more}


def a_source_apply(source: Doc | None = None, request_id: str = "src-1", **more: Any) -> Doc:
    spec = source or a_source()
    ref = {"namespace": spec["namespace"], "name": spec["name"]}
    return {"id": request_id, "type": "source.apply", **ref, "spec": spec, **more}


def a_source_delete(name: str = "landed", request_id: str = "gone-1", **more: Any) -> Doc:
    return {"id": request_id, "type": "source.delete", "namespace": "flights", "name": name, **more}


def ask(bench: ActorHarness, document: Doc) -> Doc:
    bench.request(document)
    bench.run(SECOND)
    return bench.receipts()[str(document["id"])]


def produce(bench: ActorHarness, *days: str, topic_partition: int = 0, headers: dict[str, bytes] | None = None) -> None:
    first = len(bench.log(TOPIC, topic_partition))
    lay(bench, *days, topic_partition=topic_partition, headers=headers)
    bench.hand_over(TOPIC, topic_partition, first)
    bench.run(10)


def lay(bench: ActorHarness, *days: str, topic_partition: int = 0, headers: dict[str, bytes] | None = None) -> None:
    """Records lie in the log; nobody has read them yet."""
    log = bench.log(TOPIC, topic_partition)
    for day in days:
        value = json.dumps({"day": day}).encode()
        log.append(LogRecord(len(log), bench.now, None, value, tuple((headers or {}).items())))


def sources(bench: ActorHarness) -> Sources:
    item = bench.store.peek(keys.SOURCES_KEY)
    return NO_SOURCES if item is None else from_item(StoredSources, item).sources


def counted(bench: ActorHarness, name: str = "nightly") -> int:
    return sum(sum(row["counts"]) for row in bench.rows(f"E#flights/{name}#"))  # type: ignore[misc, arg-type]


def positions(bench: ActorHarness, topic_id: str = "c" * 32) -> list[object]:
    return [row["next"] for row in bench.rows("TP") if topic_id in str(row["pk"])]


def reword(bench: ActorHarness, name: str, **more: Any) -> None:
    """What another release has accepted: members of a source's definition of which this one knows nothing, or no more."""
    before = sources(bench)
    changed = [
        replace(each, body=json.dumps({**json.loads(each.body or "{}"), **more}), version=each.version + 1)
        if each.name == name
        else each
        for each in before.entries
    ]
    item = to_item(StoredSources.of(Sources(version=before.version + 1, entries=tuple(changed))), keys.SOURCES_KEY)
    revision = bench.store.peek(keys.SOURCES_KEY)["rev"]  # type: ignore[index]
    bench.store.write([Put(keys.SOURCES_KEY, {**item, "rev": int(str(revision)) + 1})])
