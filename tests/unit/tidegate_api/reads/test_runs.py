"""One run by its id, while its owner moves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.unit.tidegate_api.conftest import NOW, Process, a_run, shard_of

from tidegate_core.store import keys
from tidegate_core.store.values import Delete, Item, Key


@pytest.mark.parametrize("reads_before", [0, 1, 2])
def test_given_a_run_that_ends_between_any_two_reads_then_it_is_found(
    process: Process, monkeypatch: pytest.MonkeyPatch, reads_before: int
) -> None:
    """A batch is no snapshot: its parts may be read before and after the finishing transaction, in any order."""
    run = a_run(state="running", driver="d-1")
    shard = shard_of(run)
    process.put(run, run.key(shard))
    read = process.store.get
    left = reads_before

    def in_parts(wanted: Sequence[Key]) -> Mapping[Key, Item]:
        nonlocal left
        found: dict[Key, Item] = {}
        for key in sorted(wanted, key=lambda each: each.table == "main"):
            if left == 0:
                process.put(replace(run, state="succeeded", ended_at=NOW), keys.ended_run(shard, run.id))
                process.store.write([Delete(run.key(shard))])
            if key.sk.endswith(run.id):
                left -= 1
            found.update(read([key]))
        return found

    monkeypatch.setattr(process.store, "get", in_parts)
    assert process.http.get(f"/api/v1/runs/{run.id}").status_code == 200
