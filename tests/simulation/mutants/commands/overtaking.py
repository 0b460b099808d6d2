"""Bugs in what hands a stop to its shard while an open transaction keeps nodes from reading it (decision 38)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, returning
from tests.simulation.users import requests
from tidegate_core.commands import apply_request

BOUND = "simulation/test_open_transactions.py::test_given_an_open_transaction_and_no_other_fault_then_each_stop_is_answered_within_its_bound"
TESTS = "unit/tidegate_core/commands/test_overtaking.py"


def under_another_id(inbox_row: Any) -> Any:
    def row(*arguments: Any) -> Any:
        right = inbox_row(*arguments)
        document = json.loads(right.body)
        return replace(right, body=json.dumps(document | {"id": f"{document['id']}-again"}))

    return row


OVERTAKING_BUGS = (
    Mutant(
        "a stop never overtakes",
        "a stop waits until somebody ends the transaction, for up to 15 minutes",
        breaks="I7",
        patches=(Patch(requests, "may_overtake", returning(False)),),
        killed_by=f"{BOUND}[2]",
    ),
    Mutant(
        "handed over under another id",
        "the answer is another request's, and the record behind the transaction is applied a second time",
        breaks="I7",
        patches=(Patch(requests, "inbox_row", under_another_id),),
        killed_by=Seeds(within=12, trap="open_transactions"),
    ),
    Mutant(
        "a row that nobody asks for its namespace",
        "a stop that the ingest would refuse is carried out because the API wrote its row",
        breaks="I7",
        patches=(Patch(apply_request, "authorize_request", returning(None)),),
        killed_by=f"{TESTS}::test_given_a_row_of_a_namespace_that_the_topic_is_not_for_then_its_owner_refuses_it",
    ),
)
