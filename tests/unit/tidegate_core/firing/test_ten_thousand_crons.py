"""CDAP's user story US-01 at its full size: ten thousand cron schedules, each minute, on sixteen topic partitions of four nodes.

The actors of two topic partitions share no row and no limit here, so each has a test of its own, on its own store: 622 of the
schedules on average, wherever their names put them. `make test-all` runs one of each node, because all of them take some four minutes of
CPU; `make stories` runs the sixteen. `make test` takes the first few schedules of two. What four processes and a broker add is measured
by `tests/cluster`.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.support import tier
from tests.support.builders import MINUTE, SECOND, a_spec, an_apply
from tests.support.harness.story_bench import Story, schedule_of
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.instants import format_instant

SCHEDULES, SHARDS, TOPIC_PARTITIONS, NODES = 10_000, 256, 16, 4
STORE_ANSWERS_MS = 10
"""A transaction of DynamoDB takes about that long. On the first node only: a bench where answers take time is slower."""
WHOLE = os.environ.get("TIDEGATE_STORIES") == "whole"
RUN = range(TOPIC_PARTITIONS) if WHOLE else (0, 5, 10, 15)[: tier.at_night(NODES, else_=2)]
"""One of each node at night; `make stories` runs all."""
SHARE_MAX = SCHEDULES if WHOLE else tier.at_night(SCHEDULES, else_=25)
"""Schedules of a topic partition that take part."""
EACH_MINUTE = {"type": "cron", "expression": "* * * * *"}


def names_of(topic_partition: int) -> list[str]:
    names = (f"feed-{number}" for number in range(SCHEDULES))
    return [name for name in names if schedule_shard("flights", name, SHARDS) % TOPIC_PARTITIONS == topic_partition]


def test_us_01_given_ten_thousand_names_then_the_topic_partitions_share_them_evenly() -> None:
    """US-01: 10,000 on 16 topic partitions, none left out, none with a tenth more or less than its share ..."""
    names = (f"feed-{number}" for number in range(SCHEDULES))
    shares = Counter(schedule_shard("flights", name, SHARDS) % TOPIC_PARTITIONS for name in names)
    assert shares.total() == SCHEDULES
    assert len(shares) == TOPIC_PARTITIONS
    assert all(
        abs(share - SCHEDULES / TOPIC_PARTITIONS) < 0.1 * SCHEDULES / TOPIC_PARTITIONS for share in shares.values()
    )


@pytest.mark.parametrize("topic_partition", RUN)
def test_us_01_given_its_share_of_ten_thousand_then_each_fires_ten_times_in_ten_minutes_once_each_and_in_time(
    topic_partition: int,
) -> None:
    """US-01: ... each fires 10 times in 10 minutes, 0 doubles, and the p99 of lateness is below 2 s."""
    node = topic_partition % NODES
    story = Story(
        owner=f"node-{node}", shards=SHARDS, topic_partitions=TOPIC_PARTITIONS, topic_partition=topic_partition
    )
    names = names_of(topic_partition)[:SHARE_MAX]
    for name in names:
        story.append("tidegate.requests", topic_partition, an_apply(a_spec(name, EACH_MINUTE)))
    begin = story.now // MINUTE * MINUTE + MINUTE
    story.run(begin - SECOND - story.now)
    assert len(story.rows("S#")) == len(names)
    story.store_answers_after = STORE_ANSWERS_MS if node == 0 else 0
    story.run(10 * MINUTE)
    made = Counter((schedule_of(order), str(order.context["nominal"])) for order in story.started)
    due = [format_instant(begin + number * MINUTE) for number in range(10)]
    assert made == Counter((name, nominal) for name in names for nominal in due)
    lateness = sorted(mark.at % MINUTE for mark in story.marks if mark.begins)
    assert len(lateness) == 10 * len(names)
    assert lateness[len(lateness) * 99 // 100] < 2 * SECOND
