"""The process `tidegate audit` as a script sees it: exit codes, one document on stdout, complaints on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import DEFAULT_SHARDS, MINUTE, NOW, SECOND, a_send, a_spec, an_apply, every
from tests.unit.tidegate_node.audit.audited_bench import AuditedBench
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.rows.store_operations import Put
from tidegate_node import bootstrap
from tidegate_node.commands.audit import audit_command
from tidegate_ports.store import StoreUnavailable
from tidegate_ports.topic_snapshot import LandedUnavailable

Run = Callable[..., int]


@pytest.fixture
def bench() -> AuditedBench:
    bench = AuditedBench()
    bench.does(an_apply(a_spec(trigger=every("1m"))), a_send("m-1"), then=5 * MINUTE)
    fields: dict[str, Any] = {"version": 1, "n": 4, "shards": DEFAULT_SHARDS, "topic_id": "0", "cluster_id": "c"}
    bench.store.write([Put(MAP_KEY, {"pk": MAP_KEY.pk, "sk": MAP_KEY.sk, "history": [], **fields})])
    return bench


@pytest.fixture
def run(bench: AuditedBench, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the process over the bench's store and topics, a minute after its last moment."""
    monkeypatch.setattr(bootstrap, "load", lambda: None)
    monkeypatch.setattr(bootstrap, "audited", lambda _: (bench.store, bench.landed, "tidegate.requests.dlq"))
    monkeypatch.setattr(time, "time", lambda: (bench.now + MINUTE) / 1_000)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    span = {"begin": format_instant(NOW), "end": format_instant(bench.now - 20 * SECOND)}
    return lambda **more: audit_command.run(**{**span, "sink": True, **more})


def lose(bench: AuditedBench) -> None:
    bench.remove(bench.rows("L#flights/nightly#")[1])


def test_given_a_history_then_0_and_once_a_row_is_gone_1(
    bench: AuditedBench, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    assert capsys.readouterr().out.endswith("\n0 differences\n")
    lose(bench)
    assert run(as_json=True) == 1
    assert "missing" in {each["kind"] for each in json.loads(capsys.readouterr().out)["differences"]}


@pytest.mark.parametrize(
    ("span", "says"),
    [
        pytest.param({"begin": "yesterday"}, "--from yesterday", id="no time"),
        pytest.param({"begin": None, "end": "2200-01-01T00:00:00Z"}, "is still to come", id="to come"),
        pytest.param(
            {"begin": "2025-11-13T02:00:00Z", "end": "2025-11-13T01:00:00Z"}, "is after --to", id="turned round"
        ),
    ],
)
def test_given_a_window_that_cannot_be_then_2_says_why(
    run: Run, capsys: pytest.CaptureFixture[str], span: dict[str, Any], says: str
) -> None:
    assert run(**span) == 2
    assert says in capsys.readouterr().err


def test_given_no_map_then_78_says_what_to_do(
    bench: AuditedBench, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.remove({"pk": MAP_KEY.pk, "sk": MAP_KEY.sk}, "main")
    assert run() == 78
    assert "tidegate init" in capsys.readouterr().err


@pytest.mark.parametrize("failure", [StoreUnavailable("store"), LandedUnavailable("broker")])
def test_given_a_brick_that_does_not_answer_then_75_and_no_half_answer(
    bench: AuditedBench,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failure: Exception,
) -> None:
    def silent(*_: object) -> None:
        raise failure

    brick, call = (bench.store, "query") if isinstance(failure, StoreUnavailable) else (bench.landed, "read")
    monkeypatch.setattr(brick, call, silent)
    assert run() == 75
    out, err = capsys.readouterr()
    assert (out, "try again" in err) == ("", True)


def test_given_nobody_who_reads_to_the_end_then_the_exit_code_tells_all_the_same(
    bench: AuditedBench, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tidegate audit | head -1` under pipefail: what differs is no success."""
    lose(bench)
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w", encoding="utf-8") as nobody:
        monkeypatch.setattr(sys, "stdout", nobody)
        assert run() == 1
