"""`why` of a schedule with very many of something: the first few by name, the others counted by reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import (
    HOUR,
    MINUTE,
    NOW,
    a_definition,
    a_job,
    a_run,
    a_schedule,
    a_spec,
    all_of,
    every,
    on_data,
    some_evidence,
)
from tests.unit.tidegate_core.explain.why.telling import told
from tidegate_api.cluster_map import ClusterMap
from tidegate_api.reads.why import explain_schedule
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Put
from tidegate_memory.store import MemoryStore

LINES_MAX = 10
MANY = 250
CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00", "zone": "UTC"}
HOURLY = a_spec(trigger=every("1h"), constraints=[CLOSED], overlap="queue", max_pending=1_000)
PAIRED = a_spec(trigger=all_of(on_data(), on_data("other"), correlate="data_partition"))


def said_of(spec: dict[str, Any], *rows: Any) -> list[str]:
    store = MemoryStore()
    for row in (a_schedule(next_nominal=NOW + HOUR), a_definition(spec), *rows):
        key = row.key(0)
        store.write([Put(key, {**to_item(row, key), "rev": 1})])
    found = explain_schedule(
        store, ClusterMap(version=1, topic_partitions=1, shards=1), "flights", "nightly", None, NOW
    )
    assert found is not None
    return told(found)


@pytest.mark.parametrize(
    ("spec", "rows", "counted"),
    [
        pytest.param(
            HOURLY,
            [a_job(number, due=NOW + number - HOUR) for number in range(MANY)],
            "behind: 247 further jobs: a job of the same schedule is before it and has to go first; "
            "tidegate job list --schedule flights/nightly shows each",
            id="waiting jobs: it was two lines for each of them",
        ),
        pytest.param(
            HOURLY,
            [a_run(number, state="running") for number in range(MANY)],
            "247 further runs: ",
            id="open runs: all but ten were left out, and nothing said so",
        ),
        pytest.param(
            PAIRED,
            [
                some_evidence((1, 0), id=f"0000-{number}", correlation=f"d{number}", deadline=NOW + number * MINUTE)
                for number in range(MANY)
            ],
            "247 further jobs: ",
            id="gathering jobs: all but ten were left out, and nothing said so",
        ),
    ],
)
def test_given_250_of_them_then_why_says_in_a_few_lines_what_holds_all_of_them(
    spec: dict[str, Any], rows: list[Any], counted: str
) -> None:
    lines = said_of(spec, *rows)
    assert len(lines) <= LINES_MAX, lines
    assert any(counted in line for line in lines), lines


def test_given_a_few_jobs_then_none_is_only_counted() -> None:
    assert not any("further" in line for line in said_of(HOURLY, *map(a_job, range(3))))
