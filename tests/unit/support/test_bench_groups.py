"""Records that go together are single ones on a bench: each is lost or held back by itself, and the actor is told of all at once."""

from __future__ import annotations

from tests.support.harness.produce_groups import Groups
from tidegate_core.effects import (
    Answer,
    Ask,
    ManyProduced,
    Notice,
    NotProduced,
    Outcome,
    Produce,
    Produced,
    ProduceMany,
)

RECORDS = tuple(Produce("out", None, value) for value in (b"1", b"2", b"3"))
LOST = NotProduced("unavailable", "no acknowledgement")


def test_given_a_group_then_its_records_take_its_place() -> None:
    before, behind = Ask(0, Notice("before")), Ask(8, RECORDS[0])

    asks = list(Groups().apart([before, Ask(7, ProduceMany(RECORDS)), behind]))

    assert [ask.effect for ask in asks] == [before.effect, *RECORDS, behind.effect]
    assert len({ask.token for ask in asks}) == 5


def test_given_outcomes_in_any_order_then_the_actor_is_told_once_of_all_in_theirs() -> None:
    groups = Groups()
    first, second, third = groups.apart([Ask(7, ProduceMany(RECORDS))])
    outcomes: dict[Ask, Outcome] = {third: Produced(), first: LOST, second: Produced()}

    told = [groups.together(Answer(ask.token, outcome)) for ask, outcome in outcomes.items()]

    assert told == [None, None, Answer(7, ManyProduced([LOST, Produced(), Produced()]))]


def test_given_a_record_of_an_actor_that_is_gone_then_its_outcome_is_nobodys() -> None:
    groups = Groups()
    (ask,) = groups.apart([Ask(7, ProduceMany(RECORDS[:1]))])

    assert Groups().together(Answer(ask.token, Produced())) is None
    assert groups.together(Answer(ask.token, Produced())) == Answer(7, ManyProduced([Produced()]))


def test_given_any_other_answer_then_it_is_passed_on() -> None:
    assert Groups().together(Answer(3, Produced())) == Answer(3, Produced())
