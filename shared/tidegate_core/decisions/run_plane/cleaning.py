"""The removal of chunks of evidence, long after its end: for the timer row of kind `C`."""

from __future__ import annotations

from typing import Final

from tidegate_core.decisions.host import Host
from tidegate_core.decisions.operations import Operation
from tidegate_core.records.run_plane import TimerRow
from tidegate_core.store import keys
from tidegate_core.store.values import Batch, Delete

CHUNKS_PER_BATCH: Final = 1_000


def clean_up(host: Host, shard: int, row: TimerRow) -> Operation[None]:
    """Removes the chunks of evidence that ended long ago; the row goes last, so that a successor does the rest."""
    chunks = range(int(row.detail or "0"))
    for first in chunks[::CHUNKS_PER_BATCH]:
        page = chunks[first : first + CHUNKS_PER_BATCH]
        deletes = tuple(Delete(keys.evidence_chunk(shard, row.ref, chunk)) for chunk in page)
        yield from host.write_for_good(Batch("clean_up", deletes))
    yield from host.write_for_good(Batch("clean_up", (Delete(row.key(shard)),)))
