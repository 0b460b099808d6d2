"""Reads the input files of commands; `-` is standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from tidegate_cli.exit_codes import CommandFailed, Exit

STANDARD_INPUT = Path("-")


def name_of(path: Path) -> str:
    """Returns the name of the file in messages."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def folder_of(path: Path) -> Path:
    """Returns the base folder of relative paths in the file: its own folder; the current folder for a pipe (`-`, `<(...)`)."""
    return path.parent if path.is_file() else Path.cwd()


def text_of(path: Path, bytes_max: int | None = None) -> str:
    """Returns the whole text of a file.

    Raises:
        CommandFailed: The file cannot be read, is not UTF-8, or has more than `bytes_max` bytes (usage).
    """
    limit = -1 if bytes_max is None else bytes_max + 1
    try:
        if path == STANDARD_INPUT:
            data = _standard_input(limit)
        else:
            with path.open("rb") as file:
                data = file.read(limit)
        if bytes_max is not None and len(data) > bytes_max:
            raise CommandFailed(f"{name_of(path)}: has more than {bytes_max} bytes", Exit.USAGE)
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{name_of(path)}: cannot be read: {error}", Exit.USAGE) from error


def refuse_two_readers(paths: dict[str, Path | None]) -> None:
    """Raises CommandFailed (usage) if two arguments are standard input, because the second would find it empty.

    Args:
        paths: Path of each argument, by the argument's name.
    """
    readers = [name for name, path in paths.items() if path == STANDARD_INPUT]
    if len(readers) > 1:
        raise CommandFailed(f"{' and '.join(readers)} both read standard input; give files instead", Exit.USAGE)


def _standard_input(limit: int) -> bytes:
    if sys.stdin is None:
        raise CommandFailed("standard input is closed; give a file", Exit.USAGE)
    return sys.stdin.buffer.read(limit)
