from __future__ import annotations

import random

from tests.chaos.nemeses import NEMESES
from tests.chaos.nemeses.poison_records import record


def test_given_a_seed_then_poison_is_the_same_and_of_many_kinds() -> None:
    assert record(random.Random(3)) == record(random.Random(3))
    chance = random.Random(4)
    assert len({record(chance)[:2] for _ in range(200)}) > 20


def test_given_all_nemeses_then_each_names_what_has_to_be_felt() -> None:
    assert len(NEMESES) == 21
    assert all(nemesis.needs for nemesis in NEMESES.values())
