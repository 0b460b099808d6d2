"""What several of these tests need: a port that is taken."""

import socket
from collections.abc import Iterator

import pytest

from tidegate_bricks.free_ports import LOOPBACK


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port of the loopback interface on which somebody listens."""
    with socket.socket() as listening:
        listening.bind((LOOPBACK, 0))
        listening.listen()
        yield listening.getsockname()[1]
