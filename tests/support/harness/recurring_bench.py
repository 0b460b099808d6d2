"""What a bench has sent of recurring messages, counts of them and keeps of them, and what befalls them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.recorded_effects import Sent
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Commit, Effect, NotProduced, Produce
from tidegate_core.rows.store_operations import Put

REFUSED = NotProduced("refused", "not allowed")
AWAY = NotProduced("unavailable", "no acknowledgement")


def to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def a_control(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "control"


def nominals(bench: ActorHarness) -> list[int]:
    return [parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out")]


def shown(bench: ActorHarness, request_id: str) -> list[int]:
    return [parse_instant(each) for each in bench.receipts()[request_id]["next"]]


def payload(sent: Sent) -> object:
    return json.loads(sent.value)


def tally(bench: ActorHarness, name: str) -> int:
    return sum(int(str(row.get(name, 0))) for row in [*bench.rows("PROGRESS"), *bench.rows("Y#")])


def outage(bench: ActorHarness, milliseconds: int) -> None:
    """Nobody is here for so long, and the fact is written down."""
    for shard in range(bench.holding.shards):
        key = keys.progress(shard)
        item = bench.store.get([key])[key]
        known = item.get("gaps", [])
        assert isinstance(known, list)
        bench.store.write((Put(key, {**item, "gaps": [*known, f"{bench.now}-{bench.now + milliseconds}"]}),))
    bench.away(milliseconds)


def covered(sent: Sent) -> tuple[int, int, int] | None:
    if "tidegate-covered-count" not in sent.headers:
        return None
    first, last = (parse_instant(sent.headers[f"tidegate-covered-{each}"]) for each in ("from", "to"))
    return first, last, int(sent.headers["tidegate-covered-count"])


def records(bench: ActorHarness) -> dict[str, Sequence[Any]]:
    return {
        prefix: [row for row in bench.rows(f"{prefix}#") if prefix != "D" or "attempt" not in row]
        for prefix in ("C", "CF", "D")
    }
