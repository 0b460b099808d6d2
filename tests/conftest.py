"""What all tests share: the folder names the kind of a test, and hypothesis does not judge by the clock."""

from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
KINDS = frozenset({"unit", "chart", "conformance", "integration", "simulation", "cluster", "chaos", "bench"})

# No deadline: the machines that run this are shared, and a slow moment is no failure of the code.
# `print_blob` makes a failure on a build machine reproducible on a desk.
settings.register_profile("tidegate", deadline=None, print_blob=True)
settings.load_profile("tidegate")


LONGEST_FIRST = (
    "cluster/test_kills.py",
    "chaos/test_phase.py",
    "cluster/test_outages.py",
    "integration/node/test_node.py",
    "integration/dev/test_dev.py",
    "integration/api/test_stack.py",
    "integration/demo/test_demo.py",
    "bench/test_smoke.py",
)
"""Files of a minute and more, as last measured: two workers end together when these are not what begins last."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test with its folder, so that `-m` selects a kind and nobody forgets the marker; longest files first."""
    rank = {TESTS / file: number for number, file in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))
    for item in items:
        if not item.path.is_relative_to(TESTS):
            continue
        kind = item.path.relative_to(TESTS).parts[0]
        if kind in KINDS:
            item.add_marker(kind)
