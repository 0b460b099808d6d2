"""How condition expressions are cut into clauses, and what a planted bug makes of one."""

from __future__ import annotations

import pytest

from tests.simulation.mutants.clauses.clause_finder import Clause, clauses_of, spoilt
from tidegate_core.rows.store_operations import Condition
from tidegate_core.writes import conditions
from tidegate_memory.expressions import parse_condition

NAMES = {"#a": "a", "#b": "b", "#c": "c"}


def cut(monkeypatch: pytest.MonkeyPatch, expression: str) -> list[str]:
    def an_example() -> Condition:
        return Condition(expression, NAMES)

    an_example.__module__ = conditions.__name__
    monkeypatch.setattr(conditions, "an_example", an_example, raising=False)
    return [str(clause).removeprefix("an_example: ") for clause in clauses_of("an_example")]


@pytest.mark.parametrize(
    ("expression", "clauses"),
    [
        pytest.param("#a = :a", ["#a = :a always"], id="one part"),
        pytest.param("#a = :a AND #b = :b", ["#a = :a always", "#b = :b always"], id="a conjunction"),
        pytest.param(
            "#a = :a OR #b = :b", ["#a = :a OR #b = :b always", "#a = :a never", "#b = :b never"], id="a disjunction"
        ),
        pytest.param(
            "#a = :a AND (#b = :b OR (#c = :c AND NOT contains(#c, :d)))",
            [
                "#a = :a always",
                "(#b = :b OR (#c = :c AND NOT contains(#c, :d))) always",
                "#b = :b never",
                "(#c = :c AND NOT contains(#c, :d)) never",
                "#c = :c always",
                "NOT contains(#c, :d) always",
            ],
            id="one within the other",
        ),
        pytest.param(
            "#a BETWEEN :a AND :b AND #c = :c", ["#a BETWEEN :a AND :b always", "#c = :c always"], id="between"
        ),
        pytest.param("contains(#a, :run0) AND contains(#a, :run1)", ["contains(#a, :run) always"], id="repeated"),
    ],
)
def test_given_an_expression_then_it_is_cut_at_every_depth(
    monkeypatch: pytest.MonkeyPatch, expression: str, clauses: list[str]
) -> None:
    assert cut(monkeypatch, expression) == clauses


def test_given_builders_with_several_forms_then_the_clauses_of_each_are_found() -> None:
    texts = {clause.text for clause in clauses_of("acquirable")}
    assert {"attribute_not_exists(#epoch)", "#epoch = :epoch_seen"} <= texts


@pytest.mark.parametrize(
    ("clause", "item", "before", "after"),
    [
        pytest.param(Clause("unchanged", "#rev = :rev_seen", True), {"rev": 7}, False, True, id="not demanded"),
        pytest.param(Clause("fence_older", "#live_from < :version", False), {"live_from": "1"}, True, False, id="not granted"),
        pytest.param(Clause("fence_older", "#live_from < :version", False), {}, True, True, id="the other alternative"),
    ],
)  # fmt: skip
def test_given_a_spoilt_clause_then_only_that_is_different(
    clause: Clause, item: dict[str, str | int], before: bool, after: bool
) -> None:
    build = getattr(conditions, clause.builder)
    argument = 1 if clause.builder == "unchanged" else "2"
    found = [holds(each(argument), item) for each in (build, spoilt(clause).changed(build))]
    assert found == [before, after]


def holds(condition: Condition, item: dict[str, str | int]) -> bool:
    parsed = parse_condition(condition.expression, tuple(condition.names.items()))
    assert parsed.names_used == condition.names.keys()
    assert parsed.values_used == condition.values.keys()
    return parsed.holds({**item}, condition.values)
