"""Texts of users' own, in lines and tables that a person may read on a terminal."""

from __future__ import annotations


def in_plain_lines(text: str) -> str:
    """The same of a text that may have several lines."""
    return "\n".join(map(in_plain_text, text.split("\n")))


def in_plain_text(text: str) -> str:
    """Whatever does not show is escaped: a text may hold orders to the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
