"""Logs: machine-readable, counted, and without what must not be in them."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from tidegate_telemetry.log_setup import HIDDEN, TEXT_CHARACTERS_MAX, Format, Notifier, set_up_logs
from tidegate_telemetry.metrics import Metrics


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield io.StringIO()
    structlog.reset_defaults()
    root.handlers, root.level = handlers, level


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_given_an_event_then_it_is_a_json_line_with_its_level_and_fields(stream: io.StringIO) -> None:
    set_up_logs(stream=stream)

    Notifier(Metrics(), node="n1")("serving", topic_partition=3)

    (line,) = _lines(stream)
    assert line["event"] == "serving"
    assert line["level"] == "info"
    assert line["node"] == "n1"
    assert line["topic_partition"] == 3
    assert line["at"].endswith("Z")


def test_given_secrets_and_payloads_then_they_are_not_written(stream: io.StringIO) -> None:
    set_up_logs(stream=stream)

    Notifier(Metrics())("serving", token="hush", payload="mine", key="k", raw=b"12345", text="x" * 5_000)

    (line,) = _lines(stream)
    assert [line[name] for name in ("token", "payload", "key")] == [HIDDEN] * 3
    assert line["raw"] == "(5 bytes)"
    assert len(line["text"]) == TEXT_CHARACTERS_MAX + 3


def test_given_an_event_that_says_how_many_then_its_counter_rises_by_them(stream: io.StringIO) -> None:
    set_up_logs(stream=stream)
    metrics = Metrics()

    for passed in (3, 4):
        Notifier(metrics)("source_records_passed", source="flights/landed", reason="where", topic="lake", passed=passed)

    page = metrics.exposition()[0].decode()
    assert 'tidegate_source_records_passed_total{reason="where",source="flights/landed"} 7.0' in page


def test_given_a_level_then_what_is_below_is_not_written_but_counted(stream: io.StringIO) -> None:
    set_up_logs(level="info", stream=stream)
    metrics = Metrics()

    Notifier(metrics)("transaction_refused", name="fire", shard=1)

    assert _lines(stream) == []
    assert metrics.value("tidegate_decisions_repeated_total", name="fire") == 1


def test_given_an_exception_then_its_traceback_is_written(stream: io.StringIO) -> None:
    set_up_logs(stream=stream)
    try:
        raise ValueError("broken")
    except ValueError as failure:
        Notifier(Metrics())("actor_failed", topic_partition=1, exc_info=failure)

    (line,) = _lines(stream)
    assert line["level"] == "error"
    assert "ValueError: broken" in line["exception"]
    assert "Traceback" in line["exception"]


def test_given_an_unknown_event_then_it_is_written_all_the_same(stream: io.StringIO) -> None:
    set_up_logs(stream=stream)

    Notifier(Metrics())("unheard_of", fact=1)

    assert [(line["event"], line["level"]) for line in _lines(stream)] == [("unheard_of", "warning")]


def test_given_a_line_of_a_library_then_it_comes_the_same_way(stream: io.StringIO) -> None:
    set_up_logs(stream=stream)

    logging.getLogger("tidegate.kafka.client").warning("broker %s is away", "b1")
    logging.getLogger("tidegate.kafka.client").info("chatter")

    assert [(line["event"], line["text"]) for line in _lines(stream)] == [("client_said", "broker b1 is away")]


def test_given_a_terminal_then_it_is_text(stream: io.StringIO) -> None:
    set_up_logs(form="console", stream=stream, colors=False)

    Notifier(Metrics())("serving", topic_partition=3)

    assert "serving" in stream.getvalue()
    assert "topic_partition=3" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_given_a_terminal_and_texts_that_are_orders_to_it_then_they_are_escaped(stream: io.StringIO) -> None:
    set_up_logs(form="console", stream=stream, colors=False)

    Notifier(Metrics())("api_request", path="/\x1b]0;mine\x07\x9b2J", exc_info=ValueError("\x1b[2J"))

    assert "path=/\\x1b]0;mine\\x07\\x9b2J" in stream.getvalue()
    assert "ValueError: \\x1b[2J" in stream.getvalue()
    assert all(each.isprintable() or each == "\n" for each in stream.getvalue())


@pytest.mark.parametrize("form", ["json", "console"])
def test_given_an_exception_then_no_variable_of_its_frames_is_written(stream: io.StringIO, form: Format) -> None:
    set_up_logs(form=form, stream=stream, colors=False)

    def authorise(token: str) -> None:
        raise ValueError(f"broken, {len(token)} characters")

    try:
        authorise("-".join(["hu", "sh"]))
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")

    assert "ValueError: broken, 5 characters" in stream.getvalue()
    assert "hu-sh" not in stream.getvalue()


class _Full(io.StringIO):
    """As a file on a full disk, or a pipe that nobody reads any more."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error: Exception | None = error

    def write(self, text: str) -> int:
        if self.error is not None:
            raise self.error
        return super().write(text)


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), BrokenPipeError(), ValueError("closed file")]
)
def test_given_a_stream_that_takes_nothing_then_whoever_says_something_goes_on(
    stream: io.StringIO, error: Exception
) -> None:
    """A full disk beneath its log ended actors in the middle of a step: that it had failed could not be said either, and none was built anew."""
    full = _Full(error)
    set_up_logs(stream=full)
    notices = Notifier(metrics := Metrics())

    notices("transaction_refused", name="fire", shard=1)
    notices("serving", topic_partition=3)
    logging.getLogger("client").warning("gone")
    assert metrics.value("tidegate_decisions_repeated_total", name="fire") == 1

    full.error = None
    notices("serving", topic_partition=4)
    assert [line["topic_partition"] for line in _lines(full)] == [4]
