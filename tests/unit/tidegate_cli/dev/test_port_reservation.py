"""Two stacks that start at the same moment: both found 8080 free, and the second one's API could not listen half a minute later."""

from __future__ import annotations

import sys

import pytest

from tidegate_bricks.free_ports import free_port
from tidegate_cli.dev.port_reservation import PortReservations


@pytest.mark.skipif(sys.platform != "linux", reason="sockets without a file are Linux's")
def test_given_two_stacks_then_a_port_is_one_s_from_its_choice_on_until_that_ends() -> None:
    one, other = PortReservations(), PortReservations()
    port = free_port()
    try:
        assert one.choose(port) == port
        assert other.choose(port) != port
        one.release()
        assert other.choose(port) == port
    finally:
        one.release()
        other.release()


def test_given_one_stack_then_its_processes_have_ports_of_their_own() -> None:
    ports = PortReservations()
    port = free_port()
    try:
        chosen = [ports.choose(port) for _ in range(3)]
    finally:
        ports.release()
    assert chosen[0] == port
    assert len(set(chosen)) == 3
