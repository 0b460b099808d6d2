"""What was stored by an older version keeps its hash: re-applying its document changes nothing (SEMANTICS 12.1)."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.formats.parsing import parse_schedule

PROGRAM = {"type": "program", "program": {"type": "python", "file": "jobs/a.py"}}
MESSAGE = {"type": "message", "topic": "t", "payload": 1}
EVERY = {"type": "every", "period": "1h"}
WINDOW = {"type": "time_window", "opens": "22:00", "closes": "06:00", "zone": "UTC"}
DATA = {"type": "data_partitions", "dataset": "flights.raw", "count": 3}
PAIR = [{"type": "data_partitions", "dataset": "a"}, {"type": "run_status", "schedule": "b", "states": ["failed"]}]


def a_spec(**fields: Any) -> ScheduleSpec:
    return parse_schedule({"namespace": "flights", "name": "a", "target": PROGRAM, "trigger": EVERY, **fields})


@pytest.mark.parametrize(
    ("fields", "hash_of_old"),
    [
        (
            {"trigger": {"type": "cron", "expression": "0 2 * * *", "zone": "Europe/Rome"}},
            "zkxdgkjpgvsdrkcinbtczplcagi4455z",
        ),
        ({"trigger": {"type": "every", "period": "90m", "phase": "10m"}}, "6hflceyhbdtuc7r6pj25ro4eneb6lpht"),
        ({"trigger": {"type": "at", "instant": "2026-12-24T18:00:00Z"}}, "ns5skbt5toeg6mrrdo7ycgb7xwgiawgw"),
        (
            {"trigger": DATA, "constraints": [{"type": "concurrency", "max": 1, "scope": "program"}, WINDOW]},
            "a3d2wmzltbftrwrp6ryijlaa5swrfikp",
        ),
        ({"trigger": {"type": "run_status", "schedule": "b"}, "overlap": "allow"}, "2cd3lfrsyjgfb6alfhxfkzqxlb27lvza"),
        (
            {"trigger": {"type": "all_of", "correlate": "data_partition", "timeout": "6h", "triggers": PAIR}},
            "qqeo6ezn5zv6sdcgjrphjkvl45rwsfvm",
        ),
        ({"target": MESSAGE}, "cjznlv3ol3bopsy5w5fzsr3qpjgjzrxc"),
    ],
)
def test_given_a_document_of_the_first_language_then_its_hash_is_what_it_was(
    fields: dict[str, Any], hash_of_old: str
) -> None:
    """The hashes are those of the commit before the language grew."""
    assert a_spec(**fields).spec_hash() == hash_of_old


@pytest.mark.parametrize("target", [PROGRAM, MESSAGE])
@pytest.mark.parametrize("mode", ["all", "last", "none"])
def test_given_a_word_about_what_was_missed_then_it_is_read_back_whatever_is_usual(
    target: dict[str, Any], mode: str
) -> None:
    spec = a_spec(target=target, catchup={"mode": mode})
    assert ScheduleSpec.from_canonical(spec.canonical_json()).catchup.mode == mode


def test_given_a_later_word_then_the_hash_tells_it() -> None:
    words: list[dict[str, Any]] = [
        {},
        {"catchup": {"mode": "last"}},
        {"suspend_mode": "hold"},
        {"on_update": "carry"},
        {"pending_timeout_action": "force"},
        {"max_pending": 5},
    ]
    assert len({a_spec(**each).spec_hash() for each in words}) == len(words)
