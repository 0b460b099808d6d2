"""A whole local stack: Kafka, DynamoDB, tables and topics, nodes, API. `tidegate dev` and the demo run it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from uuid import uuid4

from tidegate_bricks import stop_together
from tidegate_bricks.file_lock import FileLock
from tidegate_cli.dev.child_environment import Wiring, choose_port, given_api_port, given_endpoints
from tidegate_cli.dev.child_process import TIDEGATE, Child, ChildPlan, ended_early, run_to_end
from tidegate_cli.dev.component_supervisor import Supervisor
from tidegate_cli.dev.console import StackConsole
from tidegate_cli.dev.errors import StackFailed
from tidegate_cli.dev.local_servers import LocalBricks, SupervisedBrick, require_local_extra
from tidegate_cli.dev.open_programs import OpenProgram, end_programs, open_programs
from tidegate_cli.dev.options import API_PORT, NODE_PORT, StackOptions
from tidegate_cli.dev.port_reservation import PortReservations
from tidegate_cli.dev.stack_events import ComponentReady, Notice, Ready, Stopped, Stopping
from tidegate_cli.dev.stack_folder import StackFolder
from tidegate_cli.local_stacks import current_folder, pointer_dir, running_stacks


class NodePlans:
    """Start plans of the nodes of one stack.

    While a crashed node is down, another stack may take its port. Only the health pages use a node's port (programs call the API).
    So the node moves to another port instead of failing until the other stack ends.

    Attributes:
        wiring: Wiring with the present ports of the nodes.
    """

    def __init__(self, wiring: Wiring, console: StackConsole) -> None:
        self.wiring = wiring
        self._console = console

    def plan(self, number: int) -> ChildPlan:
        """Returns the plan to start node `number` now; the first is 1. Raises StackFailed."""
        name = f"node-{number}"
        own = self.wiring.node_ports[number - 1]
        reserved = frozenset({self.wiring.api_port, *self.wiring.node_ports}) - {own}
        port = choose_port(own, reserved)
        if port != own:
            self._console.show(Notice(component=name, text=f"port {own} is now taken; {name} uses {port}"))
            self.wiring = self.wiring.with_node_port(number, port)
        url = f"{self.wiring.node_url(number)}/readyz"
        log = self.wiring.folder.log(name)
        return ChildPlan(name, (*TIDEGATE, "node"), self.wiring.node_environment(number), log, url)


FILE_MODE = 0o600


class Pointer:
    """Pointer file of one stack, locked until the stack ends. A killed stack leaves an unlocked file.

    Args:
        folder: Folder of the pointer files of all stacks.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"{uuid4().hex}.json"
        self._lock = FileLock(self._path.with_suffix(".new"))

    def write(self, ready: Ready) -> None:
        """Writes and locks the file, and removes the files of killed stacks. Raises OSError."""
        self._remove_left_ones()
        self._lock.acquire(timeout_s=0)
        # The file gets its name when it is locked and complete; otherwise another starting stack would remove it.
        os.fchmod(self._lock.descriptor, FILE_MODE)
        os.write(self._lock.descriptor, json.dumps(asdict(ready), indent=1).encode() + b"\n")
        self._lock.path.replace(self._path)

    def remove(self) -> None:
        """Removes the file. May be called again, and if nothing was written."""
        with suppress(OSError):
            # If the file stays, it is ignored, because it is no longer locked.
            self._path.unlink(missing_ok=True)
        self._lock.release()

    def _remove_left_ones(self) -> None:
        for path in self._folder.glob("*.json"):
            lock = FileLock(path)
            if lock.acquire(timeout_s=0):
                path.unlink(missing_ok=True)
                lock.release()


INIT_TIMEOUT_S = 60.0
READY_TIMEOUT_S = 60.0
"""Seconds for nodes and API together; an idle laptop needs 3 s."""

READY_POLL_INTERVAL_S = 0.1
NODE_DRAIN_S = 20.0
"""Seconds until a node is killed. Its drain takes at most 10 s; the interpreter needs some time to end."""

API_DRAIN_S = 17.0
"""Seconds until the API is killed; it lets open requests finish for 15 s."""

DRAIN_POLL_S = 0.1


class Stack:
    """Starts all components, restarts crashed ones, and stops them in order.

    Attributes:
        ready: Announcement of the ready stack; None before.
    """

    def __init__(
        self, options: StackOptions, console: StackConsole, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._options = options
        self._console = console
        self._environment = environment
        self._folder = StackFolder(options.data_dir)
        self._ports = PortReservations()
        self._supervisor = Supervisor(console)
        self._bricks: LocalBricks | None = None
        self._nodes: dict[str, Child] = {}
        self._api: Child | None = None
        self._pointer = Pointer(pointer_dir(environment))
        self._given_api_port: int | None = None
        self.ready: Ready | None = None

    @property
    def data_dir(self) -> Path:
        return self._folder.path

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(self._nodes)

    def start(self) -> Ready:
        """Starts all components and returns once all answer.

        Raises:
            SettingsWrong: A setting is wrong.
            StackFailed: A component could not be started. Call `stop` in both cases.
        """
        begun = time.monotonic()
        # Wrong settings are reported before anything is started.
        endpoints, self._given_api_port = given_endpoints(self._environment), given_api_port(self._environment)
        self._folder.take()
        if not endpoints.all_given:
            require_local_extra()
        bricks = self._bricks = LocalBricks(endpoints, self._folder, self._console)
        bricks.start()
        for name, where in (("kafka", endpoints.kafka), ("dynamodb", endpoints.dynamodb)):
            if where is not None:
                self._console.show(ComponentReady(component=name, seconds=0, where=where, note="from your settings"))
        wiring = self._wire(
            kafka=endpoints.kafka or (bricks.kafka.bootstrap_servers if bricks.kafka else ""),
            dynamodb=endpoints.dynamodb or (bricks.dynamodb.endpoint if bricks.dynamodb else ""),
            local_kafka=bricks.kafka is not None,
            local_dynamodb=bricks.dynamodb is not None,
        )
        self._initialise(wiring)
        wiring = self._start_children(wiring)
        ready = self._announce(wiring, time.monotonic() - begun)
        for brick in bricks.started:
            self._supervisor.watch(SupervisedBrick(brick))
        for child in (*self._nodes.values(), self._started_api()):
            self._supervisor.watch(child)
        return ready

    def check(self) -> None:
        """Restarts crashed components; call it a few times a second."""
        self._supervisor.check()

    def kill_node(self, name: str) -> int | None:
        """Kills a node with SIGKILL and never restarts it. Returns its process id."""
        node = self._nodes[name]
        self._supervisor.release(name)
        pid = node.pid
        node.kill()
        return pid

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Drains nodes and API, stops the local servers, and reports the data that stay. Also works after a failed start.

        Args:
            hurry: Called during the drain; True kills everything at once.
        """
        begun = time.monotonic()
        if self.ready is not None:
            text = (
                "Draining: nodes finish their writes and hand over their shards (press Ctrl-C again to stop at once)."
            )
            self._console.show(Stopping(text=text))
            self._pointer.remove()
        self._drain(list(self._nodes.values()), NODE_DRAIN_S, hurry)
        self._drain([self._api] if self._api is not None else [], API_DRAIN_S, hurry)
        if self._bricks is not None and self._bricks.started:
            stop_together(self._bricks.started)
        kept = self._settle_programs()
        self._folder.release()
        self._ports.release()
        if self.ready is not None:
            self._console.show(Stopped(seconds=time.monotonic() - begun, kept=kept))

    def _wire(self, kafka: str, dynamodb: str, local_kafka: bool, local_dynamodb: bool) -> Wiring:
        api_port = self._port("api", self._usual_api_port())
        self._folder.remember(api_port)
        numbers = range(1, self._options.nodes + 1)
        node_ports = [self._port(f"node-{number}", NODE_PORT + number - 1) for number in numbers]
        return Wiring(
            kafka,
            dynamodb,
            local_kafka,
            local_dynamodb,
            api_port,
            tuple(node_ports),
            self._folder,
            self._options.settings,
        )

    def _usual_api_port(self) -> int:
        # Programs that outlived the last stack still report to its port.
        return self._given_api_port or self._folder.earlier_api_port or API_PORT

    def _port(self, component: str, usual: int) -> int:
        port = self._ports.choose(usual)
        if port != usual:
            self._console.show(Notice(component=component, text=f"port {usual} is taken; {component} uses {port}"))
        return port

    def _initialise(self, wiring: Wiring) -> None:
        begun = time.monotonic()
        plan = ChildPlan("init", (*TIDEGATE, "init"), wiring.init_environment(), self._folder.log("init"))
        run_to_end(plan, INIT_TIMEOUT_S)
        took = time.monotonic() - begun
        where = "tables, topics and the partition map exist"
        self._console.show(ComponentReady(component="init", seconds=took, where=where, log=str(plan.log)))

    def _start_children(self, wiring: Wiring) -> Wiring:
        """Starts nodes and API. Returns the wiring with the ports of the nodes."""
        plans = NodePlans(wiring, self._console)
        for number in range(1, self._options.nodes + 1):
            self._nodes[f"node-{number}"] = Child(plans.plan(number), partial(plans.plan, number))
        url = f"{wiring.api_url}/readyz"
        plan = ChildPlan("api", (*TIDEGATE, "api"), wiring.api_environment(), self._folder.log("api"), url)
        self._api = Child(plan)
        children = [*self._nodes.values(), self._api]
        for child in children:
            child.start()
        self._await_ready(children)
        return plans.wiring

    def _await_ready(self, children: list[Child]) -> None:
        begun = time.monotonic()
        waiting = list(children)
        while waiting:
            for child in [child for child in waiting if child.ready]:
                waiting.remove(child)
                took = time.monotonic() - begun
                where = child.plan.ready_url.removesuffix("/readyz")
                self._console.show(
                    ComponentReady(component=child.name, seconds=took, where=where, log=str(child.plan.log))
                )
            for child in waiting:
                if not child.running:
                    raise ended_early(child, "ended")
            if waiting and time.monotonic() - begun > READY_TIMEOUT_S:
                raise StackFailed(
                    f"{waiting[0].name} is not ready after {READY_TIMEOUT_S:g} s; its log {waiting[0].log} ends with:\n"
                    f"{waiting[0].last_words()}"
                )
            time.sleep(READY_POLL_INTERVAL_S)

    def _announce(self, wiring: Wiring, seconds: float) -> Ready:
        ready = Ready(
            seconds=round(seconds, 2),
            api_url=wiring.api_url,
            kafka=wiring.kafka,
            dynamodb=wiring.dynamodb,
            data_dir=str(self._folder.path),
            ephemeral=self._folder.ephemeral,
            folder=current_folder(),
            nodes=tuple(wiring.node_url(number) for number in range(1, self._options.nodes + 1)),
            pid=os.getpid(),
        )
        # Set before the announcement: a user may press Ctrl-C as soon as the line is visible, and `stop` checks this.
        self.ready = ready
        if self._options.announced:
            self._point_to(ready)
        self._console.show(ready)
        return ready

    def _point_to(self, ready: Ready) -> None:
        folder = pointer_dir(self._environment)
        others = running_stacks(folder)
        try:
            self._pointer.write(ready)
        except OSError as error:
            text = f"{folder} cannot be written ({error}), so other commands do not find this stack; use --api {ready.api_url}"
            self._console.show(Notice(component="dev", text=text))
            return
        if others:
            is_alone_here = all(other.folder != ready.folder for other in others)
            which = f"commands in {ready.folder} use this one" if is_alone_here else "one was started from this folder"
            text = f"other local stacks run ({', '.join(other.api_url for other in others)}): {which}; elsewhere use --api {ready.api_url}"
            self._console.show(Notice(component="dev", text=text))

    def _started_api(self) -> Child:
        assert self._api is not None
        return self._api

    def _drain(self, children: list[Child], timeout_s: float, hurry: Callable[[], bool]) -> None:
        """Sends SIGTERM to all, and SIGKILL to the processes that still run after `timeout_s`."""
        for child in children:
            child.terminate()
        deadline = time.monotonic() + timeout_s
        while any(child.running for child in children) and time.monotonic() < deadline and not hurry():
            time.sleep(DRAIN_POLL_S)
        for child in children:
            if child.running and not hurry():
                self._console.show(Notice(component=child.name, text=f"did not end within {timeout_s:g} s, killed"))
            child.close()

    def _settle_programs(self) -> tuple[str, ...]:
        """Ends the programs whose data are removed. Returns sentences about the data and programs that stay."""
        programs = open_programs(self._folder.runs)
        if self._folder.ephemeral:
            end_programs(programs)
            ended = (f"{_counted(programs)} that still ran: ended.",) if programs else ()
            return (*ended, f"Nothing is kept: {self.data_dir} is removed.")
        going_on = (
            (f"{_counted(programs)} still running; `tidegate dev` finds them again if it starts within 5 minutes.",)
            if programs
            else ()
        )
        return (*going_on, f"Kept: schedules, runs and logs in {self.data_dir}. `tidegate dev` continues with them.")


def _counted(programs: Sequence[OpenProgram]) -> str:
    return f"{len(programs)} program{'' if len(programs) == 1 else 's'}"
