"""Load of the node's own host (source `local`): cpu and memory, as shares of the capacity."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tidegate_ports.load_sampler import LoadUnavailable

MEMORY: Final = Path("/proc/meminfo")


class HostLoad:
    """Reads memory on Linux only.

    Args:
        memory: File with the kernel's memory figures; tests use another one.
    """

    def __init__(self, memory: Path = MEMORY) -> None:
        self._memory = memory

    def sample(self, resource: str) -> float:
        match resource:
            case "cpu":
                return self._cpu()
            case "memory":
                return self._memory_used()
            case _:
                raise LoadUnavailable(f"local has no {resource}; it has cpu and memory")

    def _cpu(self) -> float:
        """Returns the runnable processes of the last minute per processor; above 1 some of them wait."""
        try:
            return os.getloadavg()[0] / (os.cpu_count() or 1)
        except OSError as failure:
            raise LoadUnavailable(f"the host does not report its load: {failure}") from failure

    def _memory_used(self) -> float:
        try:
            lines = self._memory.read_text(encoding="ascii").splitlines()
            kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
            return 1 - kilobytes["MemAvailable"] / kilobytes["MemTotal"]
        except (OSError, ValueError, KeyError, IndexError, ZeroDivisionError) as failure:
            raise LoadUnavailable(f"{self._memory} does not report the used memory: {failure!r}") from failure
