"""Ids: deterministic, without collisions, and readable where that is promised."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.values.derived_ids import (
    external_name,
    incarnation_of,
    manual_mark,
    nominal_mark,
    run_id,
    seal_mark,
    shard_of_run,
)
from tidegate_core.language.values.log_position import Position

CREATED = Position(1_763_678_400_000, "0f1e2d3c4b5a69788796a5b4c3d2e1f0", 3, 42)
INCARNATION = "01KAHPSBG0CHT4B9AB62BZ0JVH"


def test_given_golden_vectors_then_ids_never_change() -> None:
    assert incarnation_of(CREATED) == INCARNATION
    assert run_id(42, INCARNATION, "cron", nominal_mark(1_763_678_400_000)) == "0042-ycmlb5jtdamdqcifycusp3eq6e"
    assert run_id(42, INCARNATION, "all_of", seal_mark(1, "2013-01-01")) == "0042-pnfwco22h5tyhkvxtbmz5wjpum"
    assert run_id(42, INCARNATION, "manual", manual_mark(CREATED)) == "0042-d6l35rcha56rak4nl3w2a4hjdi"


def test_given_marks_then_no_two_occurrences_share_an_id() -> None:
    marks = [nominal_mark(1), seal_mark(1), seal_mark(1, ""), seal_mark(1, "1"), seal_mark(11), manual_mark(CREATED)]

    assert len({run_id(0, INCARNATION, "x", mark) for mark in marks}) == len(marks)


@given(st.integers(0, 9_999), st.integers(0, 10**13 - 1), st.integers(1, 99_999))
def test_given_any_run_then_its_shard_is_readable_and_its_name_fits_a_cluster(
    shard: int, nominal: int, attempt: int
) -> None:
    run = run_id(shard, INCARNATION, "cron", nominal_mark(nominal))
    name = external_name(run, attempt)

    assert shard_of_run(run) == shard
    assert len(name) <= 63
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)


def test_given_later_creation_then_incarnation_sorts_later() -> None:
    later = CREATED._replace(append_time=CREATED.append_time + 1, offset=0)

    assert incarnation_of(CREATED) < incarnation_of(later)
    assert incarnation_of(CREATED) != incarnation_of(CREATED._replace(offset=43))


@pytest.mark.parametrize("text", ["", "42-x", "0042-MFRGGZDFMZTWQ2LKN5WG63TQOE", "0042-mfrggzdfmztwq2lkn5wg63tqo1"])
def test_given_another_text_then_it_is_no_run_id(text: str) -> None:
    with pytest.raises(ValueError, match="not a run id"):
        shard_of_run(text)


@pytest.mark.parametrize("shard", [-1, 10_000])
def test_given_shard_beyond_four_digits_then_no_id_is_made(shard: int) -> None:
    with pytest.raises(ValueError, match="shard"):
        run_id(shard, INCARNATION, "cron", nominal_mark(0))
