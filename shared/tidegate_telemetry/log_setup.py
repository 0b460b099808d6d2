"""Log set-up: JSON lines for machines, coloured text for terminals, and no secrets in either.

Events and their levels are those of `log_events.py`. Lines of libraries (the Kafka client, the HTTP server) take the
same way.
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
"""Fields that could hold a secret or a user's data: their content is never logged."""
TEXT_CHARACTERS_MAX: Final = 2_000
"""Longest text of a field: enough for an error's message, so that a user's text cannot flood the log. Tracebacks are
exempt."""
HIDDEN: Final = "(not logged)"


def set_up_logs(
    level: str = "info", form: Format = "auto", stream: TextIO | None = None, colors: bool | None = None
) -> None:
    """Sets up structlog and the standard library's logging, once per process.

    Args:
        level: Lowest level that is written.
        form: `auto` chooses text on a terminal and JSON lines elsewhere.
        stream: Output; standard error by default.
        colors: Whether text is coloured; None colours it on a terminal.
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
        # structlog's default traceback shows variables of each frame, such as the gate's secret and programs' tokens.
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
    """A stream that drops lines it cannot write: its disk is full, or its reader is gone.

    An exception of a log call would end a shard's actor in the middle of a step, or a client's thread.
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
    """Hides fields that must not be logged, and shortens long texts."""
    for name, value in event.items():
        if name in SECRET_FIELDS:
            event[name] = HIDDEN
        elif isinstance(value, bytes):
            event[name] = f"({len(value)} bytes)"
        elif isinstance(value, str) and len(value) > TEXT_CHARACTERS_MAX:
            # Most of the end is kept, because a traceback ends with the error itself.
            event[name] = f"{value[: TEXT_CHARACTERS_MAX // 4]}...{value[-TEXT_CHARACTERS_MAX * 3 // 4 :]}"
    return event


def show_plainly(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escapes invisible characters: a caller, such as a web page in a local browser, can choose the path that is
    logged.
    """
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = in_plain_lines(value)
    return event


class Notifier:
    """Writes named events at their level, and counts those that the table counts.

    It fits the port `Notices`; any thread.
    """

    def __init__(self, metrics: Metrics, **bound: object) -> None:
        self._metrics = metrics
        self._log: FilteringBoundLogger = structlog.get_logger(**bound)

    def __call__(self, event: str, **fields: object) -> None:
        known = LOG_EVENTS.get(event)
        # An event that the table lacks is a bug of ours; it is still written.
        level = "warning" if known is None else known.level
        if known is not None and known.counted is not None:
            amount = 1 if known.amount is None else fields.get(known.amount)
            by = amount if isinstance(amount, int) else 1
            self._metrics.count(known.counted, by, **{label: str(fields.get(label, "")) for label in known.labels})
        getattr(self._log, level)(event, **fields)


class _ToStructlog(logging.Handler):
    """Passes lines of the standard library's logging on to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger()
        log.log(record.levelno, "client_said", logger=record.name, text=record.getMessage(), exc_info=record.exc_info)


def _bridge_standard_logging(level: int) -> None:
    root = logging.getLogger()
    root.handlers = [_ToStructlog()]
    # Libraries log warnings and above only, even at our lower levels.
    root.setLevel(max(level, logging.WARNING))
