from __future__ import annotations

from tests.chaos.rig.node_counters import Meter
from tests.support.cluster.process import ClusterProcess, metric_on

PAGE = """# HELP tidegate_transactions_total Settled transactions
tidegate_transactions_total{name="fire",verdict="committed"} 7.0
tidegate_transactions_total{name="fire",verdict="refused"} 2.0
tidegate_transactions_total{name="admit",verdict="refused"} 1.0
tidegate_rebalances_total 4.0
tidegate_rebalances_total_of_others 9.0
"""


CALLS = """tidegate_store_call_failures_total{operation="put_item",code="ConditionalCheckFailedException"} 5.0
tidegate_store_call_failures_total{operation="transact_write_items",code="TransactionCanceledException"} 7.0
tidegate_store_call_failures_total{operation="put_item",code="ReadTimeoutError"} 3.0
"""


class APage(ClusterProcess):
    """A process that says what it is told to."""

    def __init__(self, name: str, rebalances: int) -> None:
        self.name = name
        self.lives = 1
        self.rebalances = rebalances
        self.status = 200

    @property
    def running(self) -> bool:
        return True

    def ask(self, path: str) -> tuple[int, str]:
        return self.status, f"tidegate_rebalances_total {self.rebalances}.0\n{CALLS}"


def test_given_a_page_then_samples_with_the_labels_are_added_and_no_other_name() -> None:
    assert metric_on(PAGE, "tidegate_transactions_total", verdict="refused") == 3
    assert metric_on(PAGE, "tidegate_rebalances_total") == 4
    assert metric_on(PAGE, "tidegate_fenced_total") == 0


def test_given_a_process_that_begins_anew_then_both_lives_count() -> None:
    meter, node = Meter(), APage("node-1", 4)
    meter.look([node])
    node.lives, node.rebalances = 2, 1
    meter.look([node, APage("node-2", 10)])
    assert meter.total()["rebalances"] == 15
    assert meter.total("node-1")["rebalances"] == 5


def test_given_a_process_that_does_not_answer_then_what_it_said_last_counts() -> None:
    meter, node = Meter(), APage("node-1", 4)
    meter.look([node])
    node.status = 0
    meter.look([node])
    assert meter.total()["rebalances"] == 4


def test_given_a_process_that_runs_and_does_not_answer_then_the_look_says_that_it_is_not_whole() -> None:
    meter, node, other = Meter(), APage("node-1", 4), APage("node-2", 4)
    assert meter.look([node, other]) is True
    node.status = 0
    assert meter.look([node, other]) is False


def test_given_refusals_because_of_a_condition_then_they_are_no_failed_calls() -> None:
    meter = Meter()
    meter.look([APage("node-1", 4)])
    assert meter.total()["failed_calls"] == 3
