"""YAML by the core schema of YAML 1.2, with unique keys in each mapping. No port: loaders of settings and of
definitions share it.

PyYAML alone reads YAML 1.1, in which `NO` is false, `1_000` a thousand, `010` eight and `22:00` 1320.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from tidegate_core.language.values.json_values import written_number
from tidegate_ports.common.yaml_unique_keys import refuse_twin_keys

_PREFIX: Final = "tag:yaml.org,2002:"
TEXT: Final = f"{_PREFIX}str"
MERGE: Final = f"{_PREFIX}merge"
_INTEGER = r"[-+]?(?:0|[1-9][0-9]*)"
_SCHEMA: Final = (
    ("null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", [*"tTfF"]),
    # A leading zero makes it a text: YAML 1.2 reads 10, YAML 1.1 reads eight, and people mean a code such as 01067.
    ("int", rf"(?:{_INTEGER}|0o[0-7]+|0x[0-9a-fA-F]+)", [*"-+0123456789"]),
    ("float", rf"(?:{_INTEGER}(?:\.[0-9]*)?|[-+]?\.[0-9]+)(?:[eE][-+]?[0-9]+)?", [*"-+0123456789."]),
    ("float", r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))", [*"-+."]),
    ("merge", r"<<", ["<"]),
)
"""Tag, pattern of its texts, and their first characters. Merges are from YAML 1.1, but commonly used."""


class CoreSchemaLoader(yaml.SafeLoader):
    """Reads null, booleans and numbers by YAML 1.2, and every other plain scalar as text.

    Refuses a repeated key in one mapping, and a tag that does not fit its text (`!!int foo`).
    """

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - replaces YAML 1.1's resolvers

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        return refuse_twin_keys(super().compose_mapping_node(anchor))

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        # A number of thousands of digits raises another exception than a tag that does not fit.
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            problem = f"cannot be read as {node.tag.replace(_PREFIX, '!!')}"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


def _integer(loader: CoreSchemaLoader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 0 if text[:2] in {"0x", "0o"} else 10)


def _number(loader: CoreSchemaLoader, node: yaml.ScalarNode) -> float:
    text = str(loader.construct_scalar(node)).lower()
    return (
        float(text.replace(".inf", "inf").replace(".nan", "nan")) if text.endswith(("f", "n")) else written_number(text)
    )


for _tag, _texts, _first in _SCHEMA:
    _pattern = re.compile(rf"{_texts}\Z", re.ASCII)
    CoreSchemaLoader.add_implicit_resolver(f"{_PREFIX}{_tag}", _pattern, _first)
CoreSchemaLoader.add_constructor(f"{_PREFIX}int", _integer)
CoreSchemaLoader.add_constructor(f"{_PREFIX}float", _number)


def tag_of(text: str) -> str:
    """Returns the tag of an unquoted text."""
    patterns = CoreSchemaLoader.yaml_implicit_resolvers.get(text[:1], [])
    return next((tag for tag, pattern in patterns if pattern.match(text)), TEXT)
