"""Who takes which test: stack tests by file at the usual priority, computing tests one by one at a low one."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from tests.support.suite.scheduler import SuiteScheduling, is_stack_folder, takes

KILLS = "tests/cluster/test_kills.py"
OUTAGES = "tests/cluster/test_outages.py"
NODE = [f"tests/integration/node/test_node.py::test_{name}" for name in "abc"]
UNIT = [f"tests/unit/test_cron.py::test_{name}" for name in "abcdef"]


@dataclass(eq=False)
class Worker:
    """What xdist knows of a worker, without the process."""

    name: str
    tests: list[str] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    shutting_down: bool = False

    @property
    def gateway(self) -> SimpleNamespace:
        return SimpleNamespace(id=self.name)

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class Suite:
    """A run of these tests by so many workers."""

    def __init__(self, tests: list[str], workers: int, alone: tuple[str, ...] = ()) -> None:
        self.tests = tests
        self.workers = [Worker(f"gw{number}") for number in range(workers)]
        config = SimpleNamespace(getvalue=lambda name: [f"{workers}*popen"] if name == "tx" else None)
        self.scheduling = SuiteScheduling(config, alone)  # type: ignore[arg-type]  # it asks for no more
        for worker in self.workers:
            self.scheduling.add_node(worker)
        for worker in self.workers:
            kinds = takes(worker.name, workers)
            worker.tests = [test for test in tests if is_stack_folder(test.split("/")[1]) in kinds]
            self.scheduling.add_node_collection(worker, worker.tests)
            if self.scheduling.collection_is_completed:
                self.scheduling.schedule()

    def given_to(self, number: int) -> list[str]:
        return [self.workers[number].tests[index] for index in self.workers[number].sent]

    def run(self, without: Worker | None = None) -> None:
        """Each worker in turn ends the next test that it has."""
        left = {worker: 0 for worker in self.workers if worker is not without}
        while any(done < len(worker.sent) for worker, done in left.items()):
            for worker, done in left.items():
                if done < len(worker.sent):
                    self.scheduling.mark_test_complete(worker, worker.sent[done])
                    left[worker] += 1


@pytest.mark.parametrize(
    ("workers", "computing"),
    [(1, []), (2, ["gw1"]), (3, ["gw2"]), (5, ["gw3", "gw4"]), (8, ["gw6", "gw7"])],
)
def test_given_workers_then_the_last_ones_compute(workers: int, computing: list[str]) -> None:
    names = [f"gw{number}" for number in range(workers)]
    assert [name for name in names if takes(name, workers) == {False}] == computing


def test_given_both_kinds_then_each_worker_begins_with_its_own() -> None:
    suite = Suite([*UNIT, *NODE], workers=2)
    assert suite.given_to(0) == NODE
    assert suite.given_to(1)[0] == UNIT[0]


def test_given_a_stack_file_then_one_worker_gets_all_of_it() -> None:
    suite = Suite([*NODE, f"{OUTAGES}::test_x", *UNIT], workers=5)
    suite.run()
    assert sum(set(NODE) <= set(suite.given_to(number)) for number in range(5)) == 1


def test_given_files_that_need_a_core_then_one_worker_takes_them_in_turn() -> None:
    tests = [f"{KILLS}::test_kill", f"{OUTAGES}::test_broker", *NODE, *UNIT]
    suite = Suite(tests, workers=5, alone=("cluster/test_kills.py", "cluster/test_outages.py"))
    assert suite.given_to(0)[:2] == tests[:2]


def test_given_no_computing_test_is_left_then_its_workers_end_without_a_stack_test() -> None:
    suite = Suite([*NODE, f"{OUTAGES}::test_x", f"{KILLS}::test_y", UNIT[0]], workers=2)
    suite.run()
    assert suite.given_to(1) == UNIT[:1]
    assert suite.workers[1].shutting_down


def test_given_one_worker_then_it_takes_both_kinds() -> None:
    suite = Suite([*UNIT, *NODE], workers=1)
    suite.run()
    assert suite.given_to(0) == [*UNIT, *NODE]


def test_given_a_worker_that_dies_then_another_one_takes_what_it_had_not_begun() -> None:
    suite = Suite(UNIT, workers=4)
    first, second = suite.workers[2:]
    begun, waiting = suite.given_to(2)
    first.shutting_down = True
    assert suite.scheduling.remove_node(first) == begun
    suite.run(without=first)
    assert waiting in suite.given_to(3)
    assert not second.sent.count(suite.workers[3].tests.index(begun))


def test_given_all_workers_run_then_each_test_runs_once() -> None:
    tests = [
        *UNIT,
        *NODE,
        f"{KILLS}::test_y",
        "tests/unit/test_at.py::test_z[a@b]",
        "tests/unit/test_w.py::test_a@wheel",
    ]
    suite = Suite(tests, workers=5)
    suite.run()
    given = [test for number in range(5) for test in suite.given_to(number)]
    assert sorted(given) == sorted(tests)
    assert suite.scheduling.tests_finished


def test_given_tests_of_one_group_then_one_worker_gets_them() -> None:
    grouped = [f"tests/unit/test_wheel.py::test_{name}@wheel" for name in "abcd"]
    suite = Suite([*grouped, *UNIT], workers=2)
    suite.run()
    assert any(set(grouped) <= set(suite.given_to(number)) for number in range(2))
