"""How often the interpreter looks for cycles of objects that nobody needs: seldom, and never among what is there for good.

Each message that waits for its time is some objects that live for a minute or more, and a burst makes all of its own at once. With
the interpreter's own thresholds two thirds of a burst's CPU went into looking through them, again and again, for cycles that are
not there: what fires is freed by its reference counts.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (50_000, 10, 10)
"""More objects than these since the last look (the interpreter's own: 700). A look at so many takes some 5 ms; what cycles hold
meanwhile is some 20 MB at most."""


@contextmanager
def seldom_looked_for() -> Iterator[None]:
    """For a process's life: what exists when this begins (modules, classes, clients) is not looked at any more."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
