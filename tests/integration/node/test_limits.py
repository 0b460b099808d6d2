"""Limits and retries on a real node: what programs write down themselves, and how soon a slot is used again (issue 5)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.support.machine_speed import slowness
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.keys import LAST, shard_pk
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.store_operations import RangeRead

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster

CROWD = 6
MOST = 2
USED_WITHIN_MS = 2_000
"""Times how slow the machine is."""
MARKS = """
import os, time
def mark(word):
    with open({file!r}, "ab", 0) as marks:
        marks.write(word)
mark(b"+")
# However late the other one of the first two begins.
while open({file!r}, "rb").read().count(b"+") < {most}:
    time.sleep(0.05)
time.sleep(1)
mark(b"-")
"""


def _schedule(cluster: Cluster, name: str, program: str, **more: Any) -> dict[str, Any]:
    file = cluster.program(program)
    target = {"type": "program", "program": {"type": "python", "file": str(file), "args": ["${attempt}"]}}
    return {"namespace": "tests", "name": name, "target": target, **more}


def _ledger(cluster: Cluster, prefix: str) -> list[LedgerRow]:
    """Returns the rows of schedules whose names begin so."""
    pages = [
        cluster.store().query(RangeRead(shard_pk(shard), "L#", f"L#{LAST}", table="history"))
        for shard in range(cluster.shards)
    ]
    rows = [from_item(LedgerRow, item) for page in pages for item in page.items]
    return [row for row in rows if row.name.startswith(prefix)]


def test_given_a_group_on_several_shards_due_at_once_then_marks_never_show_more_and_slots_are_used_at_once(
    serving: Cluster,
) -> None:
    """CD-085, US-06: a sample of `test_admission_in_crowds.py` with processes, a broker and a store."""
    marks = serving.folder / "marks"
    names = {schedule_shard("tests", f"s-{each}", serving.shards): f"s-{each}" for each in range(40)}
    for name in list(names.values())[:CROWD]:
        limit = {"type": "concurrency", "scope": "group", "group": "crowd", "max": MOST}
        # One event for all of them: an instant might have passed before the last one is applied.
        trigger = {"type": "data_partitions", "dataset": "raw", "count": 1}
        program = MARKS.format(file=str(marks), most=MOST)
        receipt = serving.apply(_schedule(serving, name, program, trigger=trigger, constraints=[limit]))
        assert receipt["status"] == "accepted", receipt

    serving.send("events", {"type": "data.partition", "namespace": "tests", "dataset": "raw", "partition": "d1"})
    serving.until(lambda: sum(_is_of_crowd(run) for run in serving.runs("succeeded")) == CROWD, "all have run")

    text = marks.read_text()
    assert max(text[:end].count("+") - text[:end].count("-") for end in range(len(text) + 1)) == MOST
    rows = serving.until(lambda: len(found := _ledger(serving, "s-")) == CROWD and found, "all entries")
    admitted = sorted(row.admitted_at for row in rows)
    ended = sorted(row.ended_at for row in rows)
    idle = [later - freed for later, freed in zip(admitted[MOST:], ended, strict=False)]
    assert max(idle) <= USED_WITHIN_MS * slowness()


def _is_of_crowd(run: dict[str, Any]) -> bool:
    return str(run["schedule"]).startswith("s-")


def test_given_a_program_that_fails_once_then_its_second_try_succeeds(serving: Cluster) -> None:
    """SEMANTICS 8: the same run, the next attempt, after its pause."""
    program = "import sys\nsys.exit(0 if sys.argv[1] == '2' else 3)\n"
    trigger = {"type": "at", "instant": format_instant(time.time_ns() // 1_000_000)}

    serving.apply(_schedule(serving, "again", program, trigger=trigger, retry={"tries": 1, "backoff": "1s"}))

    (run,) = serving.until(lambda: serving.runs("succeeded", "again"), "the second try")
    assert run["attempt"] == 2
    assert serving.runs("failed", "again") == []
    (row,) = serving.until(lambda: _ledger(serving, "again"), "its entry")
    assert (row.disposition, row.state, row.job_id) == ("launched", "succeeded", run["run_id"])
