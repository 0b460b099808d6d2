"""Clauses of the start gate and of the reports: one driver of the current attempt, until the end."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.mutants.clauses.clause_finder import always
from tests.simulation.mutants.clauses.clause_mutant import dropped, withheld
from tests.simulation.stories.stage import starts, takes
from tests.support.builders import NOW, a_run
from tidegate_core.records.codec import to_item
from tidegate_core.store.values import Put, Transaction
from tidegate_core.transactions.gate import finish_run, report_outputs
from tidegate_memory.store import MemoryStore

RUN = a_run().id


def a_store_with_a_run(**fields: object) -> MemoryStore:
    """Submitted, unless told otherwise."""
    store = MemoryStore(remembers_tokens=False)
    run = a_run(**{"state": "submitted", **fields})  # type: ignore[arg-type]  # fields by name
    store.write([Put(run.key(0), {**to_item(run, run.key(0)), "rev": 1})])
    return store


def ends(outcome: str, *, attempt: int = 1, driver: str = "driver-1") -> Transaction:
    """The wrapper's report."""
    return finish_run(RUN, attempt, driver, outcome, 0, None, None, None, NOW, f"end {attempt} {driver} {outcome}")


# -- start ----------------------------------------------------------------------------------------------------------------


def a_program_comes_to_the_gate() -> Iterable[str]:
    if not takes(a_store_with_a_run(), starts(RUN)):
        yield "I1: no program ever runs"


def a_second_artefact_comes_to_the_gate() -> Iterable[str]:
    store = a_store_with_a_run()
    assert takes(store, starts(RUN, driver="driver-1"))
    if takes(store, starts(RUN, driver="driver-2")):
        yield "I2: two artefacts of one attempt both run"


def an_earlier_attempt_comes_to_the_gate() -> Iterable[str]:
    """It was given up, and started after all."""
    if takes(a_store_with_a_run(attempt=2), starts(RUN, attempt=1)):
        yield "I2: an attempt runs that was given up"


def the_winner_asks_again() -> Iterable[str]:
    """The answer was lost."""
    store = a_store_with_a_run()
    assert takes(store, starts(RUN))
    if not takes(store, starts(RUN)):
        yield "I1: the program that won the gate is told to end"


def the_winner_asks_again_after_its_end() -> Iterable[str]:
    """The first request was given up, and arrives when the program has ended."""
    store = a_store_with_a_run()
    assert takes(store, starts(RUN))
    assert takes(store, ends("succeeded"))
    if takes(store, starts(RUN)):
        yield "I2: a run whose end is recorded starts again"


# -- reports --------------------------------------------------------------------------------------------------------------


def a_loser_reports() -> Iterable[str]:
    store = a_store_with_a_run()
    assert takes(store, starts(RUN, driver="driver-1"))
    if takes(store, ends("failed", driver="driver-2")):
        yield "I2: the end of an artefact that never ran counts as the run's"


def an_earlier_attempt_reports() -> Iterable[str]:
    store = a_store_with_a_run(attempt=2)
    assert takes(store, starts(RUN, attempt=2))
    if takes(store, ends("failed", attempt=1)):
        yield "I2: the end of an attempt that was given up counts as the run's"


def a_second_end_is_reported() -> Iterable[str]:
    store = a_store_with_a_run()
    assert takes(store, starts(RUN))
    assert takes(store, ends("succeeded"))
    if takes(store, ends("failed")):
        yield "I2: a run that has succeeded has failed"


def an_earlier_report_of_outputs_arrives_late() -> Iterable[str]:
    """It hung in a process that stood still; its repeat, and a later report, were acknowledged meanwhile."""
    store = a_store_with_a_run()
    assert takes(store, starts(RUN))
    assert takes(store, outputs(1))
    assert takes(store, outputs(2))
    if takes(store, outputs(1)):
        yield "I2: a run's outputs are older ones again than its program was told of as taken"


def outputs_are_reported() -> Iterable[str]:
    store = a_store_with_a_run()
    assert takes(store, starts(RUN))
    if not takes(store, outputs(1)):
        yield "liveness: a program is told that its outputs were taken, and none ever are"


def outputs_are_reported_again() -> Iterable[str]:
    store = a_store_with_a_run()
    assert takes(store, starts(RUN))
    assert takes(store, outputs(1))
    if not takes(store, outputs(2)):
        yield "liveness: a program is told that its outputs were taken, and the first ones stay"


def outputs(seq: int) -> Transaction:
    """A program's report of them, under its number."""
    return report_outputs(RUN, 1, "driver-1", f'{{"rows":{seq}}}', seq, f"outputs {seq}")


NOT_OVERTAKEN = "(attribute_not_exists(#outputs_seq) OR #outputs_seq < :seq)"
BEFORE_THE_GATE = "(#state IN (:submitting, :submitted) AND attribute_not_exists(#driver))"
STATE = "#state IN (:submitting, :submitted)"
NO_DRIVER = "attribute_not_exists(#driver)"

CLAUSES_OF_THE_GATE = (
    dropped(
        "may_start",
        "#attempt = :attempt",
        "an attempt that was given up runs beside the one that replaced it",
        breaks="I2",
        scenario=an_earlier_attempt_comes_to_the_gate,
    ),
    dropped(
        "may_start",
        "attribute_not_exists(#ended_at)",
        "a start that arrives late opens a run again that has ended",
        breaks="I2",
        scenario=the_winner_asks_again_after_its_end,
    ),
    dropped(
        "may_start",
        f"({BEFORE_THE_GATE} OR #driver = :driver)",
        "two artefacts of one attempt both run",
        breaks="I2",
        scenario=a_second_artefact_comes_to_the_gate,
    ),
    withheld("may_start", BEFORE_THE_GATE, "no program passes", breaks="I1", scenario=a_program_comes_to_the_gate),
    withheld(
        "may_start",
        "#driver = :driver",
        "a program whose answer from the gate was lost never runs, and nobody else may",
        breaks="I1",
        scenario=the_winner_asks_again,
    ),
    # The state says the same as the driver: each keeps a second artefact out where the other is off.
    dropped(
        "may_start",
        STATE,
        "two artefacts of one attempt both run",
        breaks="I2",
        scenario=a_second_artefact_comes_to_the_gate,
        beside=(always("may_start", NO_DRIVER),),
    ),
    dropped(
        "may_start",
        NO_DRIVER,
        "two artefacts of one attempt both run",
        breaks="I2",
        scenario=a_second_artefact_comes_to_the_gate,
        beside=(always("may_start", STATE),),
    ),
    # Drivers are never the same in two attempts: the attempt is what is left where that is not looked at.
    dropped(
        "runs_under",
        "#attempt = :attempt",
        "the report of an attempt that was given up ends the one that runs",
        breaks="I2",
        scenario=an_earlier_attempt_reports,
        beside=(always("runs_under", "#driver = :driver"),),
    ),
    dropped(
        "runs_under",
        "#driver = :driver",
        "the report of a driver that lost at the gate ends the run of the one that won",
        breaks="I2",
        scenario=a_loser_reports,
    ),
    dropped(
        "runs_under",
        "attribute_not_exists(#ended_at)",
        "a report that arrives late changes an outcome that others have acted on",
        breaks="I2",
        scenario=a_second_end_is_reported,
    ),
    dropped(
        "runs_under",
        NOT_OVERTAKEN,
        "a repeat that arrives late puts older outputs over those that were acknowledged since",
        breaks="I2",
        scenario=an_earlier_report_of_outputs_arrives_late,
    ),
    withheld(
        "runs_under",
        "attribute_not_exists(#outputs_seq)",
        "no outputs are taken",
        breaks="liveness",
        scenario=outputs_are_reported,
    ),
    withheld(
        "runs_under",
        "#outputs_seq < :seq",
        "a run keeps the first outputs that it has reported",
        breaks="liveness",
        scenario=outputs_are_reported_again,
    ),
)
