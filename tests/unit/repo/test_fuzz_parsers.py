"""What `make fuzz-parsers` begins with: right inputs of each parser, and a harness that lets no fault pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import parsers
from tests.fuzz.parsers import PARSERS, Parser, parse_one, seeds, write_seeds
from tidegate_core.language.values.problems import Problem, RefusedRecord


@pytest.mark.parametrize("seed", list(seeds()), ids=lambda seed: f"{seed[0]}-{seed[1:40].decode(errors='replace')}")
def test_given_a_seed_then_its_parser_takes_it(seed: bytes) -> None:
    """One that is refused at the door leads the fuzzer nowhere."""
    assert PARSERS[seed[0]].parse(seed[1:]) is not None
    parse_one(seed)


def test_given_a_parser_then_it_has_seeds_and_each_is_written(tmp_path: Path) -> None:
    assert {seed[0] for seed in seeds()} == set(range(len(PARSERS)))
    write_seeds(tmp_path)
    assert sorted(each.read_bytes() for each in tmp_path.iterdir()) == sorted(seeds())


def test_given_what_no_parser_takes_then_it_is_no_fault() -> None:
    for number in range(len(PARSERS)):
        parse_one(bytes([number]) + b"\xff\x00{")
    parse_one(b"")


def _crashes(_data: bytes) -> None:
    raise KeyError("surprise")


def _blames_itself(_data: bytes) -> None:
    raise RefusedRecord([Problem("", "internal error: KeyError")])


@pytest.mark.parametrize("parse", [_crashes, _blames_itself])
def test_given_a_fault_then_the_fuzzer_ends(monkeypatch: pytest.MonkeyPatch, parse: Callable[[bytes], object]) -> None:
    monkeypatch.setattr(parsers, "PARSERS", (Parser(parse),))
    with pytest.raises((KeyError, AssertionError)):
        parse_one(b"\x00x")


def test_given_an_input_that_takes_too_long_then_the_fuzzer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers, "CPU_S_MAX", -1.0)
    with pytest.raises(AssertionError, match="of CPU over 4 bytes"):
        parse_one(b"\x0590s")
