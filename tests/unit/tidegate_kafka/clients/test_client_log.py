"""A client without its broker does not fill the log."""

from __future__ import annotations

import logging

from tidegate_kafka.clients.client_log import KINDS_MAX, REPEAT_S, FirstOfItsKind


def line(facility: str, client: str) -> logging.LogRecord:
    return logging.LogRecord("any", logging.ERROR, "", 0, "%s [%s] %s", (facility, client, "text"), None)


def test_given_the_same_kind_again_and_again_then_one_passes_in_a_while() -> None:
    now = [0.0]
    quiet = FirstOfItsKind(lambda: now[0])
    assert quiet.filter(line("FAIL", "a"))
    assert not quiet.filter(line("FAIL", "a"))
    assert quiet.filter(line("FAIL", "b"))
    assert quiet.filter(line("SESSTMOUT", "a"))
    now[0] = REPEAT_S
    assert quiet.filter(line("FAIL", "a"))


def test_given_lines_without_arguments_or_of_countless_kinds_then_all_first_ones_pass() -> None:
    quiet = FirstOfItsKind(lambda: 0.0)
    assert quiet.filter(logging.LogRecord("any", logging.ERROR, "", 0, "text", None, None))
    assert all(quiet.filter(line("FAIL", str(number))) for number in range(2 * KINDS_MAX))
