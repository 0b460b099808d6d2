"""Ids of events that are made of several texts."""

from __future__ import annotations


def one_step(text: str) -> str:
    """Returns a text without slashes, as JSON pointers write such a step. What stands beside it may have some, and the id of `a/b` with
    `c` would else be that of `a` with `b/c`: of two events one would count.
    """
    return text.replace("~", "~0").replace("/", "~1")
