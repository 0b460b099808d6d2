"""Each workload of `make bench` in a size of seconds: it runs to its end and has its figures. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.rig.cluster import Stack
from tests.benchmarks.rig.resource_meter import used_by
from tests.benchmarks.rig.result_table import table
from tests.benchmarks.rig.results import result_from
from tests.benchmarks.rig.runner import measured_on
from tests.benchmarks.rig.workload import Case, Workload, workloads_in

# The first one starts the cluster as well, which takes a busy machine a minute or two.
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]
WORKLOADS = workloads_in(Path(__file__).parent)
CASES = [(workload, case) for workload in WORKLOADS.values() for case in workload.smoke]


@pytest.mark.parametrize(
    ("workload", "case"), [pytest.param(*pair, id=f"{pair[0].name} {pair[1].label}".strip()) for pair in CASES]
)
def test_given_a_workload_then_its_smoke_brings_figures(stack: Stack, workload: Workload, case: Case) -> None:
    result = measured_on(stack, workload, case, "smoke", "a smoke")
    assert result.figures
    assert {name: value for name, value in result.figures.items() if value is None} == {}
    assert result.figures.get("missing", 0) == 0
    assert result.figures.get("early", 0) == 0
    used = used_by(stack.node)
    assert min(used.read_units or 0, used.write_units or 0) > 0
    assert result_from(json.dumps(json.loads(result.line()))) == result
    assert len(table([result])) == 3
