"""A cluster whose nodes reach broker and store through proxies of their own, each with a wall clock that can be shifted.

On the loopback and without root: a node has its own listener of the broker's, announced with its link's port, and its own way to
the store, a link with a fault proxy behind it. Namespaces would cut as well, but one way only with a packet filter, which many
machines do not have, and they would keep nothing of what a proxy counts.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.proxies import proxy_plan
from tests.chaos.proxies.control import ControlClient
from tests.chaos.proxies.link import DIRECTIONS, Ending
from tests.chaos.proxies.store_faults import StoreFaults
from tests.chaos.rig import stepped_clock_node
from tests.support.cluster.cluster import Cluster
from tests.support.cluster.process import TIDEGATE, ClusterProcess
from tests.support.cluster.until import until
from tidegate_bricks import KafkaBrick
from tidegate_bricks.broker_config import ExtraListener
from tidegate_bricks.free_ports import LOOPBACK, free_port
from tidegate_bricks.logged_process import LoggedProcess

API = "api"
PROXIES = (sys.executable, "-P", "-m", "tests.chaos.proxies")
STEPPED = (sys.executable, "-P", "-m", "tests.chaos.rig.stepped_clock_node")


@dataclass(frozen=True, slots=True)
class Ways:
    """The ports of one process's ways: to the broker by a link to its listener, to the store by a link to a fault proxy."""

    broker_link: int
    broker_listener: int
    store_link: int
    store_proxy: int


class ChaosCluster(Cluster):
    """Nodes and API behind proxies.

    Args:
        folder: Everything that any of them writes.
        seed: Of the fault proxies' dice.
        nodes: That serve all the time.
        node_variables: Settings of all nodes.

    Attributes:
        control: Of all proxies.
    """

    def __init__(self, folder: Path, seed: int, nodes: int = 3, **node_variables: str) -> None:
        names = [API, *(f"node-{number}" for number in range(1, nodes + 2))]
        ports = _free_ports(4 * len(names) + 1)
        self._ways = {name: Ways(*ports[4 * at : 4 * at + 4]) for at, name in enumerate(names)}
        self._control_port = ports[-1]
        self._seed = seed
        self._proxies: LoggedProcess | None = None
        self.control = ControlClient(self._control_port)
        self._spare: ClusterProcess | None = None
        for name in names:
            _clock_file(folder, name).parent.mkdir(parents=True, exist_ok=True)
            self._write_clock(folder, name, 0)
        super().__init__(folder, nodes, None, **node_variables)

    @property
    def processes(self) -> list[ClusterProcess]:
        return [*super().processes, *([] if self._spare is None else [self._spare])]

    @property
    def all_nodes(self) -> list[ClusterProcess]:
        """Those that serve all the time, and the spare one where there was one."""
        return [process for process in self.processes if process in self.nodes or process is self._spare]

    def make_kafka(self, folder: Path) -> KafkaBrick:
        listeners = [
            ExtraListener(name.upper().replace("-", "_"), ways.broker_listener, ways.broker_link)
            for name, ways in self._ways.items()
        ]
        return KafkaBrick(folder, extra_listeners=listeners)

    def brokers_for(self, process: str) -> str:
        ways = self._ways.get(process)
        return self.bootstrap_servers if ways is None else f"{LOOPBACK}:{ways.broker_link}"

    def store_for(self, process: str) -> str:
        ways = self._ways.get(process)
        return self.dynamodb.endpoint if ways is None else f"http://{LOOPBACK}:{ways.store_link}"

    def command_of(self, process: str) -> Sequence[str]:
        return STEPPED if process.startswith("node-") else TIDEGATE

    def make_node(self, number: int, port: int) -> ClusterProcess:
        variables = {stepped_clock_node.VARIABLE: str(_clock_file(self.folder, f"node-{number}"))}
        return self._process(f"node-{number}", ("node",), port, **self._node_variables, **variables)

    def bricks_are_up(self) -> None:
        """Starts the proxies."""
        ways = self._ways.items()
        text = proxy_plan.Plan(
            seed=self._seed,
            control=self._control_port,
            stores=[proxy_plan.Way(name, way.store_proxy, self.dynamodb.port) for name, way in ways],
            links=[
                *(proxy_plan.Way(broker_link(name), way.broker_link, way.broker_listener) for name, way in ways),
                *(proxy_plan.Way(store_link(name), way.store_link, way.store_proxy) for name, way in ways),
            ],
        ).text()
        self._proxies = LoggedProcess([*PROXIES, text], self.folder / "proxies.log")
        until(lambda: self.control.answers, "the proxies answer")

    def stop(self) -> None:
        super().stop()
        if self._proxies is not None:
            self._proxies.close()

    # -- faults -------------------------------------------------------------------------------------------------------

    def cut(self, link: str, directions: Collection[str] = DIRECTIONS, ending: Ending = "deliver") -> None:
        self.control.cut(link, directions, ending)

    def heal(self, link: str) -> None:
        self.control.cut(link, ())

    def set_faults(self, faults: StoreFaults, *processes: str) -> None:
        """Sets the faults on some processes' ways to the store, or on all."""
        for name in processes or self._ways:
            self.control.set_faults(name, faults)

    def step_clock(self, node: ClusterProcess, offset_ms: int) -> None:
        """Shifts a node's wall clock to so many ms ahead of the true one."""
        self._write_clock(self.folder, node.name, offset_ms)

    def spare(self) -> ClusterProcess:
        """Returns a node beyond those that serve all the time; it may never have run."""
        if self._spare is None:
            self._spare = self.make_node(len(self.nodes) + 1, free_port())
        return self._spare

    def assert_all_run(self) -> None:
        for process in super().processes:
            assert process.running, f"{process.name} ended by itself:\n{process.last_lines()}"

    @staticmethod
    def _write_clock(folder: Path, name: str, offset_ms: int) -> None:
        # One write of a few bytes to a file that stays the same: its reader keeps it open.
        with _clock_file(folder, name).open("wb", buffering=0) as file:
            file.write(str(offset_ms).encode())


def broker_link(process: str) -> str:
    return f"{process}-broker"


def store_link(process: str) -> str:
    return f"{process}-store"


def _clock_file(folder: Path, name: str) -> Path:
    return folder / "clocks" / name


def _free_ports(count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        found.append(free_port(avoid=frozenset(found)))
    return found
