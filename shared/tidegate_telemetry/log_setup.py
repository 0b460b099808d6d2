"""Log set-up: JSON lines where a machine reads them, coloured text where a person does; nothing secret in either.

Events and their levels are those of `log_events.py`. Lines of libraries (the Kafka client, the HTTP server) go the same way.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, Final, Literal, TextIO, TypeAlias, cast

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from tidegate_telemetry.log_events import LOG_EVENTS
from tidegate_telemetry.metrics import Metrics
from tidegate_telemetry.plain_text import in_plain_lines

Format: TypeAlias = Literal["auto", "json", "console"]

SECRET_FIELDS: Final = frozenset(
    {"authorization", "body", "key", "password", "payload", "secret", "token", "value", "headers", "env"}
)
"""Fields that could carry a secret or a user's data: their content never reaches a log."""
TEXT_CHARACTERS_MAX: Final = 2_000
"""Of one field: enough for an error's message; a user's text must not flood the log. Tracebacks are exempt."""
HIDDEN: Final = "(not logged)"


def set_up_logs(
    level: str = "info", form: Format = "auto", stream: TextIO | None = None, colors: bool | None = None
) -> None:
    """Sets up structlog and the standard library's logging, once per process.

    Args:
        level: Least level that is written.
        form: `auto` takes text on a terminal and JSON lines elsewhere.
        stream: Standard error by default.
        colors: Of the text form; None takes them on a terminal.
    """
    out = sys.stderr if stream is None else stream
    console = form == "console" or (form == "auto" and out.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        hide_secrets,
        structlog.processors.format_exc_info,
    ]
    last: list[Processor]
    if console:
        with_colors = out.isatty() if colors is None else colors
        # Its own traceback shows the variables of each frame, the gate's secret and programs' tokens among them.
        plain = structlog.dev.plain_traceback
        last = [show_plainly, structlog.dev.ConsoleRenderer(colors=with_colors, exception_formatter=plain)]
    else:
        last = [structlog.processors.JSONRenderer(default=str)]
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _Unfailing(out))),
        cache_logger_on_first_use=False,
    )
    _bridge_standard_logging(number)


class _Unfailing:
    """A stream that a line may be lost on: its disk is full, or who read it is gone. Whoever says something goes on with its work; raised there,
    it would end a shard's actor in the middle of a step, or a client's thread.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._out.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._out.flush()


def hide_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Takes out what must not be written, and shortens what is too long."""
    for name, value in event.items():
        if name in SECRET_FIELDS:
            event[name] = HIDDEN
        elif isinstance(value, bytes):
            event[name] = f"({len(value)} bytes)"
        elif isinstance(value, str) and len(value) > TEXT_CHARACTERS_MAX:
            # At the end of a traceback stands the error itself.
            event[name] = f"{value[: TEXT_CHARACTERS_MAX // 4]}...{value[-TEXT_CHARACTERS_MAX * 3 // 4 :]}"
    return event


def show_plainly(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escapes what does not show: whoever asks for a path, a page in a browser of the same machine say, chooses what stands in a line."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = in_plain_lines(value)
    return event


class Notifier:
    """Takes named events with fields: writes them at their level, and counts those that the table says are counted.

    It fits the port `Notices`; any thread.
    """

    def __init__(self, metrics: Metrics, **bound: object) -> None:
        self._metrics = metrics
        self._log: FilteringBoundLogger = structlog.get_logger(**bound)

    def __call__(self, event: str, **fields: object) -> None:
        known = LOG_EVENTS.get(event)
        # A name that the table lacks is a mistake of ours, but no reason to lose what it says.
        level = "warning" if known is None else known.level
        if known is not None and known.counted is not None:
            amount = 1 if known.amount is None else fields.get(known.amount)
            by = amount if isinstance(amount, int) else 1
            self._metrics.count(known.counted, by, **{label: str(fields.get(label, "")) for label in known.labels})
        getattr(self._log, level)(event, **fields)


class _ToStructlog(logging.Handler):
    """Hands lines of the standard library's logging on."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger()
        log.log(record.levelno, "client_said", logger=record.name, text=record.getMessage(), exc_info=record.exc_info)


def _bridge_standard_logging(level: int) -> None:
    root = logging.getLogger()
    root.handlers = [_ToStructlog()]
    # Libraries are quieter than we are: their warnings matter, their chatter does not.
    root.setLevel(max(level, logging.WARNING))
