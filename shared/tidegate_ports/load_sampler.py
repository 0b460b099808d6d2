"""Port to load figures: of the host itself, or of a metrics system that the node's settings name."""

from __future__ import annotations

from typing import Protocol


class LoadUnavailable(Exception):
    """The value is not available now; the text says why."""


class SourceSilent(LoadUnavailable):
    """No value of the source is available now, whichever resource is sampled."""


class LoadSampler(Protocol):
    """One source of load figures. Blocking, with its own time-out; called in a thread."""

    def sample(self, resource: str) -> float:
        """Returns the present value of a resource.

        Raises:
            LoadUnavailable: The value is not available, or the source has no such resource.
            SourceSilent: No value of this source is available.
        """
        ...
