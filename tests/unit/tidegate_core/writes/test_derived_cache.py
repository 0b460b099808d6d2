"""What follows from texts is kept, and is what it would be if they were gone through anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.writes.read_cache import CHARACTERS_MAX, Derived


class Reader:
    """Goes through texts, and counts them."""

    def __init__(self) -> None:
        self.derived = Derived()
        self.gone_through = 0

    def read(self, name: str, *texts: str) -> list[str]:
        state = self.derived.of(name, texts, _nothing, self._add)
        return list(state)

    def _add(self, state: list[str], text: str) -> None:
        if text == "bad":
            raise ValueError(text)
        self.gone_through += 1
        state.append(text)


def _nothing() -> list[str]:
    return []


def test_given_more_texts_then_only_those_are_gone_through() -> None:
    reader = Reader()
    reader.read("a", "1", "2")
    assert reader.read("a", "1", "2", "3") == ["1", "2", "3"]
    assert reader.gone_through == 3


def test_given_a_text_that_is_refused_then_nothing_of_it_is_kept() -> None:
    reader = Reader()
    reader.read("a", "1")
    for _ in range(2):
        try:
            reader.read("a", "1", "2", "bad")
        except ValueError:
            continue
        raise AssertionError("it was taken")
    assert reader.read("a", "1", "2") == ["1", "2"]


def test_given_more_than_is_kept_then_the_last_one_stays_whatever_its_size() -> None:
    reader = Reader()
    large = "x" * CHARACTERS_MAX
    reader.read("a", "small")
    reader.read("b", large)
    reader.read("b", large, large)
    reader.read("a", "small")
    assert reader.gone_through == 3
    reader.read("b", large, large)
    assert reader.gone_through == 5


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.lists(st.sampled_from(["1", "2", "3" * CHARACTERS_MAX]), max_size=5)),
        max_size=20,
    )
)
def test_given_any_texts_in_any_order_then_the_state_is_theirs(asked: list[tuple[str, list[str]]]) -> None:
    """They may be fewer than before, or others: a transaction that was refused leaves what nobody will have written."""
    reader = Reader()
    for name, texts in asked:
        assert reader.read(name, *texts) == texts
