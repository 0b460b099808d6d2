"""The rights that `docs/security.md` lists are those of the calls that there are, and no more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidegate_core.writes.partition_map import ClusterMap, follow_map, put_first_map
from tidegate_dynamo.item_client import OPERATIONS
from tidegate_ports.bus import Topic

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
ROW = re.compile(r"^\| (`(?:init|node|api)`|`tidegate [a-z ]+`) \| ((?:`[A-Za-z]+`(?:, )?)+) \|$", re.MULTILINE)
RIGHTS = {
    process.strip("`"): set(re.findall(r"[A-Za-z]+", rights)) for process, rights in ROW.findall(PAGE.read_text())
}
OF_CALLS = set(OPERATIONS.values()) - {"TransactWriteItems"}
"""A transaction is allowed by the rights of its parts."""
OF_TABLES = {"CreateTable", "DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive"}


@pytest.mark.parametrize("process", ["init", "node", "api", "tidegate audit", "tidegate partitions grow"])
def test_given_a_process_then_its_rights_are_of_calls_that_there_are(process: str) -> None:
    assert RIGHTS[process] <= OF_CALLS | OF_TABLES | {"ConditionCheckItem"}


def test_given_an_api_whose_transactions_have_one_part_then_it_may_check_nothing_beside_what_it_writes() -> None:
    """That they have one is seen by all of the API's tests."""
    assert RIGHTS["api"] == OF_CALLS


def test_given_who_writes_the_map_then_each_may_do_the_parts_of_its_transaction_and_read_items() -> None:
    """Found in review: both were said to need a check, which neither's has."""
    first = ClusterMap.first(8, Topic("tidegate.requests", "0f", 4), "c1")
    of_init, of_growth = put_first_map(first, "token"), follow_map(first.grown_to(8), "token")
    assert RIGHTS["init"] - OF_TABLES == {"BatchGetItem", *(f"{type(each).__name__}Item" for each in of_init.actions)}
    assert RIGHTS["tidegate partitions grow"] == {
        "BatchGetItem",
        *(f"{type(each).__name__}Item" for each in of_growth.actions),
    }
