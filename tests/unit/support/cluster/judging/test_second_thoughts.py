"""A lost cancel or replacement must show: each way of losing one is invented, and seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.checkers.cancel_replies import Answer, SecondThought, after_cancel, after_replacement
from tests.support.checkers.messages import Delivery, Sent, judge_messages

NOMINAL = 10_000
CAME = [Delivery(1, "0003-a", NOMINAL, NOMINAL + 20)]


def a_thought(status: str | None, at: int = 5_000, *, acknowledged: bool = True) -> SecondThought:
    return SecondThought("second-1", acknowledged, None if status is None else Answer(status, at))


def kinds(sent: Sent, deliveries: Sequence[Delivery]) -> list[str]:
    return [fault.kind for fault in judge_messages([sent], deliveries, [])]


@pytest.mark.parametrize(
    ("cancel", "create", "if_it_came", "if_not"),
    [
        pytest.param(a_thought("cancelled"), None, ["stale"], [], id="in time"),
        pytest.param(a_thought("too_late", NOMINAL - 1_001), None, [], ["lost"], id="too late, long before its time"),
        pytest.param(a_thought("too_late", NOMINAL + 20), None, [], ["lost"], id="too late, at its time"),
        pytest.param(a_thought("not_found"), Answer("cancelled", 6_000), ["stale"], [], id="read before its create"),
        pytest.param(a_thought(None), None, ["unanswered"], ["unanswered"], id="the broker has it, no answer"),
    ],
)
def test_given_a_cancel_then_its_answer_says_what_must_become_of_the_message(
    cancel: SecondThought, create: Answer | None, if_it_came: list[str], if_not: list[str]
) -> None:
    sent = after_cancel(1, NOMINAL, cancel, create)

    assert (kinds(sent, CAME), kinds(sent, [])) == (if_it_came, if_not)


@pytest.mark.parametrize(
    ("replacement", "if_it_came", "if_not"),
    [
        pytest.param(a_thought("accepted", NOMINAL + 20), ["stale"], [], id="replaced, and came all the same"),
        pytest.param(a_thought("rejected"), [], ["lost"], id="refused, so it stays"),
    ],
)
def test_given_a_replacement_then_its_answer_says_what_must_become_of_the_message(
    replacement: SecondThought, if_it_came: list[str], if_not: list[str]
) -> None:
    sent = after_replacement(1, NOMINAL, replacement)

    assert (kinds(sent, CAME), kinds(sent, [])) == (if_it_came, if_not)
