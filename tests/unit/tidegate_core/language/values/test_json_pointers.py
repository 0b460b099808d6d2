"""JSON pointers, by the examples of RFC 6901 and beyond."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate_core.language.values.json_pointers import MISSING, value_at

DOCUMENT = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "m~n": 8,
    " ": 7,
    "deep": {"er": [{"x": None}]},
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/m~0n", 8),
        ("/ ", 7),
        ("/deep/er/0/x", None),
        ("/foo/2", MISSING),
        ("/foo/-", MISSING),
        ("/foo/00", MISSING),
        ("/foo/-1", MISSING),
        ("/foo/٣", MISSING),
        ("/foo/99999999999999999999", MISSING),
        ("/nothing", MISSING),
        ("/foo/0/0", MISSING),
        ("/deep/er/0/x/y", MISSING),
    ],
)
def test_given_a_pointer_then_its_value_is_found(pointer: str, value: Any) -> None:
    found = value_at(DOCUMENT, pointer)
    assert found is value if value is MISSING else found == value
