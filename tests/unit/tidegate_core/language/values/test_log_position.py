"""Positions: one total order, in values and in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.values.log_position import FIRST_POSITION, Position

TOPIC = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
positions = st.builds(
    Position,
    append_time=st.integers(0, 10**13 - 1),
    topic_id=st.integers(0, 16**32 - 1).map(lambda number: f"{number:032x}"),
    topic_partition=st.integers(0, 10**6 - 1),
    offset=st.integers(0, 2**63 - 1),
)
near = st.builds(
    Position,
    append_time=st.integers(0, 2),
    topic_id=st.sampled_from([TOPIC, "f" * 32]),
    topic_partition=st.integers(8, 11),
    offset=st.integers(98, 101),
)


@given(st.one_of(positions, near), st.one_of(positions, near))
def test_given_two_positions_then_their_texts_order_as_they_do(one: Position, other: Position) -> None:
    assert (one < other) == (one.text() < other.text())
    assert (one == other) == (one.text() == other.text())


@given(positions)
def test_given_any_position_then_its_text_reads_back(position: Position) -> None:
    assert Position.parse(position.text()) == position
    assert position >= FIRST_POSITION


def test_given_position_then_its_text_has_fixed_width() -> None:
    text = Position(1_763_678_400_000, TOPIC, 3, 42).text()

    assert text == f"1763678400000.{TOPIC}.000003.00000000000000000042"
    assert len(FIRST_POSITION.text()) == len(text)


@pytest.mark.parametrize(
    "position",
    [
        Position(10**13, TOPIC, 0, 0),
        Position(-1, TOPIC, 0, 0),
        Position(0, TOPIC.upper(), 0, 0),
        Position(0, "abc", 0, 0),
        Position(0, TOPIC, 10**6, 0),
        Position(0, TOPIC, 0, -1),
    ],
)
def test_given_part_beyond_its_width_then_no_text_is_made(position: Position) -> None:
    """A wider text would break the order of every store that sorts by it."""
    with pytest.raises(ValueError, match="position"):
        position.text()


@pytest.mark.parametrize("text", ["", "1.2.3.4", f"1763678400000.{TOPIC}.3.42"])
def test_given_another_text_then_it_is_no_position(text: str) -> None:
    with pytest.raises(ValueError, match="not the text of a position"):
        Position.parse(text)
