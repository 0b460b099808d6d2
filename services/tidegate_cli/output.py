"""Shows results: as a table (plain where no person reads it), JSON or YAML. Data go to stdout, everything else to stderr."""

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
    """How results are shown."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption = Annotated[
    Format, typer.Option("--output", "-o", help="How to show the result; `name` prints ids alone.")
]

Column = tuple[str, Callable[[Any], Any]]
"""Heading, and what stands below it."""

EMPTY = "-"


def show_list(views: Iterable[BaseModel], columns: Sequence[Column], output: Format) -> None:
    """Shows a list: all fields as JSON or YAML, the columns as a table, or only what scripts pass on."""
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
    """Shows the first ones of a list, and says on stderr whether there are more.

    Args:
        views: At least one more than `limit`, where there are more.
        limit: How many are shown.
        columns: As of `show_list`.
        output: As of `show_list`.
        narrower: Options that make the list shorter, for the note.
    """
    items = list(islice(views, limit + 1))
    show_list(items[:limit], columns, output)
    if len(items) > limit:
        note(f"> {limit} of more; --limit shows more of them, {narrower} fewer")


def tell_cut(what: str, shown: int, left_out: int) -> None:
    """Says on stderr how many there are, where not all of them were shown."""
    if left_out:
        note(f"{shown} of {shown + left_out} {what}; --limit shows more of them")


def show(view: BaseModel, output: Format) -> None:
    """Shows one thing: all of its fields, as a table one to a line, or only what scripts pass on."""
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
    """Writes a table; with colour and lines only where a person looks at it, and it is wide enough for that."""
    if sys.stdout.isatty() and _show_rich(headings, rows):
        return
    widths = [max(len(row[number]) for row in [headings, *rows]) for number in range(len(headings))]
    for row in [[heading.upper() for heading in headings], *rows]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        write(line.rstrip())


def write(text: str, *, nl: bool = True) -> bool:
    """Writes data to stdout.

    Returns:
        False once nobody reads it any more (`tidegate run list | head`). That is no failure: the command's exit code stays what it is, and
        whoever would go on for the reader's sake may end.

    Raises:
        CommandFailed: It cannot be written; its disk is full, say.
    """
    return _out(lambda: typer.echo(text, nl=nl))


def write_bytes(data: bytes) -> bool:
    """The same of bytes as they are."""

    def write_and_flush() -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()

    return _out(write_and_flush)


def _out(put: Callable[[], None]) -> bool:
    try:
        put()
    except OSError as failure:
        # What is left has nowhere to go, and the interpreter must not try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(failure, BrokenPipeError):
            return False
        raise CommandFailed(f"the output cannot be written: {failure.strerror}") from failure
    return True


def note(message: str) -> None:
    """Says something that is no data."""
    # What the API tells of a refusal holds other users' texts, too.
    typer.echo(in_plain_lines(message), err=True)


def _show_rich(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Returns False, and shows nothing, where the terminal is too narrow: an id in pieces cannot be copied."""
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True)
    # The last one is a text by a person or a program, where there is any.
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
"""Of a last column that takes several lines: some words of a sentence."""
WIDTH_MAX = 1_000_000
"""Of no terminal: what a table would have if it could."""

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
    """Returns what other commands take as argument: an id, a schedule's NAMESPACE/NAME, or a shard's number."""
    given = getattr(view, "id", None)
    if given:
        return str(given)
    namespace, name = getattr(view, "namespace", None), getattr(view, "name", None)
    if namespace and name:
        return f"{namespace}/{name}"
    return str(getattr(view, "shard", getattr(view, "request_id", EMPTY)))


def dump(document: Any, output: Format) -> None:
    """Writes a document as JSON or YAML."""
    # What does not show is escaped: a line break of Unicode's, unescaped, is another text to who reads it as YAML. So is what the
    # output's encoding lacks, by JSON's and YAML's own rules.
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
        """Quotes what readers of YAML 1.1 or of 1.2 take for something else than a text."""

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
        return in_plain_text(str(value["reason"]))  # The verdicts one by one, with what was compared, are for programs.
    if isinstance(value, dict | list):
        return in_plain_text(json.dumps(value, ensure_ascii=False))
    return in_plain_text(str(value))
