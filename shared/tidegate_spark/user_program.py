"""Runs the user's script as `__main__` and returns how it ended. Used by the wrapper, after the gate admitted the
run.
"""

from __future__ import annotations

import builtins
import io
import pkgutil
import re
import runpy
import sys
import traceback
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Literal

REASON_BYTES_MAX = 1024
"""Longest reason kept of an error, because it is part of the run item and the ledger; the log has the whole text."""

HEAD_BYTES = 256
GAP = " … "
_FRAME = re.compile(r"\s*(?:at [\w.$<>/]+\(.*\)|\.\.\. \d+ more)\s*")
"""A line of a Java stack trace."""

EXIT_TERMINATED = 143
"""128 + SIGTERM, the status that a shell reports for a program that SIGTERM ended."""


class Terminated(SystemExit):
    """SIGTERM arrived. A SystemExit, so that the program's `finally` blocks run and `except Exception` does not catch
    it.
    """

    def __init__(self) -> None:
        super().__init__(EXIT_TERMINATED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """End of a program.

    Attributes:
        outcome: Final state of the run.
        reason: Empty for success; at most 1 KiB of UTF-8.
        exit_code: Exit code of the wrapper, 0-255.
    """

    outcome: Literal["succeeded", "failed"]
    reason: str
    exit_code: int


TERMINATED = Outcome("failed", "terminated", EXIT_TERMINATED)


def run_script(script: str, args: list[str]) -> Outcome:
    """Runs `script` as Python itself would: argv, the script's folder first on the path, `__name__ == "__main__"`."""
    sys.argv = [script, *args]
    sys.path[0] = str(Path(script).resolve().parent)
    try:
        _run(script)
    except Terminated:
        return TERMINATED
    except SystemExit as request:
        return _outcome_of_exit(request)
    except BaseException as error:  # noqa: BLE001 - any exception ends the program and belongs in the report
        _show(error.with_traceback(_without_our_frames(error.__traceback__)))
        return Outcome("failed", cut(f"{type(error).__name__}: {_words_of(error)}"), 1)
    return Outcome("succeeded", "", 0)


def _run(script: str) -> None:
    if pkgutil.get_importer(script) is not None:  # An archive that contains the program.
        runpy.run_path(script, run_name="__main__")
        return
    main = ModuleType("__main__")
    main.__dict__.update(__file__=script, __cached__=None, __builtins__=builtins)
    # Permanent, unlike with `runpy`: exit handlers and threads outlast the script, and pickling there looks up classes
    # in it.
    sys.modules["__main__"] = main
    exec(_code_of(script), main.__dict__)  # noqa: S102 - the program that is to be run


def _code_of(script: str) -> CodeType:
    with io.open_code(script) as file:
        compiled: CodeType | None = pkgutil.read_code(file)
        if compiled is not None:
            return compiled
        file.seek(0)
        return compile(file.read(), script, "exec", dont_inherit=True)


def _show(error: BaseException) -> None:
    """Shows the error through the hook, as Python does: a program may have set a hook that reports errors elsewhere as
    well.
    """
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except Terminated:
        raise
    except BaseException as broken:  # noqa: BLE001 - a failing or exiting hook does not change the program's end
        with _unheard():
            if not isinstance(broken, SystemExit):
                traceback.print_exception(broken, chain=False)
                traceback.print_exception(error)


def _outcome_of_exit(request: SystemExit) -> Outcome:
    """Applies the rules of `sys.exit`: None is 0, a number is taken modulo 256, any other value is printed and means
    1.
    """
    if request.code is None:
        return Outcome("succeeded", "", 0)
    if isinstance(request.code, int):
        code = request.code & 0xFF
        return Outcome("failed", f"exit code {code}", code) if code else Outcome("succeeded", "", 0)
    words = _words_of(request.code)
    with _unheard():
        sys.stderr.write(f"{words}\n")
    return Outcome("failed", cut(f"SystemExit: {words}"), 1)


def _unheard() -> AbstractContextManager[None]:
    """Returns a context for the last output: stderr may be closed or on a full disk, and the end must still be
    reported.
    """
    return suppress(Exception)


def _words_of(said: object) -> str:
    try:
        return str(said)
    except Exception as broken:  # noqa: BLE001 - a user's __str__ may raise anything, and the end must be reported
        return f"(its text raised {type(broken).__name__})"


def _without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """Drops this module's and runpy's frames, so that the traceback begins in the user's file."""
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace


def cut(text: str) -> str:
    """Returns at most 1 KiB of `text` in UTF-8 without half characters: its beginning and its end, which names the
    cause.

    A Spark worker's error arrives inside the driver's: a traceback, a hundred frames of Java, and the cause last.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= REASON_BYTES_MAX:
        return data.decode()
    lines = [line for line in text.splitlines() if line.strip() and not _FRAME.fullmatch(line)]
    data = "\n".join(lines).encode("utf-8", "replace")
    if len(data) <= REASON_BYTES_MAX:
        return data.decode()
    tail = REASON_BYTES_MAX - HEAD_BYTES - len(GAP.encode())
    return f"{data[:HEAD_BYTES].decode('utf-8', 'ignore')}{GAP}{data[-tail:].decode('utf-8', 'ignore')}"
