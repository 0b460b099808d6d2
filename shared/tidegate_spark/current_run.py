"""The one global state of this library: the gate client of the run that this process executes.

It is a module variable, because users call plain functions. Only the wrapper sets it, after the gate admitted the run.
A forked child inherits it but is refused: it has its own copy of the outputs, and its report would overwrite those of
the main process.
"""

from __future__ import annotations

import os

from tidegate_spark.errors import NotInRun
from tidegate_spark.gate_client import GateClient

_gate: GateClient | None = None
_process_id = 0


def set_gate(gate: GateClient | None) -> None:
    """Sets the gate client for reports of this process; None removes it."""
    global _gate, _process_id
    _gate, _process_id = gate, os.getpid()


def current_gate(purpose: str) -> GateClient:
    """Returns the gate client.

    Raises:
        NotInRun: This process was not started as a tidegate run, or is a child process of one.
    """
    if _gate is None or os.getpid() != _process_id:
        raise NotInRun(
            f"{purpose}: this process is not the main program of a tidegate run; call it from the program that "
            "a schedule starts (not from a Spark executor or a child process), or leave it out when testing"
        )
    return _gate
