"""The invariants over many seeds: production actors, decisions and transactions in hostile, invented worlds (DESIGN 2).

A seed that fails is replayed with `python -m tidegate_testkit.simulation --seed S --trace`.
"""

from __future__ import annotations

import pytest

from regression_seeds import REGRESSION_SEEDS
from tidegate_testkit.simulation.outcome import simulate
