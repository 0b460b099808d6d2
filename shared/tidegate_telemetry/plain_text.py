"""Escapes users' texts for lines and tables on a terminal."""

from __future__ import annotations


def in_plain_lines(text: str) -> str:
    """Returns a text of any number of lines with invisible characters escaped, line breaks excepted."""
    return "\n".join(map(in_plain_text, text.split("\n")))


def in_plain_text(text: str) -> str:
    """Returns a text with all invisible characters escaped: it may contain control sequences for the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
