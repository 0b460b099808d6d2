"""Forked children of a program: they end as they would without the wrapper, and do not speak for the program."""

from __future__ import annotations

import subprocess
from typing import Protocol


class Request(Protocol):
    @property
    def body(self) -> dict[str, object]: ...


class Gate(Protocol):
    def of(self, action: str) -> list[Request]: ...


class Program(Protocol):
    def write(self, source: str) -> None: ...
    def run(self) -> subprocess.CompletedProcess[str]: ...


def test_given_forked_children_that_end_or_are_terminated_then_only_the_program_reports(
    gate: Gate, program: Program
) -> None:
    program.write(
        "import os, signal, sys\n"
        "if os.fork() == 0:\n    sys.exit(5)\n"
        "print(os.waitstatus_to_exitcode(os.wait()[1]))\n"
        "ready, tell = os.pipe()\n"
        "victim = os.fork()\n"
        "if victim == 0:\n    os.write(tell, b'x')\n    signal.pause()\n"
        "os.read(ready, 1)\n"
        "os.kill(victim, signal.SIGTERM)\n"
        "print(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    done = program.run()
    assert done.stdout.split() == ["5", "-15"]
    (report,) = gate.of("finished")
    assert report.body["outcome"] == "succeeded"


def test_given_a_forked_child_then_sigterm_has_its_default_unless_the_program_chose_a_handler(program: Program) -> None:
    """A handler in Python is not run in a worker that is about to wait for a lock: its pool would wait for it for ever."""
    program.write(
        "import os, signal\n"
        "def child_has(handler):\n"
        "    if os.fork() == 0:\n"
        "        print(signal.getsignal(signal.SIGTERM) is handler, flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "child_has(signal.SIG_DFL)\n"
        "signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
        "child_has(signal.default_int_handler)\n"
    )
    assert program.run().stdout.split() == ["True", "True"]
