"""How the nodes of a stack are started, each time anew: a port that was free for the last start may be somebody else's by now."""

from __future__ import annotations

from tidegate_cli.dev.child import TIDEGATE, ChildPlan
from tidegate_cli.dev.console import StackConsole
from tidegate_cli.dev.environment import Wiring, choose_port
from tidegate_cli.dev.events import Notice


class NodePlans:
    """The plans of one stack's nodes.

    A node that has fallen leaves its usual port free until it is back, and another stack that starts just then takes it.
    Nobody depends on a node's port (programs speak to the API), so the node moves instead of failing until that stack ends.

    Attributes:
        wiring: With the ports that the nodes have now.
    """

    def __init__(self, wiring: Wiring, console: StackConsole) -> None:
        self.wiring = wiring
        self._console = console

    def plan(self, number: int) -> ChildPlan:
        """Returns how to start node `number`, counted from 1, now. Raises StackFailed."""
        name = f"node-{number}"
        own = self.wiring.node_ports[number - 1]
        spoken_for = frozenset({self.wiring.api_port, *self.wiring.node_ports}) - {own}
        port = choose_port(own, spoken_for)
        if port != own:
            self._console.show(Notice(component=name, text=f"port {own} was taken meanwhile, it uses {port}"))
            self.wiring = self.wiring.with_node_port(number, port)
        url = f"{self.wiring.node_url(number)}/readyz"
        log = self.wiring.folder.log(name)
        return ChildPlan(name, (*TIDEGATE, "node"), self.wiring.node_environment(number), log, url)
