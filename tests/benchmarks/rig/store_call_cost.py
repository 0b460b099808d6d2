"""`python -m tests.benchmarks.rig.store_call_cost`: what a call to the store costs its caller, by our client and by the SDK's.

CPU of the calling thread alone, its system calls included, on DynamoDB Local; both clients in turns, because what else the machine does
drifts. Read the ratios first: on a busy machine both columns double.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from statistics import median
from typing import Any, Final, NamedTuple

from tests.benchmarks.rig.bulk_producer import PAYLOAD_TEXT
from tests.conformance.sdk_item_client import SdkItems
from tidegate_bricks import DynamoDbBrick
from tidegate_core.rows.store_operations import Applied, Key, Put, RangeRead, Transaction
from tidegate_dynamo.client_factory import make_client, sdk_client
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore
from tidegate_dynamo.tables import create_tables

CALLS_A_ROUND: Final = {
    "query, empty": 100,
    "query, 25 rows": 40,
    "batch of 25": 40,
    "transact 4": 40,
    "transact 100": 10,
}
ROUNDS: Final = 20
PARTITIONS: Final = 8
Ask = Callable[[DynamoStore, int], None]


class Cost(NamedTuple):
    """Microseconds of CPU a call, the median of the rounds; and the SDK's by ours, the median of the rounds' ratios."""

    call: str
    ours_us: float
    sdk_us: float
    ratio: float


def costs(settings: DynamoSettings, rounds: int, calls: Mapping[str, int] = CALLS_A_ROUND) -> Iterator[Cost]:
    """Measures each kind of call on a store with tables.

    Args:
        settings: Where it is.
        rounds: How often both clients take turns; one more comes before, to open connections and fill caches.
        calls: Kinds of calls, and how many of each a client makes in its turn.
    """
    with closing(make_client(settings)) as client, closing(SdkItems(settings)) as sdk:
        listener: Any = lambda *_: None  # noqa: E731 - the node listens to what calls cost, and so is measured with it
        ours = DynamoStore(client.items, settings, units=listener)
        theirs = DynamoStore(sdk, settings, units=listener)  # type: ignore[arg-type]  # calls alike
        ours.write(_rows("CALLS#25", 25))
        for call, count in calls.items():
            taken = [(_us(ours, ASKED[call], count), _us(theirs, ASKED[call], count)) for _ in range(rounds + 1)][1:]
            ours_us, sdk_us = (median(each) for each in zip(*taken, strict=True))
            yield Cost(call, ours_us, sdk_us, median(its / mine for mine, its in taken))


def _us(store: DynamoStore, ask: Ask, count: int) -> float:
    begun_s = time.thread_time()
    for number in range(count):
        ask(store, number)
    return 1e6 * (time.thread_time() - begun_s) / count


def _query(partition: str, rows: int) -> Ask:
    wanted = RangeRead(partition, "M#", "M#~")

    def ask(store: DynamoStore, _: int) -> None:
        assert len(store.query(wanted).items) == rows

    return ask


def _batch(store: DynamoStore, number: int) -> None:
    assert not store.write(_rows(f"CALLS#B{number % PARTITIONS}", 25))


def _transact(rows: int) -> Ask:
    def ask(store: DynamoStore, number: int) -> None:
        puts = _rows(f"CALLS#T{number % PARTITIONS}", rows)
        outcome = store.transact(Transaction("calls", puts, f"calls-{time.time_ns()}-{number}", puts[0].key))
        assert outcome == Applied(), outcome

    return ask


@cache
def _rows(partition: str, rows: int) -> tuple[Put, ...]:
    """Rows of a message's size, made once: what is measured is what a store does with them."""
    return tuple(_row(Key(partition, f"M#{number:012d}"), number) for number in range(rows))


def _row(key: Key, number: int) -> Put:
    names = {name: f"{name}-{number}" for name in ("id", "origin", "namespace", "topic")}
    return Put(key, {"pk": key.pk, "sk": key.sk, "nominal": number, "slot": number, **names, "payload": PAYLOAD_TEXT})


ASKED: Final[Mapping[str, Ask]] = {
    "query, empty": _query("CALLS#0", 0),
    "query, 25 rows": _query("CALLS#25", 25),
    "batch of 25": _batch,
    "transact 4": _transact(4),
    "transact 100": _transact(100),
}


def table(measured: Sequence[Cost]) -> list[str]:
    """Returns the lines of a table in Markdown."""
    lines = [f"| {call} | {ours:,.0f} | {sdk:,.0f} | {ratio:.1f} |" for call, ours, sdk, ratio in measured]
    return ["| CPU of the caller, µs a call | ours | SDK | ratio |", "| --- | --- | --- | --- |", *lines]


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 once all was measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.rig.store_call_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each client (default: {ROUNDS})")
    rounds = parser.parse_args(arguments).rounds
    with DynamoDbBrick(None) as store:
        settings = DynamoSettings(endpoint_url=store.endpoint, read_timeout_s=30.0)
        with closing(sdk_client(settings)) as client:
            create_tables(settings, client)
        sys.stdout.write("\n".join(table(list(costs(settings, rounds)))) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
