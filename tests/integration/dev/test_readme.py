"""The five minutes of docs/quickstart.md, done as a stranger does them: the page's blocks, in their order, each in its own shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support.cluster.topic_reader import read_topic
from tests.support.cluster.until import until

pytest.importorskip("pyspark")
pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[3]
README, QUICKSTART = ROOT / "README.md", ROOT / "docs" / "quickstart.md"
HEADING = "Five minutes to your own schedule"
SETUP, DEV = "make setup && . .venv/bin/activate", "tidegate dev"
"""The first block. The suite runs in the environment that `make setup` made; `tidegate dev` is started beside the test."""
USUAL_KAFKA = "127.0.0.1:9092"
COMMANDS_MAX = 4
"""From the clone to the first schedule of one's own; writing its two files is no command."""
BLOCK_S_MAX = 240.0
"""Two PySpark runs one after the other on a machine that has other work."""


class Dev(Protocol):
    """What `conftest.py` starts."""

    @property
    def environment(self) -> dict[str, str]: ...
    def wait_for(self, event: str, text: str = "") -> dict[str, Any]: ...
    def command(self, *arguments: str) -> Any: ...


def blocks_of(heading: str, page: Path = QUICKSTART) -> list[str]:
    """Returns the shell blocks of one section of a page."""
    section = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def shell(block: str, folder: Path, environment: dict[str, str]) -> str:
    """Runs a block with the environment's programs on the path; returns what it printed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=BLOCK_S_MAX,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_given_the_readme_then_it_starts_as_the_quickstart_does() -> None:
    assert blocks_of("Your own schedule", README) == blocks_of(HEADING)[:1]


def test_given_the_quickstart_then_few_commands_lead_to_a_schedule_of_ones_own() -> None:
    start, apply, *_ = blocks_of(HEADING)
    lines = [line for line in (start + apply).splitlines() if line.startswith(("make ", "tidegate "))]
    commands = [command for line in lines for command in line.split(" && ")]
    assert commands[-1].startswith("tidegate schedule apply ")
    assert len(commands) <= COMMANDS_MAX, commands


@pytest.mark.nightly
def test_given_a_stranger_who_follows_the_quickstart_then_everything_happens_as_it_says(
    start_dev: Callable[..., Dev], tmp_path: Path
) -> None:
    start, apply, look, records = blocks_of(HEADING)
    assert start.splitlines() == [SETUP, DEV]
    dev = start_dev(settings={"XDG_DATA_HOME": str(tmp_path / "data")})
    kafka = dev.wait_for("ready")["kafka"]
    begun = time.monotonic()

    applied = shell(apply, tmp_path, dev.environment)
    assert len(re.findall(r"\bhello\b.*\baccepted\b", applied)) == 2, applied

    looked = shell(look, tmp_path, dev.environment)
    assert re.search(r"^count of \d{4}-\d\d-\d\d \d\d:\d\d:[03]0\+00:00: 1000 rows$", looked, re.MULTILINE), looked
    sys.stdout.write(
        f"quickstart: the program's line is there {time.monotonic() - begun:.1f} s after the first command\n"
    )
    until(lambda: "succeeded" in states_of(dev, "count"), "the schedule has a succeeded run", BLOCK_S_MAX)
    until(lambda: "succeeded" in states_of(dev, "after-count"), "its follow-up has one, too", BLOCK_S_MAX)

    printed = shell(records.replace(USUAL_KAFKA, kafka), tmp_path, dev.environment)
    reminders = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert sorted(reminder["order"] for reminder in reminders) == [16, 17], printed
    arrived = read_topic(kafka, "orders.reminders")
    assert sorted(record.document["order"] for record in arrived) == [16, 17]
    (event,) = [record.document for record in read_topic(kafka, "tidegate.events") if b"2013-01-01" in record.value]
    assert event["dataset"] == "flights.raw"


def states_of(dev: Dev, name: str) -> list[str]:
    """Returns the states of a schedule's runs."""
    answer = dev.command("run", "list", "--schedule", f"hello/{name}")
    runs = answer["items"] if isinstance(answer, dict) else answer
    return [run["state"] for run in runs]
