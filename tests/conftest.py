"""What all tests share: the folder names the kind of a test, and hypothesis does not judge by the clock."""

import gc
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]  # has no types

from tests.support import tier
from tests.support.suite.progress import Progress
from tests.support.suite.scheduler import COMPUTING_NICENESS, SuiteScheduling, is_stack_folder, takes
from tidegate_bricks.jar_cache import cache_root
from tidegate_bricks.java_server import ARCHIVES_VARIABLE, NICE_VARIABLE
from tidegate_node.process_lifecycle import THRESHOLDS

pytest_plugins = ["tests.support.servers.shared"]
TESTS = Path(__file__).parent
SUITE_DIST = "loadgroup"
SCHEDULING = pytest.StashKey[SuiteScheduling]()
KINDS = frozenset({"unit", "chart", "conformance", "integration", "simulation", "cluster", "chaos", "benchmarks"})

# No deadline: the machines that run this are shared, and a slow moment is no failure of the code.
# `print_blob` makes a failure on a build machine reproducible on a desk.
settings.register_profile("full", deadline=None, print_blob=True)
settings.register_profile("quick", settings.get_profile("full"), max_examples=20)

BRICKS_NICENESS = "-10"
"""Broker and store answer at once although two workers keep both cores busy, as they do where they have machines of their own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(tier.OPTION, action="store_true", help="run nightly tests too, and everything at its full size")


def pytest_configure(config: pytest.Config) -> None:
    """Sets the tier before test modules are imported, and how servers start: from archived classes, and before what only computes.

    The priority needs root on most machines; elsewhere servers keep the usual one.
    """
    run_all = config.getoption("all")
    os.environ[tier.VARIABLE] = "all" if run_all else "quick"
    settings.load_profile("full" if run_all else "quick")
    os.environ.setdefault(ARCHIVES_VARIABLE, str(cache_root() / "archives"))
    if NICE_VARIABLE not in os.environ and _may_be_less_nice():
        os.environ[NICE_VARIABLE] = BRICKS_NICENESS
    if True not in _kinds_taken(config):
        os.nice(COMPUTING_NICENESS)


def _kinds_taken(config: pytest.Config) -> frozenset[bool]:
    """Returns whether this process runs stack tests, computing tests, or both; both where xdist deals out in another way."""
    worker = getattr(config, "workerinput", None)
    if worker is None or not worker[SUITE_DIST]:
        return frozenset({True, False})
    return takes(worker["workerid"], worker["workercount"])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out folders whose tests another kind of worker takes; pytest does not ask about a path that it was told to collect."""
    is_folder_of_tests = collection_path.parent == TESTS and collection_path.is_dir()
    return True if is_folder_of_tests and not _is_taken(collection_path, config) else None


def _is_taken(path: Path, config: pytest.Config) -> bool:
    return not path.is_relative_to(TESTS) or is_stack_folder(path.relative_to(TESTS).parts[0]) in _kinds_taken(config)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Adds lines of progress where tests run in other processes and no terminal shows the dots."""
    config = session.config
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput") and not sys.stdout.isatty():
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            config.pluginmanager.register(Progress(reporter))


def _may_be_less_nice() -> bool:
    try:
        asked = subprocess.run(["nice", "-n", BRICKS_NICENESS, "true"], capture_output=True, check=False)
    except OSError:
        return False
    return asked.returncode == 0 and not asked.stderr


ALONE = ("cluster/test_kills.py", "chaos/test_phase.py", "cluster/test_outages.py", "cluster/test_lateness.py")
"""Files whose clusters need a core and more all the time. Two of them beside each other on two cores have more to do than there is time,
fall behind without end, and show that alone: one worker takes them one after the other."""
LONGEST_FIRST = (
    *ALONE,
    "cluster/test_two_releases.py",
    "integration/demo/test_demo.py",
    "benchmarks/workloads/test_smoke.py",
    "integration/node/test_node.py",
    "integration/node/test_requests_topic.py",
    "integration/dev/test_dev.py",
    "integration/kafka/test_membership.py",
    "integration/api/test_cluster.py",
    "integration/node/test_events_topic.py",
    "integration/api/test_stack.py",
    "cluster/test_requests.py",
    "cluster/test_bad_input.py",
)
"""Files that take longest, as last measured: the workers end together when these are not what begins last."""


COMPUTED_S_MAX = 900
"""Tests that wait for nobody and compute, some of them for a minute and a half here, on a machine that is three times slower."""
SERVED_S_MAX = 600
"""Tests whose waits together may be more patient than the suite: they start a cluster, which takes a busy machine a minute or two."""
HANGS_S = {
    "simulation": COMPUTED_S_MAX,
    "unit/tidegate_core": COMPUTED_S_MAX,
    "unit/tidegate_simulator": COMPUTED_S_MAX,
    "unit/support/simulation": COMPUTED_S_MAX,
    "cluster": SERVED_S_MAX,
    "integration/api": SERVED_S_MAX,
    "integration/node": SERVED_S_MAX,
}
"""Where the suite's own patience would take a test that works for one that hangs; a test's own marker counts more."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks each test with its folder, so that `-m` selects a kind and nobody forgets the marker; longest files first."""
    rank = {TESTS / file: number for number, file in enumerate(LONGEST_FIRST)}
    items[:] = [item for item in items if _is_taken(item.path, config)]
    items.sort(key=lambda item: rank.get(item.path, len(rank)))
    if not config.getoption("all"):
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in set(nightly)]
    for item in items:
        if not item.path.is_relative_to(TESTS):
            continue
        kind = item.path.relative_to(TESTS).parts[0]
        if kind in KINDS:
            item.add_marker(kind)
        hangs_s = next((seconds for place, seconds in HANGS_S.items() if item.path.is_relative_to(TESTS / place)), None)
        if hangs_s is not None and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(hangs_s))


def pytest_collection_finish() -> None:
    """Ten thousand tests and all modules are there for good: nobody looks through them for cycles again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tells a worker how tests are dealt out: it has no such option itself."""
    node.workerinput[SUITE_DIST] = node.config.getvalue("dist") == SUITE_DIST


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config) -> SuiteScheduling | None:
    """Deals out stack tests by file, and computing tests to workers of a low priority."""
    if config.getvalue("dist") != SUITE_DIST:
        return None
    config.stash[SCHEDULING] = SuiteScheduling(config, ALONE)
    return config.stash[SCHEDULING]


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Says how many tests there were: xdist takes those of the last worker for all, which may be none."""
    outcome = yield
    if SCHEDULING in session.config.stash:
        session.testscollected = session.config.stash[SCHEDULING].collected
    return outcome
