"""YAML in which each key of a mapping stands once. No port, but loaders of settings and of definitions both ask for it."""

from __future__ import annotations

import yaml


class TwinKeys(yaml.MarkedYAMLError):
    """A key stands twice in one mapping, of which YAML's own loaders silently keep the last."""


def refuse_twin_keys(node: yaml.MappingNode) -> yaml.MappingNode:
    """Returns the node. To be called as it is composed, before merges (`<<`) are laid out: an own key may replace a merged one.

    Raises TwinKeys.
    """
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.value in seen:
            raise TwinKeys(problem=f'the key "{key.value}" stands twice', problem_mark=key.start_mark)
        seen.add(key.value)
    return node
