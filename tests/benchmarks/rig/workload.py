"""What a workload is, and where they are found: modules of a folder (`tests/benchmarks/workloads`), each of which names its own `WORKLOAD`."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tests.benchmarks.rig.cluster import SHARDS, Stack

Size: TypeAlias = Literal["full", "smoke"]
Parameters: TypeAlias = Mapping[str, Any]
Figures: TypeAlias = Mapping[str, float | None]
"""By name, the unit last; None where this revision cannot say."""
FOLDER = Path("tests/benchmarks/workloads")
MODULE = re.compile(r"w\d\d_\w+\.py")


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement, on a cluster of its own.

    Attributes:
        label: Tells cases of a workload apart; empty where there is one.
        parameters: How many, how long: for `measure`, and in the results.
        shards: That the cluster is made with. A smoke runs on the cluster that there is.
    """

    label: str
    parameters: Parameters
    shards: int = SHARDS


@dataclass(frozen=True, slots=True)
class Workload:
    """One of the issue's list.

    Attributes:
        name: `W1` and so on.
        title: What it does, in a line.
        measure: Does it on a running stack; returns figures.
        full, smoke: Its sizes. A smoke takes seconds, and its figures say nothing.
    """

    name: str
    title: str
    measure: Callable[[Stack, Parameters], Figures]
    full: Sequence[Case]
    smoke: Sequence[Case]

    def cases(self, size: Size) -> Sequence[Case]:
        return self.full if size == "full" else self.smoke


def workloads_in(folder: Path = FOLDER) -> Mapping[str, Workload]:
    """Returns the workloads of a folder by their names, in the order of their modules.

    Raises:
        FileNotFoundError: There is none.
    """
    files = sorted(file for file in folder.glob("*.py") if MODULE.fullmatch(file.name))
    if not files:
        raise FileNotFoundError(f"no workload (w01_….py) in {folder}; start it in the root of the source tree")
    found = [_workload_of(file) for file in files]
    return {workload.name: workload for workload in found}


def _workload_of(file: Path) -> Workload:
    spec = importlib.util.spec_from_file_location(f"tidegate_bench_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    workload = module.WORKLOAD
    assert isinstance(workload, Workload)
    return workload
