"""How busy something is, as the node asks: the host itself, or a metrics system that the node's settings name."""

from __future__ import annotations

from typing import Protocol


class LoadUnavailable(Exception):
    """The number cannot be had now; the text says why."""


class SourceSilent(LoadUnavailable):
    """Nothing at all can be had of the source now, whichever resource is asked for."""


class LoadSampler(Protocol):
    """One source. Blocking: asked in a thread, and bounded in time by itself."""

    def sample(self, resource: str) -> float:
        """Returns the present value of a resource.

        Raises:
            LoadUnavailable: It cannot be had, or the source has no such resource.
            SourceSilent: No number of this source can be had.
        """
        ...
