from __future__ import annotations

from tests.support.cluster.agenda import Agenda

NEVER_S = 3_600.0


def test_given_acts_then_those_that_are_due_are_done_in_their_order_and_once() -> None:
    agenda, done = Agenda(), list[str]()
    agenda.after(NEVER_S, lambda: done.append("later"))
    agenda.after(0.0, lambda: done.append("first"))
    agenda.after(-1.0, lambda: done.append("before it"))
    agenda.do_due()
    agenda.do_due()
    assert done == ["before it", "first"]


def test_given_the_end_then_what_is_left_is_done_too_also_what_an_act_adds() -> None:
    agenda, done = Agenda(), list[str]()
    agenda.after(NEVER_S, lambda: agenda.after(NEVER_S, lambda: done.append("added")))
    agenda.after(2 * NEVER_S, lambda: done.append("last"))
    agenda.do_all()
    agenda.do_all()
    assert sorted(done) == ["added", "last"]
