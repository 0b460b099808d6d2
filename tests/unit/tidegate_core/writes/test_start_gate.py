"""The start gate and the program's reports, as the store evaluates their conditions (I2, I7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW, a_run
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import Applied, Put, RawOutcome
from tidegate_core.writes.start_gate import finish_run, report_outputs, start_run, was_finished_by, was_overtaken
from tidegate_memory.store import MemoryStore

ID = a_run().id


class Gate:
    """One run item and what API processes send."""

    def __init__(self, run: Run | None = None) -> None:
        self.store = MemoryStore(remembers_tokens=False)
        self._sent = 0
        if run is not None:
            self.store.write([Put(run.key(0), {**to_item(run, run.key(0)), "rev": 3})])

    @property
    def run(self) -> Run:
        item = self.store.peek(a_run().key(0))
        assert item is not None
        return from_item(Run, item)

    def start(self, driver: str = "d-1", attempt: int = 1, now: int = NOW) -> bool:
        return self._passed(self.store.transact(start_run(ID, attempt, driver, now, self._token())))

    def finish(self, driver: str = "d-1", attempt: int = 1, outcome: str = "succeeded") -> bool:
        told = (outcome, 0, None, None, '{"rows":3}', NOW + 9, self._token())
        return self._passed(self.store.transact(finish_run(ID, attempt, driver, *told)))

    def outputs(self, driver: str = "d-1", attempt: int = 1, rows: int = 1, seq: int | None = None) -> bool:
        told = (f'{{"rows":{rows}}}', seq, self._token())
        return self._passed(self.store.transact(report_outputs(ID, attempt, driver, *told)))

    def _token(self) -> str:
        self._sent += 1
        return f"api/{self._sent}"

    def _passed(self, outcome: RawOutcome) -> bool:
        return isinstance(outcome, Applied)


@pytest.mark.parametrize("state", ["submitting", "submitted"])
def test_given_a_run_before_the_gate_then_the_first_driver_passes(state: str) -> None:
    gate = Gate(a_run(state=state))
    assert gate.start()
    assert (gate.run.state, gate.run.driver) == ("running", "d-1")
    assert (gate.run.started_at, gate.run.passed_at) == (NOW, NOW)
    assert gate.store.peek(gate.run.key(0)) is not None


def test_given_a_repeat_by_the_same_driver_then_it_passes_and_the_start_stays_the_first() -> None:
    gate = Gate(a_run())
    assert gate.start(now=NOW)
    assert gate.start(now=NOW + 5)
    assert gate.run.started_at == NOW


def test_given_another_driver_then_it_does_not_pass() -> None:
    gate = Gate(a_run())
    gate.start("d-1")
    assert not gate.start("d-2")
    assert gate.run.driver == "d-1"


@pytest.mark.parametrize("attempt", [1, 3])
def test_given_another_attempt_than_the_current_one_then_it_does_not_pass(attempt: int) -> None:
    assert not Gate(a_run(attempt=2)).start(attempt=attempt)


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(None, id="no such run: closed and moved to history"),
        pytest.param(a_run(state="closed", driver=None, ended_at=NOW), id="closed"),
        pytest.param(a_run(state="submitted", ended_at=NOW), id="ended before the gate"),
        pytest.param(a_run(state="lost", driver="d-0"), id="lost with another driver"),
    ],
)
def test_given_a_run_that_is_over_or_somebody_elses_then_nobody_starts_it(run: Run | None) -> None:
    assert not Gate(run).start()


def test_given_an_end_then_the_same_driver_does_not_pass_again() -> None:
    gate = Gate(a_run())
    gate.start()
    gate.finish()
    assert not gate.start()


def test_given_a_report_then_the_owners_older_look_at_the_run_is_refused() -> None:
    """The revision moves with every report: what the owner decided from an older look must not overwrite it."""
    gate = Gate(a_run())
    revisions = []
    for report in (gate.start, gate.outputs, gate.finish):
        assert report()
        item = gate.store.peek(gate.run.key(0))
        assert item is not None
        revisions.append(item["rev"])
    assert revisions == [4, 5, 6]


def test_given_a_report_of_the_end_then_all_that_it_says_is_kept_and_the_state_is_the_owners() -> None:
    gate = Gate(a_run())
    gate.start()
    assert gate.finish(outcome="failed")
    run = gate.run
    assert (run.outcome, run.exit_code, run.outputs, run.ended_at, run.state) == (
        "failed",
        0,
        '{"rows":3}',
        NOW + 9,
        "running",
    )


@pytest.mark.parametrize(
    ("driver", "attempt"), [pytest.param("d-2", 1, id="another driver"), pytest.param("d-1", 2, id="another attempt")]
)
def test_given_reports_by_somebody_else_then_they_are_refused(driver: str, attempt: int) -> None:
    gate = Gate(a_run())
    gate.start()
    assert not gate.outputs(driver, attempt)
    assert not gate.finish(driver, attempt)


def test_given_a_report_before_the_start_or_after_the_end_then_it_is_refused() -> None:
    gate = Gate(a_run())
    assert not gate.finish()
    gate.start()
    gate.finish()
    assert not gate.finish(outcome="failed")
    assert not gate.outputs()
    assert gate.run.outcome == "succeeded"


def test_given_a_refused_end_then_its_repeat_is_told_from_a_strangers() -> None:
    gate = Gate(a_run())
    gate.start()
    assert not was_finished_by(gate.store.peek(gate.run.key(0)), 1, "d-1", "succeeded")
    gate.finish()
    item = gate.store.peek(gate.run.key(0))
    assert was_finished_by(item, 1, "d-1", "succeeded")
    assert not was_finished_by(item, 1, "d-2", "succeeded")
    assert not was_finished_by(item, 2, "d-1", "succeeded")
    assert not was_finished_by(None, 1, "d-1", "succeeded")


def test_given_a_run_that_its_owner_settled_otherwise_then_the_report_was_not_recorded() -> None:
    gate = Gate(a_run(state="running", driver="d-1", ended_at=NOW, outcome="lost"))
    assert not gate.finish()
    item = gate.store.peek(gate.run.key(0))
    assert not was_finished_by(item, 1, "d-1", "succeeded")
    assert was_finished_by(item, 1, "d-1", "lost")


@given(arrivals=st.lists(st.integers(1, 5), max_size=12))
def test_given_reports_of_outputs_in_any_order_and_again_then_the_latest_of_them_stays(arrivals: list[int]) -> None:
    """A request that hangs in the network, or in a process that stands still, comes when later ones were acknowledged."""
    gate = Gate(a_run())
    gate.start()
    for place, number in enumerate(arrivals):
        assert gate.outputs(rows=number, seq=number) == (number > max(arrivals[:place], default=0))
        assert gate.run.outputs == f'{{"rows":{max(arrivals[: place + 1])}}}'


def test_given_reports_without_numbers_then_the_one_that_comes_last_stays() -> None:
    """Wrappers of before send none."""
    gate = Gate(a_run())
    gate.start()
    assert [gate.outputs(rows=rows) for rows in (2, 1)] == [True, True]
    assert (gate.run.outputs, gate.run.outputs_seq) == ('{"rows":1}', None)


def test_given_refused_outputs_then_those_that_were_overtaken_are_told_from_others() -> None:
    gate = Gate(a_run())
    gate.start()
    gate.outputs(seq=2)
    item = gate.store.peek(gate.run.key(0))
    assert [was_overtaken(item, 1, "d-1", seq) for seq in (1, 2, 3, None)] == [True, True, False, False]
    assert not was_overtaken(item, 1, "d-2", 1)
    assert not was_overtaken(item, 2, "d-1", 1)
    assert not was_overtaken(None, 1, "d-1", 1)
    gate.finish()
    assert not was_overtaken(gate.store.peek(gate.run.key(0)), 1, "d-1", 1)


STEP = st.tuples(
    st.sampled_from(["start", "finish", "outputs"]), st.sampled_from(["d-1", "d-2", "d-3"]), st.integers(1, 2)
)


@given(steps=st.lists(STEP, max_size=15))
def test_given_any_calls_then_at_most_one_driver_ever_passes_and_the_end_is_set_once(
    steps: list[tuple[str, str, int]],
) -> None:
    gate = Gate(a_run())
    passed: set[tuple[str, int]] = set()
    ends = 0
    for call, driver, attempt in steps:
        done = getattr(gate, call)(driver, attempt)
        if call == "start" and done:
            passed.add((driver, attempt))
        ends += call == "finish" and done
    assert len(passed) <= 1
    assert all(attempt == 1 for _, attempt in passed)
    assert ends <= 1
