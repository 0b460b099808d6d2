"""The judge of dead letters on a real broker: it finds what is missing, wrong, too strict, about us, or nobody's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.fuzz.dead_letter_check import Judged, Letter, judge
from tests.fuzz.record_streams import Known, Lane, digest_of

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
    writer = Lane("events", TOPIC, 3, iter(()), RECORDS, begin=FIRST, end=FIRST + 3)
    return judge([writer], iter(letters))


def test_given_a_letter_for_what_is_rejected_then_nothing_is_at_fault() -> None:
    said = judged([LETTER, replace(LETTER, place=(TOPIC, 3, FIRST - 1)), replace(LETTER, place=("other", 0, 7))])
    assert (said.faults, said.letters, said.repeats) == ([], 1, 0)


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
