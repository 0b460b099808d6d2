from __future__ import annotations

from tests.chaos.nemeses import NEMESES


def test_given_all_nemeses_then_each_names_what_has_to_be_felt() -> None:
    assert len(NEMESES) == 21
    assert all(nemesis.needs for nemesis in NEMESES.values())
