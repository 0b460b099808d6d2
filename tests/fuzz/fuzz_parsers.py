"""The parsers under a coverage-guided fuzzer: `make fuzz-parsers FUZZ_S=600`. Not of the suite, whose environment has no atheris.

The first byte chooses the parser, the rest is its input. A result or the refusal is right; anything else ends the fuzzer, with the
input in a file. So does an input over which a parser takes longer than `CPU_S_MAX`, a bomb.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["tidegate_core"]):
    from tidegate_core.decisions.inputs import LogRecord
    from tidegate_core.model.durations import parse_duration
    from tidegate_core.model.instants import parse_instant
    from tidegate_core.model.parsing import parse_events, parse_request
    from tidegate_core.model.problems import RefusedRecord
    from tidegate_core.model.sizes import parse_size
    from tidegate_core.model.sources import SourceSpec
    from tidegate_core.model.templates import parse_template
    from tidegate_core.sources.mapping import event_of
    from tidegate_core.time.cron_fields import parse_cron

CPU_S_MAX = 1.0
"""Instrumented code is some ten times slower than what `test_limits.py` bounds with 50 ms."""
SOURCE = SourceSpec.model_validate(SourceSpec.EXAMPLE)


def _record(parse: Callable[[bytes], object]) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        try:
            parse(data)
        except RefusedRecord as refused:
            if "internal error" in str(refused):
                raise AssertionError(str(refused)) from refused

    return read


def _text(parse: Callable[[str], object]) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        try:
            parse(data.decode("utf-8", errors="surrogatepass"))
        except ValueError:
            return  # A text's refusals are ValueErrors, and so is a text that is none.

    return read


PARSERS: tuple[Callable[[bytes], None], ...] = (
    _record(parse_request),
    _record(parse_events),
    _record(lambda data: event_of(SOURCE, LogRecord(0, 0, None, data, (("commit-id", data[:64]),)), "t/0/0")),
    _record(lambda data: parse_events(b"{}", [("ce_id", data), ("ce_type", data), ("ce_time", data)])),
    _text(parse_cron),
    _text(lambda text: parse_cron(text, "quartz")),
    _text(parse_duration),
    _text(parse_instant),
    _text(parse_size),
    _text(parse_template),
)


def parse_one(data: bytes) -> None:
    """Gives an input to the parser that its first byte names."""
    if not data:
        return
    begun = time.process_time()
    PARSERS[data[0] % len(PARSERS)](data[1:])
    took = time.process_time() - begun
    if took > CPU_S_MAX:
        raise AssertionError(f"{took:.1f} s of CPU over {len(data)} bytes")


if __name__ == "__main__":
    atheris.Setup(sys.argv, parse_one)
    atheris.Fuzz()
