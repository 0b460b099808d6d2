from __future__ import annotations

import errno
import io
import json

from rich.console import Console

from tidegate_cli.dev.console import JsonConsole, PlainConsole, StackConsole, TerminalConsole, console_for
from tidegate_cli.dev.stack_events import ComponentReady, Failed, Fetching, Notice, Ready, StackEvent, Stopped, Stopping

READY = Ready(
    seconds=4.21,
    api_url="http://127.0.0.1:8080",
    kafka="127.0.0.1:9092",
    dynamodb="http://127.0.0.1:8000",
    data_dir="/data",
    ephemeral=False,
    folder="/work",
    nodes=("http://127.0.0.1:8081",),
    pid=17,
)


def fetching(stage: str, done: int = 0) -> Fetching:
    return Fetching(component="kafka-4.1.1", stage=stage, files_done=done, files_total=46, kilobytes_done=done * 100)


STORY: list[StackEvent] = [
    fetching("verifying"),
    fetching("downloading", 1),
    fetching("downloading", 2),
    fetching("starting"),
    ComponentReady(component="kafka-4.1.1", seconds=3.4, where="127.0.0.1:9092", log="/data/kafka.log", note="a note"),
    Notice(component="api", text="port 8080 is taken, it uses 20001"),
    READY,
    Stopping(text="Draining"),
    Stopped(seconds=0.7, kept=("Kept: everything.",)),
    Failed(problem="no Java was found", remedy="install one"),
]


def shown_on(console: StackConsole) -> None:
    for event in STORY:
        console.show(event)
    console.close()


def test_given_a_pipe_then_lines_are_plain_and_each_stage_of_a_download_is_said_once() -> None:
    output, errors = io.StringIO(), io.StringIO()
    shown_on(PlainConsole(output, errors))
    lines = output.getvalue().splitlines()
    assert "\x1b" not in output.getvalue()
    assert [line for line in lines if line.startswith("...")] == ["... kafka-4.1.1: downloading (only the first time)"]
    assert "✓   kafka-4.1.1              3.4 s  127.0.0.1:9092  log /data/kafka.log  (a note)" in lines
    assert "!   api: port 8080 is taken, it uses 20001" in lines
    assert "  API       http://127.0.0.1:8080" in lines
    assert "  Stop      Ctrl-C" in lines
    assert lines[-2:] == ["Stopped after 0.7 s.", "Kept: everything."]
    assert errors.getvalue() == "tidegate: no Java was found; install one\n"


def test_given_a_script_then_each_line_is_one_json_object_and_the_ready_line_has_all_addresses() -> None:
    output = io.StringIO()
    shown_on(JsonConsole(output))
    events = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [event["event"] for event in events] == [
        "fetching",
        "fetching",
        "fetching",
        "component",
        "notice",
        "ready",
        "stopping",
        "stopped",
        "failed",
    ]
    ready = events[5]
    assert (ready["api_url"], ready["kafka"], ready["dynamodb"]) == (READY.api_url, READY.kafka, READY.dynamodb)
    assert ready["nodes"] == ["http://127.0.0.1:8081"]


def test_given_a_terminal_then_there_is_a_bar_for_a_download_and_a_box_at_the_end() -> None:
    output, errors = io.StringIO(), io.StringIO()
    shown_on(TerminalConsole(Console(file=output, force_terminal=True, width=120), Console(file=errors)))
    text = output.getvalue()
    assert "kafka-4.1.1: downloading" in text
    assert "tidegate is ready after 4.2 s" in text
    assert "╰" in text
    assert errors.getvalue() == "tidegate: no Java was found; install one\n"


def test_given_a_warm_start_then_the_terminal_shows_no_bar() -> None:
    output = io.StringIO()
    terminal = Console(file=output, force_terminal=True, width=120)
    console = TerminalConsole(terminal, terminal)
    for stage in ("verifying", "starting", "ready"):
        console.show(fetching(stage))
    console.close()
    assert output.getvalue() == ""


class Gone(io.StringIO):
    """A pipe whose reader has gone, or a terminal that was closed."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, _text: str) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error


def test_given_a_reader_that_has_gone_then_nothing_is_raised() -> None:
    """Else `tidegate dev | head` would break off the drain of its nodes."""
    pipe = Gone(BrokenPipeError())
    terminal = Console(file=Gone(OSError(errno.EIO, "Input/output error")), force_terminal=True)
    for console in (PlainConsole(pipe, pipe), JsonConsole(pipe), TerminalConsole(terminal, terminal)):
        shown_on(console)


def test_given_an_output_without_check_marks_then_lines_are_written_all_the_same() -> None:
    written = io.BytesIO()
    output = io.TextIOWrapper(written, encoding="ascii")
    console_for(output, io.StringIO(), as_json=False).show(ComponentReady(component="api", seconds=1, where="here"))
    assert written.getvalue().startswith(b"?   api")


def test_given_an_output_then_the_console_fits_it() -> None:
    assert isinstance(console_for(io.StringIO(), io.StringIO(), as_json=False), PlainConsole)
    assert isinstance(console_for(io.StringIO(), io.StringIO(), as_json=True), JsonConsole)


def test_given_an_ephemeral_stack_then_the_data_line_says_that_it_goes() -> None:
    output = io.StringIO()
    PlainConsole(output, output).show(
        Ready(
            seconds=1,
            api_url="a",
            kafka="k",
            dynamodb="d",
            data_dir="/tmp/x",
            ephemeral=True,
            folder="/work",
            nodes=(),
            pid=1,
        )
    )
    assert "  Data      /tmp/x (removed at the end)" in output.getvalue().splitlines()
