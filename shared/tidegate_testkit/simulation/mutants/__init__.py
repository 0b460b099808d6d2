"""Planted bugs that the simulation must find: what a check cannot find, it does not prove.

A new one is an entry in one of the lists, with what it must break. `--mutant NAME` plants one in a run from the command line.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_testkit.simulation.mutants.conditions import CONDITIONS
from tidegate_testkit.simulation.mutants.messages import MESSAGES
from tidegate_testkit.simulation.mutants.mutant import Mutant
from tidegate_testkit.simulation.mutants.runs import RUNS

MUTANTS: Mapping[str, Mutant] = {mutant.name: mutant for mutant in (*CONDITIONS, *RUNS, *MESSAGES)}
