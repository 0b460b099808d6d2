"""Starts several bricks concurrently, all or none, downloads included."""

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from tidegate_bricks.local_server import START_TIMEOUT_S, Brick


def start_together(bricks: Sequence[Brick], timeout_s: float = START_TIMEOUT_S) -> list[float]:
    """Starts bricks concurrently; returns the seconds that each took, its download included.

    If one fails, or Ctrl-C comes, all others are stopped at once, also those that are still starting.

    Raises:
        BrickUnavailable: See `Brick.start`.
        BrickFailed: See `Brick.start`.
    """
    try:
        return _started_together(bricks, timeout_s)
    except BaseException:
        # Stop again now that all calls have returned: a start may have begun just after the first stop.
        stop_together(bricks)
        raise


def stop_together(bricks: Sequence[Brick]) -> None:
    """Stops bricks concurrently."""
    with ThreadPoolExecutor(max_workers=len(bricks)) as pool:
        for stop in [pool.submit(brick.stop) for brick in bricks]:
            stop.result()


def _started_together(bricks: Sequence[Brick], timeout_s: float) -> list[float]:
    with ThreadPoolExecutor(max_workers=len(bricks)) as pool:
        starts = [pool.submit(_timed_start, brick, timeout_s) for brick in bricks]
        try:
            done, _ = wait(starts, return_when=FIRST_EXCEPTION)
            for start in done:
                start.result()
        except BaseException:
            # Leaving the pool waits for every start, so the running ones must be stopped first.
            stop_together(bricks)
            raise
    return [start.result() for start in starts]


def _timed_start(brick: Brick, timeout_s: float) -> float:
    begin = time.monotonic()
    brick.start(timeout_s)
    return time.monotonic() - begin
