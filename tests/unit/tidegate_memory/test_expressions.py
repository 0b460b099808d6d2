"""The evaluator against a table of what DynamoDB Local answered; `tests/conformance` compares both at random."""

import pytest

from tidegate_core.rows.store_operations import Item, Value
from tidegate_memory.expressions import InvalidExpression, parse_condition, parse_update

ITEM: Item = {
    "pk": "p",
    "sk": "s",
    "rev": 5,
    "spec": "abc",
    "flag": True,
    "nothing": None,
    "entries": [1, "x", [2]],
    "doc": {"a": 1, "deep": {"e": "q"}},
    "tags": frozenset({"x", "y"}),
    "packed": b"\x01\x02",
    "hollow": "",
    "accents": "é\U0001f600",
}
NAMES = (("#state", "state"), ("#doc", "doc"), ("#a", "a"))
VALUES: dict[str, Value] = {
    ":five": 5,
    ":six": 6,
    ":one": 1,
    ":text": "abc",
    ":ab": "ab",
    ":yes": True,
    ":null": None,
    ":x": "x",
    ":set": frozenset({"x", "y"}),
    ":list": [2],
    ":bytes": b"\x01",
    ":q": "q",
}


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("rev = :five", True),
        ("rev <> :five", False),
        ("rev = :text", False),
        ("rev <> :text", True),
        ("ghost = :null", False),
        ("ghost <> :five", True),
        ("ghost <> phantom", True),
        ("NOT ghost = :five", True),
        ("rev < :text", False),
        ("rev <= :five AND rev >= :five AND rev < :six", True),
        ("spec > :ab", True),
        ("packed > :bytes", True),
        ("flag = :one", False),
        ("nothing = :null", True),
        ("flag < rev", False),
        ("tags = :set", True),
        ("doc.deep.e = :q", True),
        ("#doc.#a = entries[0]", True),
        ("entries[2] = :list", True),
        ("rev.a = :five", False),
        ("rev BETWEEN :one AND :six", True),
        ("spec BETWEEN :one AND :six", False),
        ("rev IN (:one, :five)", True),
        ("ghost IN (:one)", False),
        ("rev IN (size(spec), :five)", True),
        ("size(spec) = entries[9]", False),
        ("size(accents) = size(entries)", True),
        ("size(entries) > size(tags)", True),
        ("size(ghost) < :five", False),
        ("size(ghost) <> :five", True),
        ("size(rev) >= :one", False),
        ("attribute_exists(doc.deep)", True),
        ("attribute_exists(nothing)", True),
        ("attribute_not_exists(doc.ghost)", True),
        ("attribute_type(rev, :x)", None),
        ("contains(spec, :ab)", True),
        ("contains(spec, hollow)", True),
        ("contains(tags, :x)", True),
        ("contains(tags, :set)", False),
        ("contains(entries, :list)", True),
        ("contains(doc, :x)", False),
        ("contains(rev, :five)", False),
        ("begins_with(spec, :ab)", True),
        ("begins_with(packed, :bytes)", True),
        ("begins_with(spec, :bytes)", False),
        ("begins_with(rev, :ab)", False),
        ("rev = :six OR rev = :five AND spec = :text", True),
        ("(rev = :six OR rev = :five) AND NOT spec = :text", False),
        ("NOT rev = :six AND rev = :six", False),
        ("not (not (rev = :five))", True),
        ("(rev) = (:five)", True),
        (":five = :five", True),
        # What is invalid in whatever branch it stands.
        ("rev = :five OR flag < :yes", None),
        ("rev = rev", None),
        ("#doc = doc", None),
        ("rev IN (:five, rev)", None),
        ("begins_with(spec, :five)", None),
        ("size(:five) = :one", None),
        ("size(size(spec)) = :one", None),
        ("rev BETWEEN :six AND :one", None),
        ("rev BETWEEN :one AND :text", None),
        ("((rev = :five))", None),
        ("((rev)) = :five", None),
        ("rev", None),
        ("rev = ", None),
        ("(rev = :five", None),
        ("rev = :five)", None),
        ("rev == :five", None),
        ("rev = 5", None),
        ("_rev = :five", None),
        ("state = :five", None),
        ("size = :five", None),
        ("doc.name = :five", None),
        ("#ghost = :five", None),
        ("attribute_exists(:five)", None),
        ("attribute_exists(rev, spec)", None),
        ("attribute_exists(rev) = :yes", None),
        ("Attribute_exists(rev)", None),
        ("size(rev)", None),
        ("if_not_exists(rev, :one) = :one", None),
        ("", None),
        (f"rev = :five {' ' * 4_096} OR rev = :six", None),
    ],
)
def test_given_a_condition_then_its_verdict_is_dynamodbs(expression: str, holds: bool | None) -> None:
    def verdict() -> bool:
        parsed = parse_condition(expression, NAMES)
        parsed.check(VALUES)
        return parsed.holds(ITEM, VALUES)

    if holds is None:
        with pytest.raises(InvalidExpression):
            verdict()
    else:
        assert verdict() is holds


def test_given_no_item_then_every_attribute_is_missing() -> None:
    assert parse_condition("attribute_not_exists(pk) AND rev <> :five", ()).holds(None, VALUES)
    assert not parse_condition("attribute_exists(pk) OR rev = :five", ()).holds(None, VALUES)


@pytest.mark.parametrize(
    ("expression", "changes"),
    [
        ("SET rev = rev + :one", {"rev": 6}),
        ("SET rev = :one - rev", {"rev": -4}),
        ("SET fresh = if_not_exists(fresh, :five) + :one", {"fresh": 6}),
        ("SET fresh = if_not_exists(ghost, if_not_exists(rev, :one))", {"fresh": 5}),
        ("SET fresh = spec, spec = rev", {"fresh": "abc", "spec": 5}),
        ("SET doc.deep.f = :one, #doc.#a = :six", {"doc": {"a": 6, "deep": {"e": "q", "f": 1}}}),
        ("SET #state = doc", {"state": {"a": 1, "deep": {"e": "q"}}}),
        ("REMOVE rev SET fresh = rev", {"rev": None, "fresh": 5}),
        ("REMOVE doc.a, doc.ghost, ghost", {"doc": {"deep": {"e": "q"}}}),
        ("ADD rev :one, tags :set, fresh :five", {"rev": 6, "fresh": 5}),
        ("ADD doc.a :one", {"doc": {"a": 2, "deep": {"e": "q"}}}),
        ("DELETE tags :set", {"tags": None}),
        ("DELETE ghost :set", {}),
        ("set rev = :one remove spec", {"rev": 1, "spec": None}),
    ],
)
def test_given_an_update_then_the_item_is_dynamodbs_and_the_old_one_stays(
    expression: str, changes: dict[str, Value]
) -> None:
    before = repr(ITEM)
    parsed = parse_update(expression, NAMES)
    parsed.check(VALUES)
    after = parsed.applied_to(ITEM, VALUES)
    gone = {name for name, value in changes.items() if value is None}
    assert after == {name: value for name, value in (ITEM | changes).items() if name not in gone}
    assert repr(ITEM) == before


@pytest.mark.parametrize(
    "expression",
    [
        "SET rev = ghost",
        "SET rev = rev + ghost",
        "SET rev = if_not_exists(rev, ghost)",
        "SET rev = spec + :one",
        "SET rev = flag + :one",
        "SET rev = rev + :text",
        "SET rev = rev + :one + :one",
        "SET ghost.a = :one",
        "SET rev.a = :one",
        "REMOVE ghost.a",
        "ADD spec :one",
        "ADD rev :set",
        "ADD rev :text",
        "ADD rev rev",
        "DELETE rev :set",
        "DELETE tags :x",
        "SET pk = :text",
        "REMOVE sk",
        "SET doc.a = :one, doc = :one",
        "REMOVE rev, rev",
        "SET rev = :one SET spec = :one",
        "SET rev = size(spec)",
        "SET rev = if_not_exists(:one, :one)",
        "SET rev = :one,",
        "SET",
        "rev = :one",
        "SET state = :one",
        "SET entries[0] = :one",
        "",
    ],
)
def test_given_an_update_that_cannot_be_then_it_is_invalid(expression: str) -> None:
    def attempt() -> None:
        parsed = parse_update(expression, NAMES)
        parsed.check(VALUES)
        parsed.applied_to(ITEM, VALUES)

    with pytest.raises(InvalidExpression):
        attempt()


def test_given_the_same_text_again_then_it_is_not_parsed_again() -> None:
    assert parse_condition("rev = :five", NAMES) is parse_condition("rev = :five", NAMES)
    assert parse_update("SET rev = :five", NAMES) is parse_update("SET rev = :five", NAMES)
