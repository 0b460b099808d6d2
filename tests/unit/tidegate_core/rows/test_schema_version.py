"""Versions of rows: who may serve on what, and what is written in which."""

from __future__ import annotations

import pytest

from tests.support.builders import a_job, a_schedule
from tidegate_core.rows.schema_version import BOUNDS, FIRST, NEWEST, OLDEST, Readable, StoreSchema, newer_fields


@pytest.mark.parametrize(
    ("schema", "readable", "said"),
    [
        pytest.param(StoreSchema(writes=2, rows_from=1), Readable(1, 2), None, id="expanded"),
        pytest.param(StoreSchema(writes=2, rows_from=2), Readable(1, 2), None, id="contracted"),
        pytest.param(StoreSchema(writes=2, rows_from=2), Readable(2, 3), None, id="a newer release before its gate"),
        pytest.param(StoreSchema(writes=3, rows_from=2), Readable(1, 2), "newer release", id="newer than it can read"),
        pytest.param(StoreSchema(writes=2, closing=3), Readable(1, 2), "newer release", id="about to be newer"),
        pytest.param(
            StoreSchema(writes=2, rows_from=1), Readable(2, 3), "migrate --finish", id="older than it can read"
        ),
    ],
)
def test_given_a_store_and_a_release_then_it_serves_or_says_what_to_do(
    schema: StoreSchema, readable: Readable, said: str | None
) -> None:
    refusal = schema.refusal(readable)
    assert (refusal is None) == (said is None)
    assert said is None or said in str(refusal)


def test_given_a_store_without_the_item_then_it_is_of_the_first_version_and_this_release_serves_it() -> None:
    assert StoreSchema.of(None) == StoreSchema(writes=FIRST, rows_from=FIRST)
    assert StoreSchema.of(None).refusal() is None
    assert OLDEST <= FIRST <= NEWEST


def test_given_records_then_only_what_says_something_new_is_newer() -> None:
    assert list(newer_fields(a_schedule(next_nominal=1, next_nominal_is_bound=True), FIRST)) == [
        "next_nominal_is_bound"
    ]
    assert list(newer_fields(a_schedule(next_nominal=1, next_nominal_is_bound=True), BOUNDS)) == []
    assert list(newer_fields(a_schedule(next_nominal=1), FIRST)) == []
    assert list(newer_fields(a_job(), FIRST)) == []
