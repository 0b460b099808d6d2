"""`tidegate why` on a real node, asked by the command line: a sample of each kind. Every code is asked for on a virtual clock."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.cluster import Cluster
from tests.support.cluster.process import TIDEGATE
from tests.support.cluster.until import PATIENCE_S, now_ms, until
from tests.support.cluster.user_client import Client

NAMESPACE = "asking"
SPAN_S = 3
"""How long a schedule of one second is suspended: some instants lie within."""
Reasons = Mapping[str, Mapping[str, Any]]
"""By code."""


@pytest.fixture(scope="module")
def nodes() -> int:
    return 1


@pytest.fixture(scope="module")
def program(folder: Path) -> Path:
    """A program that runs until the file beside it is there."""
    path = folder / "waits.py"
    path.write_text(
        "import pathlib, time\nend = pathlib.Path(__file__).with_suffix('.end')\nwhile not end.exists():\n    time.sleep(0.1)\n",
        encoding="utf-8",
    )
    return path


class Asking:
    """Applies schedules, and asks why."""

    def __init__(self, cluster: Cluster, client: Client, program: Path) -> None:
        self._api = cluster.api.url
        self._client = client
        self._program = program

    def apply(self, name: str, trigger: Mapping[str, Any], **more: Any) -> None:
        target = {"type": "program", "program": {"type": "python", "file": str(self._program)}}
        receipt = self._client.apply(
            {"namespace": NAMESPACE, "name": name, "target": target, "trigger": trigger, **more}
        )
        assert receipt["status"] == "accepted", receipt

    def request(self, kind: str, name: str) -> Mapping[str, Any]:
        receipt: Mapping[str, Any] = self._client.request(
            {"type": f"schedule.{kind}", "namespace": NAMESPACE, "name": name, "actor": "ana", "reason": "a test"}
        )
        assert receipt["status"] == "accepted", receipt
        return receipt

    def why(self, *arguments: str) -> Reasons:
        """Returns what the command line prints as JSON, by code."""
        answer = subprocess.run(
            [*TIDEGATE, "why", *arguments, "-o", "json"],
            env={**os.environ, "TIDEGATE_API_URL": self._api},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        return {reason["code"]: reason for reason in json.loads(answer.stdout)["reasons"]}


@pytest.fixture(scope="module")
def asking(cluster: Cluster, client: Client, program: Path) -> Asking:
    return Asking(cluster, client, program)


def test_given_a_job_before_a_closed_window_then_the_constraint_is_told_with_its_opening(asking: Asking) -> None:
    opens = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(hours=6)
    closes = opens + timedelta(hours=1)
    window = {"type": "time_window", "opens": f"{opens:%H:%M}", "closes": f"{closes:%H:%M}", "zone": "UTC"}
    asking.apply("closed", {"type": "every", "period": "1h", "phase": "59m"}, constraints=[window])
    job = str(asking.request("trigger", "closed")["id"])
    reasons = until(lambda: closed if "window_closed" in (closed := asking.why(job)) else None, "the job waits")
    assert reasons["window_closed"]["until"] == f"{opens:%Y-%m-%dT%H:%M:%SZ}"
    assert "window_closed" in asking.why(f"{NAMESPACE}/closed"), "of the schedule, because its job waits"


def test_given_instants_at_which_a_schedule_did_not_fire_then_each_says_why(asking: Asking) -> None:
    """One before it was made, one while it was suspended, one that its trigger does not name, one to come."""
    asking.apply("often", {"type": "every", "period": "2s"}, overlap="skip")
    suspended = (asking.request("suspend", "often"), now_ms())[1]
    until(lambda: now_ms() > suspended + SPAN_S * 1_000 or None, "the span is over")
    asking.request("resume", "often")
    within = -(-suspended // 2_000) * 2_000
    instants = {
        "not_there_yet": within - 3_600_000,
        "suspended": within,
        "not_named": within + 1_000,
        "not_due": within + 3_600_000,
    }
    told = {code: set(asking.why(f"{NAMESPACE}/often", "--at", _text(at))) for code, at in instants.items()}
    assert {code: codes for code, codes in told.items() if code not in codes} == {}


def test_given_a_run_then_it_runs_and_afterwards_its_end_is_told(asking: Asking, program: Path) -> None:
    # An instant of its own would run first, and without end.
    asking.apply("waits", {"type": "every", "period": "365d"})
    run = str(asking.request("trigger", "waits")["id"])
    running = until(lambda: known if "running" in (known := asking.why(run)) else None, "the program runs")
    assert running["running"]["values"]["run"] == run
    program.with_suffix(".end").touch()
    ended = until(lambda: known if "launched" in (known := asking.why(run)) else None, "the run has ended")
    assert "succeeded" in ended["launched"]["text"]


def _text(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
