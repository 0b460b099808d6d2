"""Real `spark-submit` runs: the program, its context, its workers, and the end of all of them."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.process_table import facts_of, members
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Ended, Launch

pytest.importorskip("pyspark")
pytestmark = pytest.mark.timeout(300)

ALaunch = Callable[..., Launch]

# Spark's worker processes are started on purpose: they must not have the token, and they have a group of their own.
JOB = """
import os, sys
from pyspark.sql import SparkSession
from tidegate_spark import context, report_outputs, report_partition

spark = SparkSession.builder.getOrCreate()
rows = spark.range(1000).count()
workers = spark.sparkContext.parallelize([0], 1).map(
    lambda _: (os.getpid(), os.environ.get("TIDEGATE_RUN_TOKEN", ""), os.environ["TIDEGATE_RUN_ID"])
).collect()
report_partition("numbers", "all", rows=rows)
report_outputs(
    args=sys.argv[1:], rows=rows, workers=workers, driver=os.getpid(),
    nominal=[str(context().nominal), spark.conf.get("spark.tidegate.nominal")], mine=spark.conf.get("spark.mine", ""),
)
"""


class Gate(Protocol):
    def of(self, action: str) -> list[Mapping[str, object]]: ...
    def wait_for(self, action: str) -> Mapping[str, object]: ...


def outputs_of(body: Mapping[str, object]) -> dict[str, object]:
    outputs = body["outputs"]
    assert isinstance(outputs, dict)
    return outputs


def errors_of(launcher: LocalLauncher, launch: Launch) -> str:
    return Path(launcher.log_paths(launch.run_id, 1).stderr).read_text(encoding="utf-8")[-4000:]


async def test_given_a_pyspark_program_then_it_runs_with_its_context_and_leaves_nothing_behind(
    settings: LocalSettings,
    launcher: LocalLauncher,
    a_launch: ALaunch,
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LC_ALL", "xx_XX.UTF-8")  # Not installed, as where a login brings its own along.
    launch = a_launch(JOB, "--day", "{{ 2013 }}", "Größe, 😀", program_type="pyspark", conf={"spark.mine": "a b ß"})
    begun = time.monotonic()
    await launcher.submit(launch)
    end = await launcher.wait_until_gone(launch.run_id, 1)
    wall_s = time.monotonic() - begun
    assert end == Ended(0), errors_of(launcher, launch)
    (report,) = gate.of("finished")
    assert report["outcome"] == "succeeded"
    outputs = outputs_of(report)
    assert outputs["args"] == ["--day", "{{ 2013 }}", "Größe, 😀"]
    assert (outputs["rows"], outputs["mine"]) == (1000, "a b ß")
    assert outputs["nominal"] == ["2026-03-03 05:00:00+00:00", "2026-03-03T05:00:00Z"]
    workers = outputs["workers"]
    assert isinstance(workers, list)
    assert workers[0][1:] == ["", launch.run_id]
    folder = RunFolder.within(settings.data_dir, launch.run_id, 1)
    assert not folder.scratch.exists()
    ended = folder.exit()
    assert ended is not None
    sys.stdout.write(f"spark-submit: {wall_s:.1f} s wall, {ended.cpu_ms / 1000:.1f} s CPU\n")  # `pytest -rP` shows it.


async def test_given_a_pyspark_program_that_fails_then_its_exception_is_the_reason_and_the_code_comes_through(
    launcher: LocalLauncher, a_launch: ALaunch, gate: Gate
) -> None:
    launch = a_launch("raise LookupError('no input for the day')", program_type="pyspark")
    await launcher.submit(launch)
    assert (await launcher.wait_until_gone(launch.run_id, 1)).exit_code == 1
    assert [body["reason"] for body in gate.of("finished")] == ["LookupError: no input for the day"]


@pytest.mark.nightly  # `test_local_cancels.py` cancels a program with a child in a group of its own in both tiers.
async def test_given_a_running_pyspark_program_then_cancel_ends_jvm_driver_and_workers(
    settings: LocalSettings, a_launch: ALaunch, gate: Gate
) -> None:
    launcher = LocalLauncher(replace(settings, cancel_grace_s=120))
    launch = a_launch(f"{JOB}\nimport time; time.sleep(600)", program_type="pyspark")
    await launcher.submit(launch)
    outputs = outputs_of(await asyncio.to_thread(gate.wait_for, "outputs"))
    folder = RunFolder.within(settings.data_dir, launch.run_id, 1)
    record = folder.record()
    assert record is not None
    marker = f"TIDEGATE_RUN_FOLDER={folder.path}".encode()
    groups = {facts.group for facts in members(record.pid, record.started, marker)}
    assert len(groups) > 1, "Spark's worker daemon is expected to leave the group"
    await launcher.cancel(launch.run_id, 1)
    assert members(record.pid, record.started, marker) == []
    driver = outputs["driver"]
    assert isinstance(driver, int)
    assert facts_of(driver) is None
    assert [body["reason"] for body in gate.of("finished")] == ["terminated"]


@pytest.mark.parametrize("flag", ["-XX:+UseParallelGC", "-XX:+UseG1GC", "-XX:+UseSerialGC"])
async def test_given_a_collector_in_the_host_s_spark_defaults_then_a_driver_s_jvm_starts_beside_it(
    settings: LocalSettings, flag: str
) -> None:
    """Found in review: `spark.driver.defaultJavaOptions`, which come before ours, may name one, and a JVM with two does not start."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    options = (flag, *settings.driver_java_options.split(), "-version")
    done = await asyncio.create_subprocess_exec(java, *options, stdout=PIPE, stderr=STDOUT)
    said, _ = await done.communicate()
    assert done.returncode == 0, said.decode()
