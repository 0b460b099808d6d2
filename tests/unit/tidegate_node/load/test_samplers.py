"""Samplers: the host's own numbers, and numbers of pages."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from tidegate_core.language.constraints.load import LOCAL_MOST
from tidegate_core.rows.effects import LoadSampled, SampleLoad
from tidegate_node.load import http_metric
from tidegate_node.load.host_load import HostLoad
from tidegate_node.load.http_metric import PageLoad
from tidegate_node.load.load_effects import LoadEffects
from tidegate_ports.clock import SystemClock
from tidegate_ports.load_sampler import LoadUnavailable, SourceSilent
from tidegate_telemetry.metric_names import NODE_METRICS
from tidegate_telemetry.metrics import Metrics

PATIENCE_S = 60.0
PAGES = {
    "/json": b'{"cluster": {"load": 0.25, "queues": [{"used~share/now": 7}], "up": true, "name": "x", "huge": 1%s}}'
    % (b"0" * 309),
    "/metrics": b'# HELP node_load1 x\nnode_load1 0.75\nup{job="a"} 1\nup{job="b"} 0 1700000000\nodd NaN\nbad x\n',
}


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGES.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *args: object) -> None:
        """Nothing on the tests' output."""


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("page", "place", "value"),
    [
        ("/json", "/cluster/load", 0.25),
        ("/json", "/cluster/queues/0/used~0share~1now", 7.0),
        ("/metrics", "node_load1", 0.75),
        ("/metrics", 'up{job="b"}', 0.0),
    ],
)
def test_given_a_page_then_its_number_is_found(pages: str, page: str, place: str, value: float) -> None:
    assert PageLoad(pages + page, {"cpu": place}, PATIENCE_S).sample("cpu") == value


@pytest.mark.parametrize(
    ("page", "place", "problem"),
    [
        ("/json", "/cluster/none", "nothing at /cluster/none"),
        ("/json", "/cluster/queues/first", "nothing at"),
        ("/json", "/cluster/up", "is no number"),
        ("/json", "/cluster/name", "is no number"),
        ("/json", "/cluster/huge", "is too large"),
        ("/metrics", "/cluster/load", "nothing at"),
        ("/metrics", "node_load", "has no sample node_load"),
        ("/metrics", "odd", "is nan"),
        ("/metrics", "bad", "is no number"),
        ("/gone", "x", "does not answer"),
    ],
)
def test_given_a_page_without_the_number_then_it_says_what_is_missing(
    pages: str, page: str, place: str, problem: str
) -> None:
    with pytest.raises(LoadUnavailable, match=problem):
        PageLoad(pages + page, {"cpu": place}, PATIENCE_S).sample("cpu")


def test_given_a_resource_that_the_source_does_not_have_then_it_says_which_it_has(pages: str) -> None:
    with pytest.raises(LoadUnavailable, match="has no disk; it has cpu, memory"):
        PageLoad(pages, {"memory": "x", "cpu": "y"}).sample("disk")


def test_given_nobody_who_answers_then_it_is_unavailable() -> None:
    with pytest.raises(LoadUnavailable, match="does not answer"):
        PageLoad("http://127.0.0.1:1/", {"cpu": "x"}, answer_within_s=1).sample("cpu")


def test_given_a_token_in_the_address_then_nobody_is_told_it_who_asks_why_a_job_waits() -> None:
    with pytest.raises(LoadUnavailable) as caught:
        PageLoad("http://127.0.0.1:1/load?token=hush", {"cpu": "x"}, answer_within_s=1).sample("cpu")
    assert "http://127.0.0.1:1/load does not answer" in str(caught.value)
    assert "hush" not in str(caught.value)


@contextmanager
def _page(write: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Serves what a function writes behind the status."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            with suppress(OSError):
                write(self)

        def log_message(self, *args: object) -> None:
            """Nothing on the tests' output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_given_a_page_that_comes_in_drops_then_it_is_silent_once_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The timeout of a socket is for each of its reads: a page of many drops would keep all jobs of its load waiting."""
    enough, half_its_time_later = threading.Event(), itertools.count(0.0, PATIENCE_S / 2)
    monkeypatch.setattr(http_metric, "time", SimpleNamespace(monotonic=lambda: next(half_its_time_later)))

    def in_drops(answer: BaseHTTPRequestHandler) -> None:
        answer.end_headers()
        while not enough.wait(0.05):
            answer.wfile.write(b"#")

    with _page(in_drops) as url:
        try:
            with pytest.raises(SourceSilent, match="comes too slowly"):
                PageLoad(url, {"cpu": "x"}, PATIENCE_S).sample("cpu")
        finally:
            enough.set()


def test_given_a_page_that_is_cut_off_then_no_number_of_it_is_believed() -> None:
    def cut_off(answer: BaseHTTPRequestHandler) -> None:
        answer.send_header("Content-Length", "12")
        answer.end_headers()
        answer.wfile.write(b"load 12")

    with _page(cut_off) as url, pytest.raises(SourceSilent, match="does not answer"):
        PageLoad(url, {"cpu": "load"}, PATIENCE_S).sample("cpu")


def test_given_a_page_on_a_connection_that_stays_open_then_its_announced_end_is_its_end() -> None:
    enough = threading.Event()

    def and_wait(answer: BaseHTTPRequestHandler) -> None:
        answer.send_header("Content-Length", "8")
        answer.end_headers()
        answer.wfile.write(b"load 12\n")
        enough.wait(2 * PATIENCE_S)

    with _page(and_wait) as url:
        try:
            assert PageLoad(url, {"cpu": "load"}, PATIENCE_S).sample("cpu") == 12.0
        finally:
            enough.set()


def test_given_the_host_then_its_cpu_and_memory_are_shares(tmp_path: Path) -> None:
    memory = tmp_path / "meminfo"
    memory.write_text("MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    250 kB\n")
    assert HostLoad(memory).sample("memory") == 0.75
    assert HostLoad().sample("cpu") >= 0


def test_given_what_a_definition_may_ask_of_the_host_then_the_host_has_it() -> None:
    """What is refused in a definition and what the sampler has are two lists."""
    assert {resource: HostLoad().sample(resource) >= 0 for resource in LOCAL_MOST} == {"cpu": True, "memory": True}


@pytest.mark.parametrize("text", ["", "MemTotal: x kB", "MemTotal: 0 kB\nMemAvailable: 0 kB", "MemTotal:"])
def test_given_a_host_that_does_not_say_then_it_is_unavailable(tmp_path: Path, text: str) -> None:
    memory = tmp_path / "meminfo"
    memory.write_text(text)
    for host, resource in ((HostLoad(memory), "memory"), (HostLoad(tmp_path / "none"), "memory"), (HostLoad(), "disk")):
        with pytest.raises(LoadUnavailable):
            host.sample(resource)


class _Counting:
    def __init__(self) -> None:
        self.asked = 0

    def sample(self, resource: str) -> float:
        self.asked += 1
        if resource == "none":
            raise LoadUnavailable("no such thing")
        return 0.5


def test_given_many_shards_that_ask_at_once_then_the_source_is_asked_once() -> None:
    source = _Counting()

    async def ask() -> list[LoadSampled]:
        effects = LoadEffects({"yarn": source}, SystemClock(), Metrics())
        return await asyncio.gather(*(effects.sample(SampleLoad("yarn", "cpu")) for _ in range(20)))

    assert asyncio.run(ask()) == [LoadSampled(0.5)] * 20
    assert source.asked == 1


class _Hanging:
    """A page that never answers: a look ends when it has taken its time."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ends = threading.Semaphore(0)

    def sample(self, resource: str) -> float:
        self.asked.append(resource)
        assert self.ends.acquire(timeout=60)
        raise SourceSilent("timed out")


def test_given_many_shards_that_wait_for_a_page_that_hangs_then_all_know_after_one_look() -> None:
    """Found in review: they looked one after another, a dozen of them for so long that "unknown for 5 minutes" never came about."""
    page = _Hanging()

    async def ask() -> list[LoadSampled]:
        effects = LoadEffects({"yarn": page}, SystemClock(), Metrics())
        first = [asyncio.create_task(effects.sample(SampleLoad("yarn", "cpu"))) for _ in range(10)]
        while not page.asked:  # noqa: ASYNC110 - it is asked in a thread
            await asyncio.sleep(0.01)
        later = [asyncio.create_task(effects.sample(SampleLoad("yarn", "memory"))) for _ in range(10)]
        await asyncio.sleep(0)
        first[0].cancel()  # Its shard is lost.
        page.ends.release()
        answers = await asyncio.gather(*first[1:], *later)
        page.ends.release()
        return [*answers, await effects.sample(SampleLoad("yarn", "cpu"))]

    assert asyncio.run(ask()) == [LoadSampled(None, "timed out")] * 20
    assert page.asked == ["cpu", "cpu"]  # The last one asked when it was known, and looked for itself.


def test_given_as_many_pages_that_hang_as_the_loop_has_threads_then_the_stores_name_is_looked_up_all_the_same() -> None:
    """The loop looks names up on the same few threads: a node whose pages hung found its store no more, a second being all that it has for it."""
    page = _Hanging()

    async def look_up() -> bool:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        effects = LoadEffects({"yarn": page}, SystemClock(), Metrics())
        asked = asyncio.create_task(effects.sample(SampleLoad("yarn", "cpu")))
        while not page.asked:  # noqa: ASYNC110 - it is asked in a thread
            await asyncio.sleep(0.01)
        try:
            await asyncio.wait_for(loop.getaddrinfo("localhost", 8000), PATIENCE_S / 2)
        finally:
            page.ends.release()
        assert (await asked).problem == "timed out"
        return True

    assert asyncio.run(look_up())


def test_given_no_such_source_or_resource_then_the_answer_says_so() -> None:
    async def ask(source: str, resource: str) -> LoadSampled:
        return await LoadEffects({"yarn": _Counting()}, SystemClock(), Metrics()).sample(SampleLoad(source, resource))

    assert asyncio.run(ask("yarn", "none")) == LoadSampled(None, "no such thing")
    answer = asyncio.run(ask("mesos", "cpu"))
    assert answer.value is None
    assert "name no mesos; it has yarn" in answer.problem


def test_given_a_host_without_threads_then_its_load_is_unknown_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another error would be a bug of the actor that asks."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def sampled() -> LoadSampled:
        effects = LoadEffects({"local": HostLoad()}, SystemClock(), Metrics())
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", start)
            return await effects.sample(SampleLoad("local", "cpu"))

    assert asyncio.run(sampled()) == LoadSampled(None, "local cannot be looked at: can't start new thread")


def test_given_loads_that_are_known_then_their_series_are_there_for_alerts_on_the_first_that_is_not() -> None:
    metrics = Metrics(NODE_METRICS)
    LoadEffects({"local": HostLoad(), "yarn": _Counting()}, SystemClock(), metrics)
    page = metrics.exposition()[0].decode()
    assert [f'tidegate_loads_unknown_total{{source="{name}"}} 0.0' in page for name in ("local", "yarn")] == [True] * 2
