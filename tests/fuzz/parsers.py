"""What is fuzzed, and right inputs to begin with: `make fuzz-parsers` feeds both to atheris, the suite runs each seed once.

The first byte of an input chooses the parser, the rest is for it. A result or the refusal is right; anything else is a fault, and
so is an input over which a parser takes longer than `CPU_S_MAX`, a bomb.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.hostile_records import events, requests
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.source_mapping import events_of
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.formats.parsing import parse_events, parse_request
from tidegate_core.language.targets.argument_templates import parse_template
from tidegate_core.language.time.cron_fields import parse_cron
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.language.values.problems import RefusedRecord
from tidegate_core.language.values.sizes import parse_size
from tidegate_core.rows.dead_letter import LetterId, read_letter

CPU_S_MAX = 1.0
"""Instrumented code is some ten times slower than what `test_limits.py` bounds with 50 ms."""
SOURCE = SourceSpec.model_validate(SourceSpec.EXAMPLE)
SEPARATOR = b"\x1e"
"""Between the headers of an input."""


class Parser(NamedTuple):
    """One of them, and what it says no with."""

    parse: Callable[[bytes], object]
    refuses: type[Exception] = RefusedRecord


def _text(parse: Callable[[str], object]) -> Parser:
    """A text's refusals are ValueErrors, and so is a text that is none."""
    return Parser(lambda data: parse(data.decode("utf-8", errors="surrogatepass")), ValueError)


def _envelope(data: bytes) -> object:
    values = [*data.split(SEPARATOR, 3), b"", b"", b""]
    return parse_events(values[3] or b"{}", [("ce_id", values[0]), ("ce_type", values[1]), ("ce_time", values[2])])


def _mapped(data: bytes) -> object:
    values = [*data.split(SEPARATOR, 2), b"", b""]
    headers = (("commit-id", values[0]), ("content-length", values[1]))
    return events_of(SOURCE, LogRecord(0, 0, None, values[2], headers), "t/0/0")


def _letter(data: bytes) -> object:
    """Anybody who may write on a dead-letter topic may have written it: nothing of it is refused."""
    *values, value = data.split(SEPARATOR)
    headers = tuple(
        (f"tidegate.error.{name.decode(errors='replace')}", text)
        for name, text in zip(values[::2], values[1::2], strict=False)
    )
    letter = read_letter(LetterId("events", 0, 0), 0, None, value, headers)
    return (
        letter.namespace,
        letter.origin,
        letter.buried_at,
        letter.topic_partition,
        letter.offset,
        letter.replay_headers(),
    )


PARSERS: tuple[Parser, ...] = (
    Parser(parse_request),
    Parser(parse_events),
    Parser(_mapped),
    Parser(_envelope),
    Parser(_letter),
    _text(parse_cron),
    _text(lambda text: parse_cron(text, "quartz")),
    _text(parse_duration),
    _text(parse_instant),
    _text(parse_size),
    _text(parse_template),
    _text(LetterId.parse),
)


def parse_one(data: bytes) -> None:
    """Gives an input to the parser that its first byte names. Raises whatever is neither a result nor a refusal."""
    if not data:
        return
    parser = PARSERS[data[0] % len(PARSERS)]
    begun = time.process_time()
    try:
        parser.parse(data[1:])
    except parser.refuses as refused:
        if "internal error" in str(refused):
            raise AssertionError(str(refused)) from refused
    took = time.process_time() - begun
    if took > CPU_S_MAX:
        raise AssertionError(f"{took:.1f} s of CPU over {len(data)} bytes")


def seeds() -> Iterator[bytes]:
    """Yields right inputs of each parser.

    Reading JSON is native code, whose branches the fuzzer does not see: from nothing it makes a number of them at best, and all that
    lies behind, which is ours, is never reached.
    """
    mapped = SEPARATOR.join((b"commit-1", b"4096", b'{"file": {"day": "2026-01-01"}}'))
    dead = SEPARATOR.join(
        (b"topic", b"orders.out", b"partition", b"2", b"class", b"invalid", b'{"namespace": "flights"}')
    )
    event = (
        b'{"namespace": "flights", "dataset": "flights.raw", "partition": "2013-01-01", "kind": "created", "bytes": 12}'
    )
    enveloped = SEPARATOR.join((b"e-1", b"tidegate.data.partition", b"2026-01-01T00:00:00Z", event))
    of_each: tuple[tuple[bytes, ...], ...] = (
        tuple(text.encode() for text in requests()),
        tuple(text.encode() for text in events()),
        (mapped,),
        (enveloped,),
        (dead,),
        (b"0 6 * * *", b"*/15 0-5,7 1 JAN-MAR MON", b"@daily", b"H H(0-3) * * 0"),
        (b"0 0 12 ? * MON-FRI 2030/2", b"0 0 0 L-3 * ?", b"0 0 0 15W * ?", b"0 0 0 ? * 6#3", b"0 0 0 ? * 6L"),
        (b"90s", b"15m", b"P1DT2H", b"7d"),
        (b"2026-11-20T22:00:00Z", b"2026-11-20T22:00:00.123+01:00"),
        (b"100GB", b"64MiB", b"12B"),
        (b"--day=${correlation}", b"${upstream.outputs.rows} $${${upstream.args[0]}", b"plain"),
        (b"requests-3-17",),
    )
    for number, texts in enumerate(of_each):
        yield from (bytes([number]) + text for text in texts)


def write_seeds(folder: Path) -> None:
    """Writes each to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (folder / f"seed-{number:03d}").write_bytes(seed)


if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
