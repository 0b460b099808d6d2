"""Ports are free, out of the kernel's way, and the usual ones where possible."""

import os
import sys

import pytest

from tidegate_bricks import free_ports
from tidegate_bricks.free_ports import ALL_INTERFACES, PORT_FIRST, PORT_LAST, free_port, is_free, listens


def test_given_listener_then_port_is_not_free(taken_port: int) -> None:
    assert not is_free(taken_port)
    assert not is_free(taken_port, ALL_INTERFACES)


def test_given_preferred_port_is_free_then_it_is_chosen() -> None:
    port = free_port()
    assert free_port(preferred=port) == port


def test_given_preferred_port_is_taken_then_another_is_chosen(taken_port: int) -> None:
    port = free_port(preferred=taken_port)
    assert port != taken_port
    assert is_free(port)


def test_given_no_preference_then_port_lies_below_the_ephemeral_range() -> None:
    assert all(PORT_FIRST <= free_port() < PORT_LAST for _ in range(50))


def test_given_ports_spoken_for_then_they_are_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(free_ports, "PORT_FIRST", port)
    monkeypatch.setattr(free_ports, "PORT_LAST", port + 1)
    with pytest.raises(OSError, match="no free port"):
        free_port(preferred=port, avoid=frozenset({port}))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who listens")
def test_given_our_own_listener_then_we_listen_and_others_do_not(taken_port: int) -> None:
    assert listens(os.getpid(), taken_port)
    assert not listens(os.getppid(), taken_port)
    assert not listens(os.getpid(), free_port())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who listens")
def test_given_process_that_is_gone_then_it_does_not_listen(taken_port: int) -> None:
    assert not listens(2**22 + 1, taken_port)  # beyond the largest process id that Linux gives
