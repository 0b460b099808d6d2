"""Shows the events of a stack: with colours on a terminal, as plain lines in a pipe, or as JSON lines for a script.

If the reader is gone (`| head`, a closed terminal), the output is dropped: neither the stack nor its drain may end by that.
"""

from __future__ import annotations

import contextlib
import io
import json
import threading
from dataclasses import asdict
from typing import Protocol, TextIO, assert_never

from rich.console import Console as Terminal
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from tidegate_cli.dev.stack_events import (
    EVENT_NAMES,
    ComponentReady,
    Failed,
    Fetching,
    Notice,
    Ready,
    StackEvent,
    Stopped,
    Stopping,
)

QUIET_STAGES = frozenset({"verifying", "starting", "ready"})
"""Stages that take a second or two; they get no line."""


class StackConsole(Protocol):
    """Shows events; `Fetching` comes from other threads."""

    def show(self, event: StackEvent) -> None: ...

    def close(self) -> None:
        """Ends a progress bar that is still drawn."""


def console_for(output: TextIO, errors: TextIO, *, as_json: bool) -> StackConsole:
    """Returns the console for this output. Failures go to `errors`, except with JSON, because a script reads one stream."""
    for stream in (output, errors):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # For terminals without a check mark in their encoding.
    if as_json:
        return JsonConsole(output)
    if output.isatty():
        return TerminalConsole(Terminal(file=output), Terminal(file=errors))
    return PlainConsole(output, errors)


class JsonConsole:
    """One JSON object per line, with the field `event`."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._lock = threading.Lock()
        self._stages: dict[str, str] = {}

    def show(self, event: StackEvent) -> None:
        with self._lock, contextlib.suppress(OSError):
            if isinstance(event, Fetching) and self._stages.get(event.component) == event.stage:
                return  # A script needs each stage once, not each file.
            if isinstance(event, Fetching):
                self._stages[event.component] = event.stage
            self._output.write(json.dumps({"event": EVENT_NAMES[type(event)], **asdict(event)}) + "\n")
            self._output.flush()

    def close(self) -> None:
        """Does nothing: there is no progress bar."""


class PlainConsole:
    """Plain lines without colours and progress bars."""

    def __init__(self, output: TextIO, errors: TextIO) -> None:
        self._output = output
        self._errors = errors
        self._lock = threading.Lock()
        self._stages: dict[str, str] = {}

    def show(self, event: StackEvent) -> None:
        with self._lock, contextlib.suppress(OSError):
            stream = self._errors if isinstance(event, Failed) else self._output
            for line in self._lines(event):
                stream.write(line + "\n")
            stream.flush()

    def close(self) -> None:
        """Does nothing: there is no progress bar."""

    def _lines(self, event: StackEvent) -> list[str]:
        match event:
            case Fetching():
                if event.stage in QUIET_STAGES or self._stages.get(event.component) == event.stage:
                    return []
                self._stages[event.component] = event.stage
                return [f"... {event.component}: {event.stage} (only the first time)"]
            case ComponentReady():
                return [component_line(event)]
            case Notice():
                return [f"!   {event.component}: {event.text}"]
            case Ready():
                return [
                    "",
                    f"tidegate is ready after {event.seconds:.1f} s",
                    *(f"  {row}" for row in ready_rows(event)),
                ]
            case Stopping():
                return ["", event.text]
            case Stopped():
                return [f"Stopped after {event.seconds:.1f} s.", *event.kept]
            case Failed():
                return [failure_text(event)]
        assert_never(event)


class TerminalConsole:
    """Colours, progress bars while files are fetched, and a box when all is ready."""

    def __init__(self, terminal: Terminal, errors: Terminal) -> None:
        self._terminal = terminal
        self._errors = errors
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._bars: dict[str, TaskID] = {}

    def show(self, event: StackEvent) -> None:
        with self._lock, contextlib.suppress(OSError):
            if isinstance(event, Fetching):
                self._draw(event)
            else:
                self._print(event)

    def close(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._end_progress()

    def _print(self, event: ComponentReady | Notice | Ready | Stopping | Stopped | Failed) -> None:
        match event:
            case ComponentReady():
                self._terminal.print(Text(component_line(event), style="green"), soft_wrap=True)
            case Notice():
                self._terminal.print(Text(f"!   {event.component}: {event.text}", style="yellow"), soft_wrap=True)
            case Ready():
                self._end_progress()
                title = f"tidegate is ready after {event.seconds:.1f} s"
                self._terminal.print(Panel(Text("\n".join(ready_rows(event))), title=title, expand=False))
            case Stopping():
                self._terminal.print(Text(f"\n{event.text}"))
            case Stopped():
                self._terminal.print(
                    Text("\n".join([f"Stopped after {event.seconds:.1f} s.", *event.kept])), soft_wrap=True
                )
            case Failed():
                self._end_progress()
                self._errors.print(Text(failure_text(event), style="red"), soft_wrap=True)
            case _:
                assert_never(event)

    def _draw(self, event: Fetching) -> None:
        """Moves the progress bar; it appears when the first file is fetched."""
        if event.stage in QUIET_STAGES and event.component not in self._bars:
            return
        if self._progress is None:
            columns = (TextColumn("    {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._progress = Progress(*columns, console=self._terminal, transient=True)
            self._progress.start()
        megabytes = f", {event.kilobytes_done / 1024:.0f} MB" if event.kilobytes_done else ""
        words = f"{event.component}: {event.stage}{megabytes}"
        if event.component not in self._bars:
            self._bars[event.component] = self._progress.add_task(words, total=None)
        bar = self._bars[event.component]
        self._progress.update(bar, description=words, completed=event.files_done, total=event.files_total or None)

    def _end_progress(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress, self._bars = None, {}


def component_line(event: ComponentReady) -> str:
    """Returns the line of a component: name, seconds, address."""
    took = f"{event.seconds:5.1f} s" if event.seconds else "       "
    log = f"  log {event.log}" if event.log else ""
    note = f"  ({event.note})" if event.note else ""
    return f"✓   {event.component:<22} {took}  {event.where}{log}{note}"


def ready_rows(event: Ready) -> list[str]:
    """Returns the rows that describe a ready stack to its user."""
    rows = [
        ("API", event.api_url),
        ("Kafka", event.kafka),
        ("DynamoDB", event.dynamodb),
        ("Data", f"{event.data_dir} (removed at the end)" if event.ephemeral else event.data_dir),
        ("Stop", "Ctrl-C"),
    ]
    return [f"{name:<9} {value}" for name, value in rows]


def failure_text(event: Failed) -> str:
    return f"tidegate: {event.problem}" + (f"; {event.remedy}" if event.remedy else "")
