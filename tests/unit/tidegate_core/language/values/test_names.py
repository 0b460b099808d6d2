"""Names and ids that users choose."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tidegate_core.language.values.names import EventId, MessageKey, Name, QualifiedName, RunId, Topic

CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (
        Name,
        ["a", "0", "join-day", "a.b_c-d", "x" * 128],
        ["", "-a", ".a", "A", "a/b", "a#b", "ä", "x" * 129, "a\n", 5, None],
    ),
    (QualifiedName, ["a", "ns/a"], ["a/", "/a", "a/b/c", "A/b"]),
    (Topic, ["orders.Reminders_1-x", "x" * 249], ["", ".", "..", "a b", "a/b", "x" * 250, "ä"]),
    (
        RunId,
        ["0042-mfrggzdfmztwq2lkn5wg63tqoe"],
        ["42-mfrggzdfmztwq2lkn5wg63tqoe", "0042-MFRGGZDFMZTWQ2LKN5WG63TQOE", ""],
    ),
    (MessageKey, ["reminder 17", "ключ", "a#b/c"], ["", "a\x00", "a\nb", "x" * 129]),
    (EventId, ["x" * 1024], ["", "x" * 1025, "a\tb"]),
]


@pytest.mark.parametrize(("kind", "good", "_bad"), CASES)
def test_given_names_within_the_rules_then_they_are_accepted(kind: Any, good: list[Any], _bad: list[Any]) -> None:
    assert [TypeAdapter(kind).validate_python(name) for name in good] == good


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, _, bad in CASES for name in bad])
def test_given_other_names_then_they_are_refused(kind: Any, name: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(name)


def test_given_text_without_utf8_then_it_is_refused() -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(MessageKey).validate_python("\ud800")
