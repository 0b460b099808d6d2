"""Pages of a process that is killed meanwhile."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from tests.support.cluster.process import ClusterProcess


@pytest.mark.parametrize("said", [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ntidegate_"])
def test_given_a_process_that_ends_amid_its_answer_then_nobody_has_answered(said: bytes, tmp_path: Path) -> None:
    """Found in a chaos run: the thread that counts what was felt ended for the second half of a page."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        process = ClusterProcess("node-1", [], {}, tmp_path / "log", f"http://127.0.0.1:{server.getsockname()[1]}")
        assert process.ask("/metrics") == (0, "")
        thread.join()
