"""The bound on records that are out, and what starts and stops a flow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate_kafka.consumer.flow_control import IN_FLIGHT_BYTES_MAX, Flow


def flows(flow: Flow) -> bool:
    """A call, so that the type checker does not take the last answer for granted."""
    return flow.should_flow


def test_given_no_position_then_nothing_flows() -> None:
    assert not flows(Flow(4))


def test_given_position_then_it_flows_until_stopped() -> None:
    flow = Flow(4)
    flow.start(1, 10)
    assert flows(flow)
    flow.stop()
    assert not flows(flow)


def test_given_bound_reached_then_it_flows_again_at_half_of_it() -> None:
    flow = Flow(4)
    flow.start(1, 0)
    flow.handed_over([1] * 4, 4)
    assert not flows(flow)
    flow.taken(1, 1)
    assert not flows(flow)
    flow.taken(1, 1)
    assert flows(flow)
    assert flow.next == 4


def test_given_credit_of_an_older_position_then_it_does_not_count() -> None:
    flow = Flow(4)
    flow.start(1, 0)
    flow.handed_over([1] * 4, 4)
    flow.start(2, 0)
    assert flows(flow)
    flow.handed_over([1] * 4, 4)
    flow.taken(1, 4)
    assert not flows(flow)


def test_given_large_records_then_their_bytes_are_the_bound() -> None:
    """A store that is away for an hour must not cost a backlog's size in memory."""
    flow, record = Flow(2_000), IN_FLIGHT_BYTES_MAX // 4
    flow.start(1, 0)
    flow.handed_over([record] * 3, 3)
    assert flows(flow)
    flow.handed_over([record, record], 5)
    assert not flows(flow)
    flow.taken(1, 2)
    assert not flows(flow)
    flow.taken(1, 1)
    assert flows(flow)


def test_given_a_new_position_then_the_bytes_of_the_old_one_do_not_count() -> None:
    flow = Flow(4)
    flow.start(1, 0)
    flow.handed_over([IN_FLIGHT_BYTES_MAX], 1)
    flow.start(2, 0)
    assert flows(flow)
    flow.handed_over([1], 1)
    assert flows(flow)


@given(bound=st.integers(1, 20), sizes=st.lists(st.integers(1, 10), max_size=50))
def test_given_everything_is_taken_in_the_end_then_it_always_flows_again(bound: int, sizes: list[int]) -> None:
    flow = Flow(bound)
    flow.start(1, 0)
    out = 0
    for size in sizes:
        if flows(flow):
            assert out < bound
            flow.handed_over([1] * size, flow.next + size)
            out += size
        else:
            flow.taken(1, 1)
            out -= 1
    flow.taken(1, out)
    assert flows(flow)
