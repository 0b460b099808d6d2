"""What is kept in memory within a number of bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.messages.wire.payload_budget import LruCache


def test_given_more_than_there_is_room_for_then_what_was_not_asked_for_the_longest_goes() -> None:
    kept = LruCache[str, int](30)
    for number, key in enumerate("abc"):
        kept.keep(key, number, 10)
    assert kept.get("a") == 0
    kept.keep("d", 3, 15)
    assert [kept.get(key) for key in "abcd"] == [0, None, None, 3]
    assert kept.size == 25


def test_given_a_value_that_alone_is_too_large_then_nothing_is_kept() -> None:
    kept = LruCache[str, int](30)
    kept.keep("a", 0, 10)
    kept.keep("b", 1, 31)
    assert (len(kept), kept.size) == (0, 0)


@given(asked=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 40)), max_size=40))
def test_given_any_order_then_what_is_kept_has_the_size_that_it_says_and_room(asked: list[tuple[str, int]]) -> None:
    kept, sizes = LruCache[str, int](60), dict[str, int]()
    for key, size in asked:
        kept.keep(key, size, size)
        sizes[key] = size
        assert kept.get(key) == size
        present = {each: found for each in sizes if (found := kept.get(each)) is not None}
        assert present == {each: sizes[each] for each in present}
        assert sum(present.values()) == kept.size <= 60
