"""Plain scalars by YAML 1.2's core schema, and not by PyYAML's own 1.1."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml

from tidegate_core.language.values.json_values import WrittenNumber
from tidegate_ports.common.yaml_core_schema import CoreSchemaLoader, tag_of


def loaded(text: str) -> Any:
    return yaml.load(text, CoreSchemaLoader)


TEXTS = "yes Yes YES no NO on On off OFF y n 1_000 0b11 22:00 1:30:00 2026-01-01 2026-01-01T00:00:00Z = 010 -07 00.5 nULL tRUE 1e 0xG".split()


@pytest.mark.parametrize("text", TEXTS)
def test_given_a_word_that_only_yaml_1_1_reads_otherwise_then_it_is_a_text(text: str) -> None:
    assert loaded(text) == text
    assert loaded(f"[{text}]") == [text]
    assert tag_of(text).endswith(":str")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("~", None),
        ("null", None),
        ("", None),
        ("true", True),
        ("FALSE", False),
        ("0", 0),
        ("-12", -12),
        ("+5", 5),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.INF", -math.inf),
        ("!!int 010", 10),
        ("!!float 1.10", 1.1),
        ("!!str 1.10", "1.10"),
        ('"1.10"', "1.10"),
    ],
)
def test_given_what_yaml_1_2_reads_as_another_value_then_it_is_that_value(text: str, value: object) -> None:
    found = loaded(text)
    assert found == value
    assert type(found) in {type(value), WrittenNumber}


def test_given_a_fraction_then_its_digits_stay() -> None:
    assert [each.written for each in loaded("[19.90, 0.1234567890123456789, 1e3]")] == [
        "19.90",
        "0.1234567890123456789",
        "1e3",
    ]


def test_given_a_merge_then_own_keys_win_and_a_key_twice_is_refused() -> None:
    assert loaded("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}")["b"] == {"x": 1, "y": 3}
    with pytest.raises(yaml.MarkedYAMLError, match="stands twice"):
        loaded("{x: 1, x: 2}")


@pytest.mark.parametrize("text", ["!!int foo", "!!bool foo", "!!float x", "1" * 5000])
def test_given_a_tag_that_its_text_cannot_have_then_the_place_is_told(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match="cannot be read as !!"):
        loaded(text)
