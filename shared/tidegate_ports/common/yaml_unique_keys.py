"""Refuses repeated keys in YAML mappings. No port: loaders of settings and of definitions share it."""

from __future__ import annotations

import yaml


class TwinKeys(yaml.MarkedYAMLError):
    """A key occurs twice in one mapping; YAML's own loaders would silently keep the last."""


def refuse_twin_keys(node: yaml.MappingNode) -> yaml.MappingNode:
    """Returns the node. Call it before merges (`<<`) are expanded, because an own key may replace a merged one.

    Raises:
        TwinKeys: A key occurs twice.
    """
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.value in seen:
            raise TwinKeys(problem=f'the key "{key.value}" stands twice', problem_mark=key.start_mark)
        seen.add(key.value)
    return node
