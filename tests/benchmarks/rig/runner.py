"""Runs cases: each on a cluster of its own, or on one that runs already."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.benchmarks.rig.cluster import BenchCluster, Stack
from tests.benchmarks.rig.results import Result, begin, result_of, revision_of
from tests.benchmarks.rig.workload import Case, Size, Workload


def measured_alone(workload: Workload, case: Case, size: Size, tree: Path) -> Result:
    """Starts a cluster of a tree's code, measures one case, and ends it. Its folder stays where the measurement failed.

    Args:
        workload: What is measured.
        case: Of it.
        size: For the result.
        tree: Whose nodes and API are measured; the benchmark itself is this process's.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"tidegate-bench-{workload.name.lower()}-"))
    try:
        with Stack(BenchCluster(folder, case.shards, tree)) as stack:
            result = measured_on(stack, workload, case, size, revision_of(tree))
    except BaseException as error:
        error.add_note(f"logs and records lie in {folder}")
        raise
    shutil.rmtree(folder, ignore_errors=True)
    return result


def measured_on(stack: Stack, workload: Workload, case: Case, size: Size, revision: str) -> Result:
    """Measures one case on a cluster that runs, and sees to it that nothing of it has ended meanwhile, or was refused."""
    begun = begin()
    figures = workload.measure(stack, case.parameters)
    stack.cluster.assert_all_run()
    stack.settled.assert_nothing_was_refused()
    return result_of(workload, case, size, begun, revision, figures)
