"""Who may report: the process that passed the gate, and no child of it."""

from __future__ import annotations

import subprocess
from typing import Protocol

import pytest


class Request(Protocol):
    @property
    def action(self) -> str: ...
    @property
    def body(self) -> dict[str, object]: ...


class Gate(Protocol):
    requests: list[Request]


class Program(Protocol):
    def write(self, source: str) -> None: ...
    def run(self) -> subprocess.CompletedProcess[str]: ...


@pytest.mark.parametrize(
    "call", ["set_output(f'part-{number}', number)", "report_partition('flights.raw', f'part-{number}')"]
)
def test_given_forked_workers_that_report_then_each_is_told_that_it_is_not_the_program(
    gate: Gate, program: Program, call: str
) -> None:
    """Each has a copy of the outputs of its own, and would replace those of the others."""
    program.write(
        "import multiprocessing\n"
        "from tidegate_spark import NotInRun, report_partition, set_output\n"
        "set_output('rows', 842)\n"
        "def work(number):\n"
        f"    try:\n        {call}\n"
        "    except NotInRun as refusal:\n        return 'child process' in str(refusal)\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n    print(pool.map(work, [1, 2]))\n"
    )
    assert program.run().stdout.strip() == "[True, True]"
    assert [request.action for request in gate.requests] == ["start", "outputs", "finished"]
    assert gate.requests[-1].body["outputs"] == {"rows": 842}


def test_given_a_fork_while_another_thread_reports_then_the_child_is_told_at_once(program: Program) -> None:
    """The lock of the report that is under way is locked for ever in the child."""
    program.write(
        "import os, signal\n"
        "from tidegate_spark import NotInRun, reports, set_output\n"
        "with reports._outputs_lock:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        signal.alarm(60)\n"
        "        try:\n            set_output('rows', 842)\n"
        "        except NotInRun:\n            os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert program.run().stdout.strip() == "0"
