"""The whole demo, as `make demo` runs it, with one day."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.machine_speed import slowness
from tidegate_cli.demo.demo_run import artefacts_in

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

DEMO_S_MAX = 360.0
"""The goal for three days; one day has half of the programs, and another file's stack beside it."""
DEMO_TIMEOUT_S = 580


def test_given_one_day_then_a_node_is_killed_nothing_is_lost_and_both_computations_agree(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tidegate_cli.demo", "--days", "1", "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
        timeout=DEMO_TIMEOUT_S,
    )
    took = time.monotonic() - begun
    sys.stdout.write(
        f"the demo of one day took {took:.0f} s (at most {DEMO_S_MAX:g} s times how slow the machine is)\n"
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    assert len(re.findall(r"^Half-way: node-[12] .* was killed with kill -9", done.stdout, re.MULTILINE)) == 1
    assert re.search(r"^One-shot message on flights\.reports: ", done.stdout, re.MULTILINE)
    assert re.search(r"^Everything is accounted for, and both computations agree\.", done.stdout, re.MULTILINE)
    assert len(artefacts_in(tmp_path / "lake")) == 4
    assert (tmp_path / "report.parquet").is_file()
    assert took < DEMO_S_MAX * slowness()
