"""Shows results as a table, JSON, YAML or names. Data go to stdout, notes to stderr. Commands call it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate_cli.exit_codes import CommandFailed
from tidegate_telemetry.plain_text import in_plain_lines, in_plain_text

if TYPE_CHECKING:
    from pydantic import BaseModel


class Format(StrEnum):
    """Output format of a result."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption = Annotated[Format, typer.Option("--output", "-o", help="Output format; `name` prints only ids.")]

Column = tuple[str, Callable[[Any], Any]]
"""Heading, and the function that returns a cell."""

EMPTY = "-"


def show_list(views: Iterable[BaseModel], columns: Sequence[Column], output: Format) -> None:
    """Shows a list: all fields as JSON or YAML, the columns as a table, or only names."""
    items = list(views)
    if output is Format.NAME:
        for item in items:
            write(_name(item))
    elif output is Format.TABLE:
        show_table([heading for heading, _ in columns], [[_cell(take(item)) for _, take in columns] for item in items])
    else:
        dump([item.model_dump(mode="json") for item in items], output)


def show_first(
    views: Iterable[BaseModel], limit: int, columns: Sequence[Column], output: Format, narrower: str
) -> None:
    """Shows the first items of a list, and notes on stderr if there are more.

    Args:
        views: Items; at least `limit` + 1 if there are more than `limit`.
        limit: Most items to show.
        columns: As in `show_list`.
        output: As in `show_list`.
        narrower: Options that make the list shorter, for the note.
    """
    items = list(islice(views, limit + 1))
    show_list(items[:limit], columns, output)
    if len(items) > limit:
        note(f"the first {limit}; there are more: --limit shows more of them, {narrower} fewer")


def note_cut(what: str, shown: int, left_out: int) -> None:
    """Notes the total number on stderr if some items were left out."""
    if left_out:
        note(f"{shown} of {shown + left_out} {what}; --limit shows more of them")


def show(view: BaseModel, output: Format) -> None:
    """Shows one object: all fields as JSON or YAML, one field per line as a table, or only its name."""
    if output is Format.NAME:
        write(_name(view))
        return
    document = view.model_dump(mode="json")
    if output is Format.TABLE:
        present = {name: value for name, value in document.items() if value not in (None, [], {}, "")}
        width = max(map(len, present), default=0)
        for name, value in present.items():
            write(f"{name.ljust(width)}  {_cell(value)}")
    else:
        dump(document, output)


def show_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Writes a table; with colours and lines only on a terminal that is wide enough."""
    if sys.stdout.isatty() and _show_rich(headings, rows):
        return
    widths = [max(len(row[number]) for row in [headings, *rows]) for number in range(len(headings))]
    for row in [[heading.upper() for heading in headings], *rows]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        write(line.rstrip())


def write(text: str, *, nl: bool = True) -> bool:
    """Writes data to stdout.

    Returns:
        False once the reader has closed the pipe (`tidegate run list | head`). This is no failure and does not change the exit code; a
            command that only produces output may end.

    Raises:
        CommandFailed: The output cannot be written, for example because the disk is full.
    """
    return _out(lambda: typer.echo(text, nl=nl))


def write_bytes(data: bytes) -> bool:
    """Writes bytes to stdout unchanged; returns and raises as `write`."""

    def write_and_flush() -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()

    return _out(write_and_flush)


def _out(put: Callable[[], None]) -> bool:
    try:
        put()
    except OSError as failure:
        # The rest of the output is dropped; otherwise the interpreter would flush it again at its end, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(failure, BrokenPipeError):
            return False
        raise CommandFailed(f"the output cannot be written: {failure.strerror}") from failure
    return True


def note(message: str) -> None:
    """Writes a message to stderr."""
    # Reasons from the API may hold texts of other users, so control characters are escaped.
    typer.echo(in_plain_lines(message), err=True)


def _show_rich(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Shows a coloured table. Returns False and shows nothing if the terminal is too narrow: an id in two lines cannot be copied."""
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True)
    # Only the last column holds free text, so only it may fold.
    table.add_column(headings[-1], overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, _STYLES.get(cell, "")) for cell in row))
    console = Console()
    foldable = max(0, max(cell_len(row[-1]) for row in [headings, *rows]) - FOLDED_WIDTH_MIN)
    if console.measure(table, options=console.options.update(width=WIDTH_MAX)).maximum - foldable > console.width:
        return False
    console.print(table)
    return True


FOLDED_WIDTH_MIN = 20
"""Characters of a last column that takes several lines: some words of a sentence."""
WIDTH_MAX = 1_000_000
"""Characters; wider than any terminal, to measure a table without folding."""

_STYLES = {
    "succeeded": "green",
    "active": "green",
    "running": "cyan",
    "failed": "red",
    "killed": "red",
    "lost": "red",
    "timed_out": "red",
    "suspended": "yellow",
}


def _name(view: BaseModel) -> str:
    """Returns the name that other commands take as argument: an id, NAMESPACE/NAME, or a shard's number."""
    given = getattr(view, "id", None)
    if given:
        return str(given)
    namespace, name = getattr(view, "namespace", None), getattr(view, "name", None)
    if namespace and name:
        return f"{namespace}/{name}"
    return str(getattr(view, "shard", getattr(view, "request_id", EMPTY)))


def dump(document: Any, output: Format) -> None:
    """Writes a document as JSON or YAML."""
    # Unprintable characters are escaped: YAML readers treat an unescaped Unicode line break as a line break. Characters that the
    # output's encoding lacks are escaped too, by the rules of JSON and YAML.
    text = json.dumps(document, ensure_ascii=False)
    is_plain = text.isprintable() and _is_held(text)
    if output is Format.JSON:
        write(json.dumps(document, indent=2, ensure_ascii=not is_plain))
        return
    write(_yaml_of(document, allow_unicode=is_plain))


def _yaml_of(document: Any, *, allow_unicode: bool) -> str:
    import yaml

    from tidegate_ports.common.yaml_core_schema import tag_of

    class Dumper(yaml.SafeDumper):
        """Quotes texts that a reader of YAML 1.1 or 1.2 would read as another type."""

        def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
            tag = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
            is_plain_text = kind is yaml.ScalarNode and implicit[0] and tag.endswith(":str")
            return tag_of(value) if is_plain_text else tag

    return yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=allow_unicode).rstrip()


def _is_held(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _cell(value: Any) -> str:
    from datetime import datetime

    if value is None or value in ("", [], {}):
        return EMPTY
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S") + ("Z" if value.utcoffset() is not None else "")
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return in_plain_text(", ".join(value))
    if isinstance(value, dict) and "verdicts" in value:
        return in_plain_text(str(value["reason"]))  # Tables show only the reason; JSON and YAML have each verdict.
    if isinstance(value, dict | list):
        return in_plain_text(json.dumps(value, ensure_ascii=False))
    return in_plain_text(str(value))
