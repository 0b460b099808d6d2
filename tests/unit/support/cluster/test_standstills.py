"""What a machine that stood still explains, and that one which works explains nothing."""

from __future__ import annotations

import pytest

from tests.support.checkers.faults import Fault
from tests.support.checkers.messages import Delivery, Sent, judge_messages
from tests.support.cluster.cluster import SHARDS
from tests.support.cluster.machine_stalls import BACK_MS, NOTICED_MS, Standstills

BEGIN = 100_000
END = BEGIN + 8_000
STANDSTILLS = [pytest.param(BEGIN + NOTICED_MS - 1, 0, id="a busy machine"), pytest.param(END, 1, id="it stood still")]


def _faults(standstills: Standstills, first: int, second: int) -> list[Fault]:
    copies = [Delivery(1, f"{SHARDS - 1}-1", first, appended_at) for appended_at in (first, second)]
    return judge_messages([Sent(1, first)], copies, [], unrests=standstills.unrests())


@pytest.mark.parametrize(("next_look", "found"), STANDSTILLS)
def test_given_two_looks_then_only_a_long_pause_between_them_is_a_standstill(next_look: int, found: int) -> None:
    standstills = Standstills()
    standstills.looked(BEGIN, next_look)
    assert len(standstills.unrests()) == found


def test_given_a_standstill_then_what_was_sent_shortly_before_may_come_again_until_shards_are_served() -> None:
    standstills = Standstills()
    assert _faults(standstills, BEGIN - 1_000, END + 5_000)
    standstills.looked(BEGIN, END)
    assert _faults(standstills, BEGIN - 1_000, END + 5_000) == []
    assert _faults(standstills, BEGIN - 60_000, BEGIN - 30_000), "long before it"
    assert _faults(standstills, END + 1_000, END + BACK_MS + 60_000), "long after it"
