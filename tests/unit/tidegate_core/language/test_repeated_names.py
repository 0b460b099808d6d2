"""Names that stand twice in one object of a JSON text: told, whatever the quick count of colons sees."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from tidegate_core.language.formats.record_decoding import repeated_names

TEXTS = st.text('ab:\\"{é', max_size=4)


def found_in(value: bytes) -> tuple[str, ...]:
    return repeated_names(value, from_json(value))


def written(pairs: list[tuple[str, Any]], colons: Iterator[str]) -> str:
    """Returns an object with these names, one after the other, whether they repeat or not; each with the next of the colons."""

    def text(value: Any) -> str:
        return written(value, colons) if isinstance(value, list) else json.dumps(value, ensure_ascii=False)

    return f"{{{', '.join(f'{json.dumps(name, ensure_ascii=False)}{next(colons)}{text(value)}' for name, value in pairs)}}}"


def twice(pairs: list[tuple[str, Any]]) -> set[str]:
    """Returns the names that come again in one list of pairs, or in one within."""
    names = [name for name, _ in pairs]
    within = [twice(value) for _, value in pairs if isinstance(value, list)]
    return {name for name in names if names.count(name) > 1}.union(*within)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_given_json_without_repetitions_then_none_is_found(value: Any) -> None:
    assert found_in(json.dumps(value).encode()) == ()


@given(
    st.recursive(
        TEXTS | st.integers() | st.none(),
        lambda inner: st.lists(st.tuples(TEXTS, inner), max_size=4),
    ).filter(lambda each: isinstance(each, list)),
    st.lists(st.sampled_from([":", ": ", " : ", "\n:"]), min_size=1, max_size=4),
)
def test_given_any_names_then_those_that_come_again_are_found(pairs: list[tuple[str, Any]], colons: list[str]) -> None:
    assert set(found_in(written(pairs, itertools.cycle(colons)).encode())) == twice(pairs)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(
            rb'{"a": "\u003a", "b": 1, "b": 2}', id="a colon in disguise, which would make up for the forgotten name's"
        ),
        pytest.param(b'{"a": ":", "b": 1, "b": 2}', id="a colon in a text"),
        pytest.param(b'[{"a": {"b": 1, "b": 2}}]', id="within others"),
        pytest.param(b'{"b": {"a": 1}, "b": 2}', id="with all that it holds"),
        *(
            pytest.param(b'{"b": 1, "b"' + space + b": 2}", id=f"with {space!r} before one of the colons")
            for space in (b" ", b"  ", b"\t", b"\n", b"\r\n")
        ),
    ],
)
def test_given_a_name_that_stands_twice_then_no_count_of_colons_hides_it(value: bytes) -> None:
    assert found_in(value) == ("b",)
