"""Composites as a tree: what is missing, how long latches hold, which evidence an event belongs to (rows CD-066, CD-068)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tests.support.builders import HOUR, NOW, a_spec, all_of, on_data, on_run_of
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.events.trigger_facts import Fact, fact_from_json
from tidegate_core.language.triggers import AllOfTrigger, AnyOfTrigger, AtLeastTrigger, EventTrigger, Trigger

DAY = 24 * HOUR
A, B, C = on_data("a"), on_data("b"), on_data("c")
RUN = fact_from_json(
    '{"type":"run","namespace":"flights","schedule":"up","run_id":"0001-aaaaaaaaaaaaaaaaaaaaaaaaaa","attempt":1,'
    '"state":"succeeded","correlation":"d7","admitted_at":"2025-11-13T02:13:00Z"}'
)
ARRIVAL = fact_from_json('{"type":"data.partition","namespace":"flights","dataset":"a","partition":"d1"}')


def any_of(*leaves: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "any_of", "triggers": list(leaves), **fields}


def at_least(k: int, *leaves: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "at_least", "k": k, "triggers": list(leaves), **fields}


def trigger(document: dict[str, Any]) -> EventTrigger:
    adapter: TypeAdapter[Any] = TypeAdapter(Trigger)
    read = adapter.validate_python(document)
    assert isinstance(read, EventTrigger)
    return read


NESTED = all_of(at_least(2, A, B, C), any_of(on_data("d", 5), on_run_of("up")))


@pytest.mark.parametrize(
    ("document", "counts", "missing"),
    [
        pytest.param(any_of(A, B), (0, 1), None, id="OR: any child (CD-066)"),
        pytest.param(all_of(A, B), (1, 1), None, id="AND: every child (CD-066)"),
        pytest.param(at_least(2, A, B, C), (1, 0, 1), None, id="k of n"),
        pytest.param(NESTED, (1, 0, 1, 0, 1), None, id="nested"),
        pytest.param(
            at_least(2, A, B, C),
            (1, 0, 0),
            "1 of: 1 of 1 data partitions of b | 1 of 1 data partitions of c",
            id="one short",
        ),
        pytest.param(
            NESTED,
            (1, 1, 0, 4, 0),
            "one of: 1 of 5 data partitions of d | a run of up that succeeded",
            id="the branch that is short",
        ),
    ],
)
def test_given_counts_then_the_tree_says_what_is_missing(
    document: dict[str, Any], counts: tuple[int, ...], missing: str | None
) -> None:
    assert trigger(document).missing(counts) == missing


LEAVES = st.sampled_from(
    [
        A,
        on_data("d", 5),
        {**on_run_of("up"), "times": 3},
        {"type": "data_size", "dataset": "e", "bytes": "3B"},
        {"type": "data_size", "dataset": "e", "rows": 2},
        {"type": "event", "name": "custom.x", "count": 2},
    ]
)


TICKS = st.just({"type": "cron", "expression": "0 6 * * *"})


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> dict[str, Any]:
    if depth == 0 or draw(st.booleans()):
        # A time trigger that stands alone counts nothing.
        return draw(LEAVES if depth == 3 else LEAVES | TICKS)
    children = draw(st.lists(trees(depth - 1), min_size=2, max_size=3))
    kind = draw(st.sampled_from([all_of, any_of, None]))
    return at_least(draw(st.integers(1, len(children))), *children) if kind is None else kind(*children)


@given(trees(), st.data())
def test_given_any_counts_then_they_are_enough_when_nothing_is_missing(
    document: dict[str, Any], data: st.DataObject
) -> None:
    """What decides (asked for each entry of the evidence) and what is told to people are the same question."""
    tree = trigger(document)
    counts = data.draw(st.tuples(*(st.integers(0, 6) for _ in tree.leaves())))
    assert tree.is_satisfied_by(counts) == (tree.missing(counts) is None)
    if len(counts) > 1:
        with pytest.raises(ValueError, match="leaves"):
            tree.is_satisfied_by(counts[1:])


def test_given_a_nested_tree_then_it_reads_back_from_its_stored_form() -> None:
    spec = ScheduleSpec.model_validate(a_spec(trigger=NESTED))
    assert ScheduleSpec.from_canonical(spec.canonical_json()) == spec
    assert [leaf.event_key("flights") for leaf in trigger(NESTED).leaves()][-1] == "run/flights/up"


def test_given_a_schedule_of_before_these_words_then_its_stored_form_is_what_it_was() -> None:
    """Equal documents have equal hashes across versions: re-applying an old file changes nothing (SEMANTICS 12.1)."""
    assert trigger(all_of(A, on_run_of("up"), timeout="6h")).canonical_json() == (
        '{"on_timeout":"abort","timeout":"6h","triggers":[{"count":1,"dataset":"a","type":"data_partitions"},'
        '{"schedule":"up","states":["succeeded"],"type":"run_status"}],"type":"all_of"}'
    )


def deep(levels: int) -> dict[str, Any]:
    document = any_of(A, B)
    for _ in range(levels - 2):
        document = all_of(document, C)
    return document


def test_given_five_levels_then_they_are_allowed_and_six_are_not() -> None:
    trigger(deep(5))
    with pytest.raises(ValidationError, match="6 levels deep"):
        trigger(deep(6))


def test_given_more_than_fifty_leaves_in_all_then_they_are_refused() -> None:
    half = any_of(*(on_data(f"d{number}") for number in range(26)))
    with pytest.raises(ValidationError, match="52 leaves"):
        trigger(all_of(half, half))


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(all_of(any_of(A, B, timeout="1h"), C), id="time-out of a nested one"),
        pytest.param(all_of(all_of(A, B, correlate="data_partition"), C), id="correlation of a nested one"),
        pytest.param(all_of(any_of(A, B, or_mode="each"), C), id="each of a nested one"),
        pytest.param(all_of({**A, "take": "exactly_n"}, B), id="take in a composite"),
        pytest.param(any_of({**A, "max_wait": "1h"}, B), id="max_wait in a composite"),
        pytest.param(any_of({**A, "at_least_every": "1h"}, B), id="at_least_every in a composite"),
        pytest.param(any_of(any_of(A, B, at_least_every="1h"), C), id="at_least_every of a nested one"),
        pytest.param(any_of(A, B, at_least_every="1h", or_mode="each"), id="at_least_every of each"),
        pytest.param(all_of(A, B, at_least_every="1h", correlate="data_partition"), id="at_least_every by value"),
        pytest.param(all_of(A, B, at_least_every="1h", window={"every": "day"}), id="at_least_every by day"),
        pytest.param(all_of(A, B, allow_empty=True), id="allow_empty without at_least_every"),
        pytest.param(at_least(3, A, B), id="more than there are"),
        pytest.param(at_least(0, A, B), id="none of them"),
        pytest.param(all_of(on_data("a", 2), B, correlate="data_partition"), id="two of one value"),
        pytest.param(
            all_of({"type": "data_size", "dataset": "a", "bytes": 1}, B, correlate="data_partition"), id="size by value"
        ),
        pytest.param(all_of(A, B, window={"every": "week"}), id="a week"),
        pytest.param(
            all_of(A, {"type": "every", "period": "1h"}, correlate="data_partition"), id="a time leaf by value"
        ),
        pytest.param(all_of({**A, "ttl": "0s"}, B), id="ttl of nothing"),
    ],
)
def test_given_what_does_not_fit_then_it_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        trigger(document)


# -- latches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "ttls"),
    [
        pytest.param(all_of(A, {**B, "ttl": "none"}), (DAY, None), id="24 h in AND, none said so"),
        pytest.param(all_of(A, {**B, "ttl": "2h"}, timeout="6h"), (6 * HOUR, 2 * HOUR), id="as long as the time-out"),
        pytest.param(all_of(A, B, timeout="6h", on_timeout="wait"), (DAY, DAY), id="the time-out ends nothing"),
        pytest.param(any_of(A, B), (None, None), id="OR: rare feeds add up"),
        pytest.param(any_of(A, all_of(B, C)), (None, DAY, DAY), id="AND within OR"),
        pytest.param(at_least(1, A, B), (None, None), id="one of n is OR"),
        pytest.param(at_least(2, A, B), (DAY, DAY), id="two of n"),
        pytest.param({**A, "ttl": "1h"}, (HOUR,), id="a lone leaf that says so"),
        pytest.param(A, (None,), id="a lone leaf"),
    ],
)
def test_given_where_a_leaf_stands_then_its_latch_holds_as_long(
    document: dict[str, Any], ttls: tuple[int | None, ...]
) -> None:
    assert trigger(document).terms(NOW).ttls == ttls


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "leaf", "event", "group"),
    [
        pytest.param(all_of(A, B), 0, ARRIVAL, "", id="free"),
        pytest.param(all_of(A, B, correlate="data_partition"), 0, ARRIVAL, "d1", id="by value, as ever"),
        pytest.param(all_of(A, B, window={"every": "day", "zone": "UTC"}), 0, ARRIVAL, '["2025-11-13"]', id="by day"),
        pytest.param(
            all_of(A, B, correlate="data_partition", window={"every": "day", "zone": "-05:00"}),
            0,
            ARRIVAL,
            '["2025-11-12","d1"]',
            id="by both, in a zone where it is the day before",
        ),
        pytest.param(any_of(B, A), 1, ARRIVAL, "", id="OR shares"),
        pytest.param(any_of(B, A, or_mode="each"), 1, ARRIVAL, '["1"]', id="OR each"),
        pytest.param(any_of(all_of(A, B), C, or_mode="each"), 0, ARRIVAL, '["0"]', id="OR each, a whole branch"),
        pytest.param(on_run_of("up"), 0, RUN, "0001-" + "a" * 26, id="each run fires by itself"),
        pytest.param({**on_run_of("up"), "times": 3}, 0, RUN, "", id="runs that are counted share"),
        pytest.param(
            any_of(A, on_run_of("up"), or_mode="each"), 1, RUN, '["1","0001-' + "a" * 26 + '"]', id="OR each run"
        ),
    ],
)
def test_given_an_event_then_its_evidence_is_that_of_its_group(
    document: dict[str, Any], leaf: int, event: Fact, group: str
) -> None:
    assert trigger(document).group_of(leaf, event, NOW) == group


def test_given_kinds_then_their_examples_are_composites() -> None:
    assert isinstance(trigger(dict(AnyOfTrigger.EXAMPLE)), AnyOfTrigger)
    assert isinstance(trigger(dict(AtLeastTrigger.EXAMPLE)), AtLeastTrigger)
    assert isinstance(trigger(dict(AllOfTrigger.EXAMPLE)), AllOfTrigger)
