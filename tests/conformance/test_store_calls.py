"""The comparison of both clients' costs runs to its end. No time is asserted."""

from tests.benchmarks.rig.store_call_cost import ASKED, costs, table
from tidegate_dynamo.client_factory import DynamoClient
from tidegate_dynamo.settings import DynamoSettings


def test_given_a_store_then_each_kind_of_call_has_its_cost_by_both_clients(
    dynamo_client: DynamoClient, dynamo_settings: DynamoSettings
) -> None:
    assert dynamo_client.items is not None, "its tables are made with it"
    measured = list(costs(dynamo_settings, 2, dict.fromkeys(ASKED, 2)))
    assert [cost.call for cost in measured] == list(ASKED)
    assert all(min(cost[1:]) > 0 for cost in measured)
    assert len(table(measured)) == 2 + len(ASKED)
