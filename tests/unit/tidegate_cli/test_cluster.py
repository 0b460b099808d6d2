"""`tidegate node list | drain | stop-firing | start-firing`, `tidegate shard`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.tidegate_cli.conftest import RECEIPT, FakeApi
from tidegate_cli import main
from tidegate_cli.commands import node
from tidegate_cli.service_processes import NODE

MOMENT = "2026-11-20T22:00:00Z"


def a_node(**fields: Any) -> dict[str, Any]:
    given = {
        "id": "1111aaaa",
        "name": "one",
        "state": "ready",
        "version": "0.1.0",
        "tzdata": "2025.2",
        "started": MOMENT,
        "seen": MOMENT,
        "topic_partitions": [0, 3],
        "shards": 4,
    }
    return {**given, **fields}


BROKEN = {"promise": "messages_late", "since": MOMENT, "meaning": "messages are due"}
SHARDS = [
    {"shard": 0, "topic_partition": 0, "node": "one", "epoch": 3},
    {"shard": 1, "topic_partition": 1, "node": "two", "epoch": 9, "broken": [BROKEN], "stopped": True},
]


def test_given_nodes_then_they_are_listed(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    waits = a_node(name="two", state="not_ready", unready=["it has not joined its group"])
    api.answers["GET /nodes"] = (200, {"items": [a_node(), waits]})
    assert main.run(["node", "list"]) == 0
    out = capsys.readouterr().out
    assert "0, 3" in out
    assert "it has not joined its group" in out


def test_given_a_drain_then_it_waits_until_the_node_holds_nothing(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "POLL_INTERVAL_S", 0)
    api.answers["POST /nodes/one/drain"] = (200, a_node(state="draining"))
    api.answers["GET /nodes/1111aaaa"] = [(200, a_node(state="draining")), (200, a_node(state="drained", shards=0))]
    assert main.run(["node", "drain", "one", "--reason", "new disk", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "drained"
    assert json.loads(api.asked[0].content)["reason"] == "new disk"
    assert len(api.asked) == 3


def test_given_an_api_that_is_away_while_a_node_drains_then_it_is_asked_again(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order stood, and the exit code said that it had failed: a script that waits for it went no further."""
    monkeypatch.setattr(node, "POLL_INTERVAL_S", 0)
    api.answers["POST /nodes/one/drain"] = (200, a_node(state="draining"))
    away = (503, {"title": "t", "status": 503, "detail": "the store does not answer"})
    api.answers["GET /nodes/1111aaaa"] = [away, away, (200, a_node(state="drained", shards=0))]
    assert main.run(["node", "drain", "one"]) == 0


def test_given_a_node_that_ends_well_while_it_drains_then_it_holds_nothing(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes its card along: what was asked for is so, and was told as `there is none`, exit 3."""
    api.answers["POST /nodes/one/drain"] = (200, a_node(state="draining"))
    assert main.run(["node", "drain", "one", "-o", "json"]) == 0
    told = capsys.readouterr()
    shown = json.loads(told.out)
    assert (shown["state"], shown["shards"], shown["topic_partitions"]) == ("drained", 0, [])
    assert told.err == "node one has ended\n"


def test_given_a_node_that_keeps_its_shards_then_exit_5_says_how_many(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "POLL_INTERVAL_S", 0)
    api.answers["POST /nodes/one/drain"] = (200, a_node(state="draining"))
    api.answers["GET /nodes/1111aaaa"] = (200, a_node(state="draining"))
    assert main.run(["node", "drain", "one", "--wait", "0.01"]) == 5
    assert "still has 4 shards" in capsys.readouterr().err
    assert main.run(["node", "drain", "one", "--wait", "0"]) == 0


def test_given_an_undo_then_the_order_is_taken_back(api: FakeApi) -> None:
    api.answers["DELETE /nodes/one/drain"] = (200, a_node())
    assert main.run(["node", "drain", "one", "--undo"]) == 0


def test_given_a_stop_and_a_start_then_the_receipts_are_shown(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.answers["POST /firing/stop"] = (200, {**RECEIPT, "running": ["0001-r"]})
    api.answers["POST /firing/start"] = (200, RECEIPT)
    assert main.run(["node", "stop-firing", "--reason", "a drill", "--id", "s-1"]) == 0
    assert "0001-r" in capsys.readouterr().out
    assert api.asked[0].headers["Idempotency-Key"] == "s-1"
    assert main.run(["node", "start-firing"]) == 0


def test_given_shards_then_those_that_stand_still_can_be_picked(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["GET /shards"] = (200, {"items": SHARDS})
    assert main.run(["shard", "list", "--broken", "--node", "two"]) == 0
    out = capsys.readouterr().out
    assert "messages_late, stopped" in out
    assert "one" not in out
    assert api.asked[0].url.params["node"] == "two"
    assert main.run(["shard", "list", "-o", "name"]) == 0
    assert capsys.readouterr().out.splitlines() == [str(each["shard"]) for each in SHARDS]
    api.answers["GET /shards/1"] = (200, {**SHARDS[1], "jobs": 7})
    assert main.run(["shard", "show", "1"]) == 0
    assert "jobs: 7" in capsys.readouterr().out


def test_given_node_alone_then_a_node_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[object] = []
    monkeypatch.setattr(node, "become", lambda process, **options: begun.append((process, options)))
    assert main.run(["node"]) == 0
    assert main.run(["node", "--workers", "4"]) == 0
    assert begun == [(NODE, {"workers": 1}), (NODE, {"workers": 4})]


LIMITS: list[dict[str, Any]] = [
    {
        "id": "flights/program/abc",
        "namespace": "flights",
        "scope": "program",
        "kind": "concurrency",
        "in_use": 2,
        "most": 2,
        "waiting": 3,
        "stuck": ["0001-lost"],
    },
    {"id": "flights/rate-key/def", "namespace": "flights", "scope": "key", "kind": "rate", "next_change": MOMENT},
]


def test_given_limits_then_those_that_are_stuck_can_be_picked(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.answers["GET /limits"] = (200, {"items": LIMITS})
    assert main.run(["limits", "list", "-n", "flights", "--stuck"]) == 0
    out = capsys.readouterr().out
    assert "0001-lost" in out
    assert "rate-key" not in out
    assert api.asked[0].url.params["namespace"] == "flights"
    assert main.run(["limits", "list"]) == 0
    assert "2026-11-20" in capsys.readouterr().out


def test_given_a_limit_then_its_holders_are_shown_and_what_is_none_is_refused(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["GET /limits/flights/program/abc"] = (
        200,
        {
            **LIMITS[0],
            "holders": [{"run": "0001-lost", "stuck": True}],
            "waiters": [{"job": "0002-b", "since": MOMENT}],
        },
    )
    assert main.run(["limits", "show", "flights/program/abc", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["holders"][0]["stuck"] is True
    for wrong in ("flights/program", "flights/color/x", "flights/program/../x"):
        assert main.run(["limits", "show", wrong]) != 0
    assert "tidegate limits list" in capsys.readouterr().err
    assert len(api.asked) == 1


def test_given_a_limit_or_a_shard_with_more_than_is_shown_then_a_note_says_how_many_there_are_and_what_shows_them(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    waiter, holder = {"job": "0002-b", "since": MOMENT}, {"run": "0001-a"}
    cut = {**LIMITS[0], "holders": [holder], "holders_left_out": 1, "waiters": [waiter], "waiters_left_out": 249}
    api.answers["GET /limits/flights/program/abc"] = (200, cut)
    assert main.run(["limits", "show", "flights/program/abc", "--limit", "1"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "1 of 2 runs that hold it; --limit shows more of them",
        "1 of 250 jobs that wait; --limit shows more of them",
    ]
    api.answers["GET /shards/1"] = (200, {**SHARDS[1], "limits": [], "limits_left_out": 3})
    assert main.run(["shard", "show", "1", "--limit", "7"]) == 0
    assert capsys.readouterr().err == "0 of 3 limits in use; --limit shows more of them\n"
    assert [each.url.params["page_size"] for each in api.asked] == ["1", "7"]


def test_given_a_limit_that_is_shown_whole_then_no_note_is_written(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["GET /limits/flights/program/abc"] = (200, LIMITS[0])
    assert main.run(["limits", "show", "flights/program/abc"]) == 0
    assert capsys.readouterr().err == ""
