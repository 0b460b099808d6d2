"""What the store alone can take, by the same client: the bound for everything that writes, measured in the same run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.benchmarks.rig.bulk_producer import PAYLOAD_TEXT
from tidegate_core.rows.store_operations import ACTIONS_PER_TRANSACTION_MAX, Applied, Delete, Key, Put, Transaction
from tidegate_ports.store import Store

THREADS = 8
CALLS_AHEAD = 25
"""Rows of one call."""
PARTITION = "BENCH#{:04d}"
"""Partition keys that nothing else has."""


def batched_rows_per_s(store: Store, rows: Sequence[Put]) -> float:
    """Writes the rows, each with a key of its own, in batches from several threads; deletes them again.

    Returns:
        Rows a second, of the writes alone.
    """
    chunks = [rows[start : start + CALLS_AHEAD] for start in range(0, len(rows), CALLS_AHEAD)]
    with ThreadPoolExecutor(THREADS) as threads:
        begun_s = time.monotonic()
        left = list(threads.map(store.write, chunks))
        took_s = time.monotonic() - begun_s
        assert not any(left), "the store took not all"
        list(threads.map(lambda chunk: store.write([Delete(put.key) for put in chunk]), chunks))
    return len(rows) / took_s


def transacted_items_per_s(
    store: Store, transactions: int, keys: int, items: int = ACTIONS_PER_TRANSACTION_MAX
) -> float:
    """Puts so many rows in each transaction, from several threads; returns rows a second. The rows stay."""

    def put(number: int) -> None:
        rows = tuple(_row(number * items + row, keys) for row in range(items))
        outcome = store.transact(Transaction("bound", rows, f"bench-{time.time_ns()}-{number}", rows[0].key))
        assert outcome == Applied(), outcome

    with ThreadPoolExecutor(THREADS) as threads:
        begun_s = time.monotonic()
        list(threads.map(put, range(transactions)))
        return transactions * items / (time.monotonic() - begun_s)


def _row(number: int, keys: int) -> Put:
    key = Key(PARTITION.format(number % keys), f"M#{number:012d}")
    names = {name: f"{name}-{number}" for name in ("id", "origin", "namespace", "topic")}
    return Put(key, {"pk": key.pk, "sk": key.sk, "nominal": number, "slot": number, **names, "payload": PAYLOAD_TEXT})
