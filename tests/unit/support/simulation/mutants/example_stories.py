"""Tests that the planted bugs of `test_killing.py` name. Pytest collects this file only where it is named."""

from __future__ import annotations

import pytest


class World:
    """Something to break."""

    protected = True
    masked = True


def is_safe() -> bool:
    return World.protected or World.masked


def test_given_a_world_then_it_is_safe() -> None:
    assert is_safe()


@pytest.mark.nightly
def test_given_a_world_then_nothing_counts_twice() -> None:
    assert is_safe(), "I3: counted twice"


def test_given_a_world_then_nothing_is_lost() -> None:
    assert is_safe(), "I1: lost"


def test_given_a_world_then_no_code_raises() -> None:
    if not is_safe():
        raise KeyError("I3: counted twice")


def test_given_a_world_then_no_monitor_reports_an_error() -> None:
    assert is_safe(), "I3: shard 0 raised KeyError()"


def test_given_a_world_then_it_refuses() -> None:
    with pytest.raises(KeyError):
        test_given_a_world_then_no_code_raises()


def refuses_where_safe() -> None:
    if is_safe():
        raise KeyError


def test_given_a_safe_world_then_it_refuses() -> None:
    with pytest.raises(KeyError):
        refuses_where_safe()


@pytest.fixture
def safe_world() -> bool:
    return is_safe()


def test_given_a_fixture_then_it_sees_no_bug(safe_world: bool) -> None:
    assert safe_world


@pytest.mark.parametrize("number", [pytest.param(1, id="one"), pytest.param(2, id="two")])
def test_given_a_number_then_only_two_needs_the_protection(number: int) -> None:
    assert number == 1 or is_safe()


def test_given_a_wrong_test_then_it_always_fails() -> None:
    assert not is_safe(), "I3: counted twice"
