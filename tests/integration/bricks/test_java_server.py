"""A server's life, with a small Python server in place of Java's: quick, and without jars."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.servers.servers import stand_still
from tidegate_bricks import java_server
from tidegate_bricks.download_progress import Progress, ProgressListener, Stage, silent
from tidegate_bricks.dynamodb_local import answers_list_tables
from tidegate_bricks.errors import BrickFailed, BrickUnavailable, PortTaken
from tidegate_bricks.free_ports import LOOPBACK, free_port, is_free
from tidegate_bricks.java_runtime import Java
from tidegate_bricks.java_server import JavaServer
from tidegate_bricks.releases import Release

Until = Callable[[Callable[[], bool], str], None]
RELEASE = Release("small-1", "Small 1", ())
#: Answers everything with 200, after it has printed that it starts.
SERVER = """
import http.server, sys
class Yes(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *words): pass
print("Small 1 starts", flush=True)
try:
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Yes).serve_forever()
except OSError as refusal:
    sys.exit(refusal.strerror)
"""
MUTE = "import time\nprint('thinking', flush=True)\ntime.sleep(600)"


class SmallServer(JavaServer):
    """Takes one of the given ports at each choice."""

    def __init__(
        self,
        data_dir: Path | None,
        *,
        program: str = SERVER,
        ports: list[int] | None = None,
        listener: ProgressListener = silent,
    ) -> None:
        super().__init__(RELEASE, data_dir, 64, (), listener)
        self.program = program
        self._choices = iter(ports or [free_port() for _ in range(3)])
        self._port = 0

    @property
    def port(self) -> int:
        return self._port

    def choose_ports(self) -> None:
        self._port = next(self._choices)

    def arguments(self, java: Java, jars: Path) -> list[str]:
        return ["-c", self.program, str(self.port)]

    def answers(self) -> bool:
        return answers_list_tables(LOOPBACK, self.port)

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


@pytest.fixture(autouse=True)
def python_as_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python takes Java's `-Xmx64m` for one of its own implementation options and ignores it; there are no jars to archive."""

    def ensure_jars(_release: Release, listener: ProgressListener, *, java: Java) -> Path:
        listener(Progress(RELEASE.name, Stage.VERIFYING))
        return Path("jars")

    monkeypatch.setattr(java_server, "find_java", lambda: Java(Path(sys.executable), 17, "amd64", "Linux"))
    monkeypatch.setattr(java_server, "ensure_jars", ensure_jars)
    monkeypatch.delenv(java_server.ARCHIVES_VARIABLE, raising=False)


def test_given_start_and_stop_then_server_answers_in_between(tmp_path: Path, until: Until) -> None:
    steps: list[Progress] = []
    server = SmallServer(tmp_path, listener=steps.append)
    with server:
        until(server.answers, "it answers")
        assert server.log_path.read_text() == "Small 1 starts\n"
    assert not server.answers()
    assert [step.stage for step in steps] == [Stage.VERIFYING, Stage.STARTING, Stage.READY]


def test_given_running_server_then_second_start_changes_nothing(tmp_path: Path) -> None:
    with SmallServer(tmp_path) as server:
        pid = server.pid
        server.start()
        assert server.pid == pid


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_given_end_and_start_again_then_port_is_the_same(tmp_path: Path, end: str, until: Until) -> None:
    with SmallServer(tmp_path) as server:
        port = server.port
        getattr(server, end)()
        assert is_free(port)
        server.start()
        assert server.port == port
        until(server.answers, "it answers")


def test_given_server_that_died_then_start_brings_it_back(tmp_path: Path, until: Until) -> None:
    with SmallServer(tmp_path) as server:
        process = server._running_process()
        process.kill()
        process.wait(60)
        assert not server.running
        server.start()
        until(server.answers, "it answers")


def test_given_paused_server_then_it_answers_only_after_it_goes_on(tmp_path: Path, until: Until) -> None:
    with SmallServer(tmp_path) as server:
        stand_still(server)
        assert not server.answers()
        assert server.running
        server.resume()
        until(server.answers, "it goes on")


def test_given_port_was_taken_meanwhile_then_another_is_tried(tmp_path: Path) -> None:
    with SmallServer(tmp_path / "first") as first:
        free = free_port()
        with SmallServer(tmp_path / "second", ports=[first.port, first.port, free]) as second:
            assert second.port == free
            assert second.pid != first.pid


def test_given_all_choices_are_taken_then_error_says_so(tmp_path: Path) -> None:
    with SmallServer(tmp_path / "first") as first:
        second = SmallServer(tmp_path / "second", ports=[first.port] * 3)
        with pytest.raises(PortTaken, match="Address already in use"):
            second.start()
        assert not second.running


def test_given_its_port_is_taken_while_it_is_down_then_it_does_not_move(tmp_path: Path) -> None:
    with SmallServer(tmp_path / "first") as first:
        first.stop()
        with SmallServer(tmp_path / "second", ports=[first.port]), pytest.raises(PortTaken):
            first.start()


def test_given_server_that_cannot_start_then_error_shows_its_last_words(tmp_path: Path) -> None:
    server = SmallServer(tmp_path, program="raise SystemExit('the disk is full')")
    with pytest.raises(BrickFailed, match=r"Small 1 ended with status 1[\s\S]*the disk is full"):
        server.start()
    assert not server.running


def test_given_server_that_never_answers_then_it_is_ended_at_the_deadline(tmp_path: Path) -> None:
    server = SmallServer(tmp_path, program=MUTE)
    with pytest.raises(BrickFailed, match="did not answer in time"):
        server.start(timeout_s=0.3)
    assert not server.running


def test_given_stop_while_it_starts_then_start_ends(tmp_path: Path) -> None:
    asked = threading.Event()

    class Slow(SmallServer):
        def answers(self) -> bool:
            asked.set()
            return False

    server = Slow(tmp_path, program=MUTE)
    with ThreadPoolExecutor(max_workers=1) as pool:
        start = pool.submit(server.start)
        assert asked.wait(60)
        server.stop()
        with pytest.raises(BrickFailed, match="was stopped while it started"):
            start.result()
    assert not server.running


def test_given_folder_of_a_running_server_then_second_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_bricks.server_folder.DataFolder.take.__defaults__", (0.0,))
    with SmallServer(tmp_path), pytest.raises(BrickUnavailable, match="in use by another Small 1"):
        SmallServer(tmp_path).start()


@pytest.mark.parametrize("call", ["pause", "resume"])
def test_given_server_that_does_not_run_then_it_cannot_be_paused(tmp_path: Path, call: str) -> None:
    with pytest.raises(BrickFailed, match="Small 1 is not running"):
        getattr(SmallServer(tmp_path), call)()


@pytest.mark.parametrize("call", ["stop", "kill"])
def test_given_server_that_does_not_run_then_ending_it_does_nothing(tmp_path: Path, call: str) -> None:
    server = SmallServer(tmp_path)
    getattr(server, call)()
    assert not server.running
    assert list(tmp_path.iterdir()) == []


def test_given_no_folder_then_data_last_as_long_as_the_object() -> None:
    server = SmallServer(None)
    with server:
        log = server.log_path
        server.stop()
        assert log.exists()
        server.start()
    del server
    assert not log.exists()
