"""`tidegate dev` as a user sees it: real broker, real store, node and API in processes of their own."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest

from tests.support.servers.cluster_servers import as_guest
from tests.support.servers.servers import DynamoDbForTests, KafkaForTests
from tidegate_client import Client

pytest.importorskip("pyspark")
pytestmark = pytest.mark.timeout(300)

READY_GOAL_S = 15.0
"""With the jars cached. Asserted, times what its own processes waited for cores: another file's stack starts or works beside this one,
on the same two."""

FIRST_RUN_S_MAX = 60.0
"""A first PySpark run of one's own script, from the command that writes its schedule; asserted as the one above."""

PATIENCE_S = 60.0
USUAL_PORTS = (9092, 8000, 8080, 8081)


class Dev(Protocol):
    """What `conftest.py` starts."""

    @property
    def events(self) -> list[dict[str, Any]]: ...
    @property
    def environment(self) -> dict[str, str]: ...
    def wait_for(self, event: str, text: str = "") -> dict[str, Any]: ...
    def components(self) -> dict[str, dict[str, Any]]: ...
    def stretch(self) -> float: ...
    def command(self, *arguments: str) -> Any: ...
    def interrupt(self) -> None: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


StartDev = Callable[..., Dev]
Schedule = Callable[..., str]

HELLO = "import sys; print('hello', sys.argv[1])"
WAITS = "open({latch!r}).read()"
COUNTS = """
from pyspark.sql import SparkSession
from tidegate_spark import set_output
set_output("rows", SparkSession.builder.getOrCreate().range(1000).count())
"""


def status_of(url: str) -> int | None:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    with suppress(OSError):
        try:
            connection.request("GET", parts.path)
            return connection.getresponse().status
        finally:
            connection.close()
    return None


def listens(address: str) -> bool:
    host, _, port = address.rpartition("/")[2].rpartition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
        return True
    return False


def eventually(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {patience_s:g} s in vain: {what}")
        time.sleep(0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data") / "stack"


@pytest.fixture(scope="module")
def dev(start_dev: StartDev, folder: Path) -> Iterator[Dev]:
    process = start_dev("--data-dir", str(folder))
    process.wait_for("ready")
    yield process
    process.interrupt()
    process.wait()


def test_given_cached_jars_then_it_answers_soon_and_says_where_everything_is(dev: Dev, folder: Path) -> None:
    (ready,) = [event for event in dev.events if event["event"] == "ready"]
    stretch = dev.stretch()
    sys.stdout.write(f"tidegate dev: ready after {ready['seconds']:.1f} s, stretched {stretch:.2f} times ")
    sys.stdout.write(f"(at most {READY_GOAL_S:g} s times that)\n")
    assert ready["seconds"] < READY_GOAL_S * stretch
    assert status_of(f"{ready['api_url']}/readyz") == 200
    eventually(lambda: status_of(f"{ready['nodes'][0]}/readyz") == 200, "the node is ready")
    assert listens(ready["kafka"])
    assert listens(ready["dynamodb"])
    assert ready["data_dir"] == str(folder)
    components = dev.components()
    assert {name.partition("-4")[0].partition("-2")[0] for name in components} == {
        "kafka",
        "dynamodb-local",
        "init",
        "api",
        "node-1",
    }
    assert all(Path(component["log"]).is_file() for component in components.values())


def test_given_a_stack_then_other_commands_find_it_and_a_plain_python_run_ends_well(
    dev: Dev, schedule: Schedule
) -> None:
    dev.command("schedule", "apply", "-f", schedule("greets", HELLO))
    dev.command("schedule", "trigger", "demo/greets")
    eventually(lambda: states_of(dev, "greets") == ["succeeded"], "the run succeeds")
    listed = dev.command("run", "list")
    runs = listed["items"] if isinstance(listed, dict) else listed
    assert [run["state"] for run in runs if run["schedule"] == "greets"] == ["succeeded"]


@pytest.mark.nightly  # `tests/integration/launchers/test_spark_submit.py` runs a PySpark program in both tiers.
def test_given_a_script_of_ones_own_then_its_first_pyspark_run_ends_within_a_minute(
    dev: Dev, schedule: Schedule
) -> None:
    begun = time.monotonic()
    dev.command("schedule", "apply", "-f", schedule("counts", COUNTS, "pyspark"))
    dev.command("schedule", "trigger", "demo/counts")
    eventually(lambda: states_of(dev, "counts") == ["succeeded"], "the run succeeds", 3 * FIRST_RUN_S_MAX)
    took = time.monotonic() - begun
    stretch = dev.stretch()
    sys.stdout.write(
        f"first PySpark run: ended {took:.1f} s after its schedule was written, stretched {stretch:.2f} times "
    )
    sys.stdout.write(f"(at most {FIRST_RUN_S_MAX:g} s times that)\n")
    assert took < FIRST_RUN_S_MAX * stretch


def test_given_a_folder_in_use_then_a_second_one_says_who_uses_it(dev: Dev, start_dev: StartDev, folder: Path) -> None:
    second = start_dev("--data-dir", str(folder))
    failed = second.wait_for("failed")
    assert second.wait() == 1
    assert str(folder) in failed["problem"]
    assert "process" in failed["problem"]
    assert "--data-dir" in failed["remedy"]
    assert dev.command("schedule", "list") is not None


def test_given_a_node_that_crashes_then_it_is_started_again_and_the_console_says_so(dev: Dev) -> None:
    (ready,) = [event for event in dev.events if event["event"] == "ready"]
    os.kill(_listener(ready["nodes"][0]), signal.SIGKILL)
    ended = dev.wait_for("notice", "ended with status 137; starting it again in 1 s")
    assert ended["component"] == "node-1"
    assert dev.wait_for("notice", "is back after")["component"] == "node-1"
    eventually(lambda: status_of(f"{ready['nodes'][0]}/readyz") == 200, "the node is ready")


def test_given_ctrl_c_then_what_is_kept_goes_on_with_a_second_start_and_nothing_outlives_a_kill(
    start_dev: StartDev, tmp_path: Path, schedule: Schedule
) -> None:
    """A program that is under way when the stack stops runs on, and the next stack finds it and records its end. That one is killed."""
    folder, latch = tmp_path / "stack", tmp_path / "latch"
    os.mkfifo(latch)
    first = start_dev("--data-dir", str(folder))
    ready = first.wait_for("ready")
    first.command("schedule", "apply", "-f", schedule("survives", WAITS.format(latch=str(latch))))
    first.command("schedule", "trigger", "demo/survives")
    eventually(lambda: states_of(first, "survives") == ["running"], "the program runs")
    first.interrupt()
    kept = " ".join(first.wait_for("stopped")["kept"])
    assert first.wait() == 0
    assert "1 program still running" in kept
    assert str(folder) in kept
    assert not any(listens(address) for address in (ready["kafka"], ready["dynamodb"], ready["api_url"]))
    assert list((Path(first.environment["TIDEGATE_STATE_DIR"]) / "dev").iterdir()) == []
    assert _last_event(folder / "log" / "node-1.log") == "node_stopped"

    second = start_dev("--data-dir", str(folder))
    ready = second.wait_for("ready")
    assert states_of(second, "survives") == ["running"]
    latch.open("w").close()
    eventually(lambda: states_of(second, "survives") == ["succeeded"], "the program's end is recorded")
    second.kill()
    second.wait()
    addresses = [ready["kafka"], ready["dynamodb"], ready["api_url"], *ready["nodes"]]
    eventually(lambda: not any(listens(address) for address in addresses), "all children end with their parent")


def test_given_an_ephemeral_stack_and_taken_ports_then_others_are_used_and_programs_and_data_go_with_it(
    start_dev: StartDev, tmp_path: Path, schedule: Schedule
) -> None:
    latch = tmp_path / "latch"
    os.mkfifo(latch)
    dev = _with_taken_ports(start_dev)
    (ready,) = [event for event in dev.events if event["event"] == "ready"]
    dev.command("schedule", "apply", "-f", schedule("waits", WAITS.format(latch=str(latch))))
    dev.command("schedule", "trigger", "demo/waits")
    eventually(lambda: states_of(dev, "waits") == ["running"], "the program runs")
    dev.interrupt()
    assert "1 program that still ran: ended." in dev.wait_for("stopped")["kept"]
    assert dev.wait() == 0
    assert not Path(ready["data_dir"]).exists()
    # Nobody reads the latch any more: a writer that does not wait is refused.
    with pytest.raises(OSError, match="No such device"):
        os.open(latch, os.O_WRONLY | os.O_NONBLOCK)


def _with_taken_ports(start_dev: StartDev) -> Dev:
    """Returns an ephemeral stack that was started while somebody else had the usual ports, and has chosen others."""
    held = []
    with ExitStack() as taken:
        for port in USUAL_PORTS:
            # Somebody else has it: just as taken, unless they give it back before the stack comes to it.
            with suppress(OSError):
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
                held.append(port)
        dev = start_dev("--ephemeral")
        ready = dev.wait_for("ready")
    addresses = [ready["kafka"], ready["dynamodb"], ready["api_url"], *ready["nodes"]]
    used = {int(address.rpartition(":")[2]) for address in addresses}
    notices = [event["text"] for event in dev.events if event["event"] == "notice"]
    told = {port for port in USUAL_PORTS if any(f"port {port} is taken" in notice for notice in notices)}
    assert told >= set(held)
    assert used & set(USUAL_PORTS) == set(USUAL_PORTS) - told
    return dev


def test_given_endpoints_in_the_settings_then_they_are_used_instead_of_local_bricks(
    start_dev: StartDev, kafka: KafkaForTests, dynamodb: DynamoDbForTests
) -> None:
    dev = start_dev("--ephemeral", "--nodes", "2", settings=as_guest(kafka, dynamodb).variables())
    ready = dev.wait_for("ready")
    components = dev.components()
    assert (ready["kafka"], ready["dynamodb"]) == (kafka.bootstrap_servers, dynamodb.endpoint_url)
    assert components["kafka"]["note"] == components["dynamodb"]["note"] == "from your settings"
    # A starved node whose proof of membership lapses is unready until the next one.
    eventually(lambda: all(status_of(f"{url}/readyz") == 200 for url in ready["nodes"]), "both nodes are ready")
    dev.interrupt()
    dev.wait_for("stopped")
    assert dev.wait() == 0
    assert listens(kafka.bootstrap_servers)
    assert listens(dynamodb.endpoint_url)
    assert not Path(ready["data_dir"]).exists()


def states_of(dev: Dev, name: str) -> list[str]:
    """Returns the states of a schedule's runs, the newest first. Asks the API: a command takes a second of CPU."""
    (ready,) = [event for event in dev.events if event["event"] == "ready"]
    with Client(ready["api_url"]) as client:
        return [run.state for run in client.runs("demo", name)]


def _listener(url: str) -> int:
    """Returns the process that listens at a URL of this machine, by the kernel's own tables."""
    port = urlsplit(url).port
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It has ended since it was listed.
            for link in (process / "fd").iterdir():
                with suppress(OSError):
                    if str(link.readlink()).removeprefix("socket:[").removesuffix("]") in inodes:
                        return int(process.name)
    pytest.fail(f"nobody listens at {url}")


def _last_event(log: Path) -> str:
    found = re.findall(r'"event": "([a-z_]+)"', log.read_text(encoding="utf-8"))
    return str(found[-1])
