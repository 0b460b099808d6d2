"""Entry point of `tidegate`, with the only error handler. Data go to stdout, messages to stderr; expected errors have no traceback."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import typer.main

from tidegate_cli.app import app
from tidegate_cli.exit_codes import CommandFailed, Exit, exit_of
from tidegate_telemetry.plain_text import in_plain_lines


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a command line and exits."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Runs a command line and returns its exit code."""
    _replace_closed_streams()
    _escape_unencodable_characters()
    try:
        typer.main.get_command(app).main(list(arguments), prog_name="tidegate")
    except SystemExit as request:
        return request.code if isinstance(request.code, int) else Exit.FAILURE
    except CommandFailed as failure:
        return say(str(failure), failure.code)
    except Exception as error:  # noqa: BLE001 - raised again unless it is a client error; the client is imported only then
        return _client_error(error)
    return Exit.OK


def _replace_closed_streams() -> None:
    """Replaces a stream that was closed before the start (`>&-`) by the null device, because output without a reader is no failure."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the process ends


def _escape_unencodable_characters() -> None:
    """Escapes characters that the locale's encoding lacks, for example in a log. Standard error escapes them by default."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def say(message: str, code: int) -> int:
    sys.stderr.write(f"tidegate: {in_plain_lines(message)}\n")
    return code


def _client_error(error: Exception) -> int:
    # Imported here and not above, because `tidegate --help` does not need the client.
    from tidegate_client import InvalidRequest, TidegateError

    if not isinstance(error, TidegateError):
        raise error
    problems = getattr(error, "problems", ()) if isinstance(error, InvalidRequest) else ()
    if problems:
        return say("\n  ".join(["the input has to be corrected:", *map(str, problems)]), exit_of(error))
    return say(str(error), exit_of(error))


if __name__ == "__main__":
    main()
