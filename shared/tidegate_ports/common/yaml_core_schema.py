"""YAML by the core schema of YAML 1.2, with each key of a mapping once. No port, but loaders of settings and of definitions both read by it.

PyYAML reads by YAML 1.1, in which `NO` is false, `1_000` a thousand, `010` eight and `22:00` 1320.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from tidegate_core.language.values.exact_json import written_number
from tidegate_ports.common.yaml_unique_keys import refuse_twin_keys

_PREFIX: Final = "tag:yaml.org,2002:"
TEXT: Final = f"{_PREFIX}str"
MERGE: Final = f"{_PREFIX}merge"
_INTEGER = r"[-+]?(?:0|[1-9][0-9]*)"
_SCHEMA: Final = (
    ("null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", [*"tTfF"]),
    # A zero at the beginning makes it a text: 10 for this schema, eight for YAML 1.1, and a code for people, such as 01067.
    ("int", rf"(?:{_INTEGER}|0o[0-7]+|0x[0-9a-fA-F]+)", [*"-+0123456789"]),
    ("float", rf"(?:{_INTEGER}(?:\.[0-9]*)?|[-+]?\.[0-9]+)(?:[eE][-+]?[0-9]+)?", [*"-+0123456789."]),
    ("float", r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))", [*"-+."]),
    ("merge", r"<<", ["<"]),
)
"""Tag, texts that have it, and how those begin. Merges are of YAML 1.1, and people use them."""


class CoreSchemaLoader(yaml.SafeLoader):
    """Takes as null, truth or number what YAML 1.2 takes for one, and every other plain scalar as the text that stands there.

    Refuses a key that stands twice in one mapping, and a tag that its text cannot have (`!!int foo`).
    """

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - its own, instead of YAML 1.1's

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        return refuse_twin_keys(super().compose_mapping_node(anchor))

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        # A number of thousands of digits ends in an error of another kind than a tag that cannot be.
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
    """Returns the tag of a text that stands there without quotes."""
    patterns = CoreSchemaLoader.yaml_implicit_resolvers.get(text[:1], [])
    return next((tag for tag, pattern in patterns if pattern.match(text)), TEXT)
