"""Planted bugs that tests must find: what a check cannot find, it does not prove.

A new bug is an entry in one of the lists, with the invariant that it breaks and the test that fails with it. `--mutant NAME` plants
one in worlds of `python -m tests.simulation`; `make mutants` hunts them all. Each clause of each builder of conditions has a bug
(`clauses/clause_table.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.mutants.admission.late_admissions import LATE_ADMISSIONS
from tests.simulation.mutants.admission.limit_queue_yield import ASIDE
from tests.simulation.mutants.admission.limits import LIMITS
from tests.simulation.mutants.admission.long_waits import RULES_OF_LONG_WAITS
from tests.simulation.mutants.admission.rates import RATE_BUGS
from tests.simulation.mutants.clauses.clause_table import CLAUSES
from tests.simulation.mutants.clauses.row_migration import MIGRATION
from tests.simulation.mutants.clauses.weakened_conditions import CONDITIONS
from tests.simulation.mutants.commands.scope_suspension import CONTROLS
from tests.simulation.mutants.commands.stops import RULES_OF_STOPS
from tests.simulation.mutants.commands.suspends import SUSPENDS
from tests.simulation.mutants.commands.timed_suspensions import RULES_OF_PROMISES
from tests.simulation.mutants.evidence.deadlines import RULES_OF_DEADLINES
from tests.simulation.mutants.evidence.reminders import REMINDERS
from tests.simulation.mutants.evidence.ticks import TICKS
from tests.simulation.mutants.firing.bounded_search import SEARCHES
from tests.simulation.mutants.ingest.events_topic import RULES_OF_EVENTS_TOPIC
from tests.simulation.mutants.ingest.lost_records import RULES_OF_GONE_RECORDS
from tests.simulation.mutants.ingest.partition_growth import RULES_OF_GROWTH
from tests.simulation.mutants.ingest.sources import RULES_OF_SOURCES
from tests.simulation.mutants.messages.cancels import RULES_OF_CANCELS
from tests.simulation.mutants.messages.late_copies import RULES_OF_LATE_COPIES
from tests.simulation.mutants.messages.late_rows import LATE_ROWS
from tests.simulation.mutants.messages.message_life import RULES_OF_MESSAGES
from tests.simulation.mutants.messages.messages import MESSAGES
from tests.simulation.mutants.messages.outage_gaps import RULES_OF_GAPS
from tests.simulation.mutants.messages.partial_writes import RULES_OF_HALVES
from tests.simulation.mutants.messages.recurring_messages import RECURRING
from tests.simulation.mutants.messages.recurring_rules import RULES_OF_RECURRING
from tests.simulation.mutants.messages.slow_store import RULES_OF_SLOW_STORES
from tests.simulation.mutants.messages.withdrawals import RULES_OF_FATES
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.mutants.ownership.hand_over_rules import RULES_OF_HAND_OVERS
from tests.simulation.mutants.ownership.hand_overs import HAND_OVERS
from tests.simulation.mutants.ownership.outages import OUTAGES
from tests.simulation.mutants.runs.retries import RETRIES
from tests.simulation.mutants.runs.run_life import RULES_OF_RUNS
from tests.simulation.mutants.runs.runs import RUNS
from tests.simulation.mutants.runs.submissions import SUBMISSIONS
from tests.simulation.mutants.shard.group_commit import RULES_OF_ONE_TRANSACTION
from tests.simulation.mutants.shard.outages import RULES_OF_OUTAGES
from tests.simulation.mutants.shard.shard_cache import RULES_OF_MEMORY
from tests.simulation.mutants.sketch.protocol_sketch import SKETCH

LISTS = (
    CLAUSES,
    MIGRATION,
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
