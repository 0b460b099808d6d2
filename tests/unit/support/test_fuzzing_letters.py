"""The judge of dead letters on a real broker: it finds what is missing, wrong, too strict, about us, or nobody's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.fuzz.control_schedules import SOURCE
from tests.fuzz.dead_letter_check import Judged, Letter, judge
from tests.fuzz.hostile_records import KINDS, Hostile, Kind
from tests.fuzz.parser_verdict import refusal_of
from tests.fuzz.record_streams import BULKY_BYTES, BULKY_ONE_IN, Known, Lane, digest_of, stream_of
from tidegate_core.model.sources import SourceSpec

TOPIC = "tidegate.events"
FIRST = 40
"""Offset of the first record: the topic had others before."""


def _digest(text: str) -> bytes:
    return digest_of(None, text.encode(), ())


BAD = Known(_digest("bad"), "truncated", must_die=True, is_right=False)
RIGHT = Known(_digest("right"), "untouched", must_die=False, is_right=True)
ODD = Known(_digest("odd"), "mutated", must_die=False, is_right=False)
RECORDS = {FIRST: BAD, FIRST + 1: RIGHT, FIRST + 2: ODD}
LETTER = Letter((TOPIC, 3, FIRST), BAD.digest, "unparsable", "is no JSON")


def judged(letters: Sequence[Letter]) -> Judged:
    lane = Lane("events", TOPIC, 3, iter(()), RECORDS, begin=FIRST, end=FIRST + 3)
    return judge([lane], iter(letters))


def test_given_a_letter_for_what_is_rejected_then_nothing_is_at_fault() -> None:
    said = judged([LETTER, replace(LETTER, place=(TOPIC, 3, FIRST - 1)), replace(LETTER, place=("other", 0, 7))])
    assert (said.faults, said.letters, said.repeats) == ([], 1, 0)


def test_given_a_letter_twice_then_it_is_one_and_a_repeat() -> None:
    said = judged([LETTER, LETTER])
    assert (said.faults, said.letters, said.repeats) == ([], 1, 1)


def test_given_a_letter_that_the_parsers_do_not_explain_then_it_is_counted_by_its_class() -> None:
    said = judged([LETTER, Letter((TOPIC, 3, FIRST + 2), ODD.digest, "too_large", "cannot be kept")])
    assert (said.faults, said.behind) == ([], {"too_large": 1})


@pytest.mark.parametrize(
    ("letters", "fault"),
    [
        pytest.param([], "is refused, and no dead letter", id="dropped silently"),
        pytest.param([replace(LETTER, digest=b"")], "is not the record", id="not the record"),
        pytest.param([replace(LETTER, message="internal error: KeyError")], "about us", id="about us"),
        pytest.param([LETTER, replace(LETTER, place=(TOPIC, 3, 99))], "nobody produced", id="nobody's"),
        pytest.param(
            [LETTER, Letter((TOPIC, 3, FIRST + 1), RIGHT.digest, "invalid", "no")],
            "is right, and refused",
            id="too strict",
        ),
    ],
)
def test_given_a_wrong_letter_then_it_is_found(letters: list[Letter], fault: str) -> None:
    (found,) = judged(letters).faults
    assert fault in found


@pytest.mark.parametrize("kind", KINDS)
def test_given_a_stream_then_few_are_bulky_the_same_come_again_and_right_ones_pass_the_parsers(kind: Kind) -> None:
    count = 4_000
    first, again = (
        [each for each, _ in zip(stream_of(kind, 5, "/srv/f.py"), range(count), strict=False)] for _ in "ab"
    )
    assert first == again
    bulky = [each for each in first if _size(each) > BULKY_BYTES]
    assert 1 <= len(bulky) <= count // BULKY_ONE_IN
    assert not any(b"/jobs/fuzz.py" in (each.value or b"") for each in first)
    source = SourceSpec.model_validate(SOURCE)
    right = [each for each in first if each.made == "untouched"]
    assert right
    assert [each for each in right if refusal_of(kind, each, source) is not None] == []


def _size(record: Hostile) -> int:
    return len(record.key or b"") + len(record.value or b"") + sum(len(text) for _, text in record.headers)
