"""Planted bugs that the simulation must find: what a check cannot find, it does not prove.

A new one is an entry in one of the lists, with what it must break. `--mutant NAME` plants one in a run from the command line;
`make mutants` hunts them all. A builder of conditions needs one for each of its clauses (`clauses.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_testkit.simulation.mutants.aside import ASIDE
from tidegate_testkit.simulation.mutants.clauses_of_controls import CLAUSES_OF_CONTROLS
from tidegate_testkit.simulation.mutants.clauses_of_limits import CLAUSES_OF_LIMITS
from tidegate_testkit.simulation.mutants.clauses_of_migration import CLAUSES_OF_MIGRATION
from tidegate_testkit.simulation.mutants.clauses_of_outages import CLAUSES_OF_OUTAGES
from tidegate_testkit.simulation.mutants.clauses_of_ownership import CLAUSES_OF_OWNERSHIP
from tidegate_testkit.simulation.mutants.clauses_of_positions import CLAUSES_OF_POSITIONS
from tidegate_testkit.simulation.mutants.clauses_of_rates import CLAUSES_OF_RATES
from tidegate_testkit.simulation.mutants.clauses_of_runs import CLAUSES_OF_RUNS
from tidegate_testkit.simulation.mutants.clauses_of_the_gate import CLAUSES_OF_THE_GATE
from tidegate_testkit.simulation.mutants.conditions import CONDITIONS
from tidegate_testkit.simulation.mutants.controls import CONTROLS
from tidegate_testkit.simulation.mutants.hand_overs import HAND_OVERS
from tidegate_testkit.simulation.mutants.late_admissions import LATE_ADMISSIONS
from tidegate_testkit.simulation.mutants.late_rows import LATE_ROWS
from tidegate_testkit.simulation.mutants.limits import LIMITS
from tidegate_testkit.simulation.mutants.messages import MESSAGES
from tidegate_testkit.simulation.mutants.mutant import Mutant
from tidegate_testkit.simulation.mutants.outages import OUTAGES
from tidegate_testkit.simulation.mutants.rates import RATE_BUGS
from tidegate_testkit.simulation.mutants.recurring import RECURRING
from tidegate_testkit.simulation.mutants.reminders import REMINDERS
from tidegate_testkit.simulation.mutants.retries import RETRIES
from tidegate_testkit.simulation.mutants.rules_of_cancels import RULES_OF_CANCELS
from tidegate_testkit.simulation.mutants.rules_of_deadlines import RULES_OF_DEADLINES
from tidegate_testkit.simulation.mutants.rules_of_events_topic import RULES_OF_EVENTS_TOPIC
from tidegate_testkit.simulation.mutants.rules_of_fates import RULES_OF_FATES
from tidegate_testkit.simulation.mutants.rules_of_gaps import RULES_OF_GAPS
from tidegate_testkit.simulation.mutants.rules_of_gone_records import RULES_OF_GONE_RECORDS
from tidegate_testkit.simulation.mutants.rules_of_growth import RULES_OF_GROWTH
from tidegate_testkit.simulation.mutants.rules_of_halves import RULES_OF_HALVES
from tidegate_testkit.simulation.mutants.rules_of_hand_overs import RULES_OF_HAND_OVERS
from tidegate_testkit.simulation.mutants.rules_of_late_copies import RULES_OF_LATE_COPIES
from tidegate_testkit.simulation.mutants.rules_of_long_waits import RULES_OF_LONG_WAITS
from tidegate_testkit.simulation.mutants.rules_of_memory import RULES_OF_MEMORY
from tidegate_testkit.simulation.mutants.rules_of_messages import RULES_OF_MESSAGES
from tidegate_testkit.simulation.mutants.rules_of_one_transaction import RULES_OF_ONE_TRANSACTION
from tidegate_testkit.simulation.mutants.rules_of_outages import RULES_OF_OUTAGES
from tidegate_testkit.simulation.mutants.rules_of_promises import RULES_OF_PROMISES
from tidegate_testkit.simulation.mutants.rules_of_recurring import RULES_OF_RECURRING
from tidegate_testkit.simulation.mutants.rules_of_runs import RULES_OF_RUNS
from tidegate_testkit.simulation.mutants.rules_of_slow_stores import RULES_OF_SLOW_STORES
from tidegate_testkit.simulation.mutants.rules_of_sources import RULES_OF_SOURCES
from tidegate_testkit.simulation.mutants.rules_of_stops import RULES_OF_STOPS
from tidegate_testkit.simulation.mutants.runs import RUNS
from tidegate_testkit.simulation.mutants.searches import SEARCHES
from tidegate_testkit.simulation.mutants.sketch import SKETCH
from tidegate_testkit.simulation.mutants.submissions import SUBMISSIONS
from tidegate_testkit.simulation.mutants.suspends import SUSPENDS
from tidegate_testkit.simulation.mutants.ticks import TICKS

LISTS = (
    CLAUSES_OF_OWNERSHIP,
    CLAUSES_OF_POSITIONS,
    CLAUSES_OF_RUNS,
    CLAUSES_OF_THE_GATE,
    CLAUSES_OF_LIMITS,
    CLAUSES_OF_RATES,
    CLAUSES_OF_CONTROLS,
    CLAUSES_OF_OUTAGES,
    CLAUSES_OF_MIGRATION,
    SKETCH,
    RULES_OF_RUNS,
    LATE_ADMISSIONS,
    RULES_OF_MESSAGES,
    RULES_OF_CANCELS,
    RULES_OF_DEADLINES,
    HAND_OVERS,
    LATE_ROWS,
    RULES_OF_SLOW_STORES,
    RULES_OF_SOURCES,
    RULES_OF_STOPS,
    RULES_OF_EVENTS_TOPIC,
    RULES_OF_FATES,
    RULES_OF_GAPS,
    RULES_OF_GROWTH,
    RULES_OF_GONE_RECORDS,
    RULES_OF_HALVES,
    RULES_OF_HAND_OVERS,
    RULES_OF_LATE_COPIES,
    RULES_OF_LONG_WAITS,
    RULES_OF_MEMORY,
    RULES_OF_ONE_TRANSACTION,
    RULES_OF_OUTAGES,
    RULES_OF_PROMISES,
    RULES_OF_RECURRING,
    CONDITIONS,
    RUNS,
    SUSPENDS,
    RETRIES,
    SUBMISSIONS,
    REMINDERS,
    LIMITS,
    ASIDE,
    RATE_BUGS,
    CONTROLS,
    OUTAGES,
    TICKS,
    SEARCHES,
    RECURRING,
    MESSAGES,
)
MUTANTS: Mapping[str, Mutant] = {mutant.name: mutant for mutants in LISTS for mutant in mutants}
