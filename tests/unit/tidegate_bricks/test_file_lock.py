"""At most one holder; a child that inherits the lock holds it too."""

import os
from pathlib import Path

import pytest

from tidegate_bricks import file_lock
from tidegate_bricks.file_lock import POLL_INTERVAL_S, FileLock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "the.lock"


def test_given_free_lock_then_it_is_ours_and_its_folder_is_made(path: Path) -> None:
    with FileLock(path) as lock:
        assert lock.acquire(timeout_s=0)


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_given_held_lock_then_another_waits_in_vain(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, waits = Clock(), list[float]()
    monkeypatch.setattr(file_lock, "time", clock)
    with FileLock(path) as holder, FileLock(path) as other:
        assert holder.acquire(timeout_s=0)
        assert not other.acquire(timeout_s=1.5 * POLL_INTERVAL_S, on_wait=lambda: waits.append(clock.now))
    assert waits == [0.0, POLL_INTERVAL_S]


def test_given_holder_lets_go_while_another_waits_then_that_one_gets_it(path: Path) -> None:
    with FileLock(path) as holder, FileLock(path) as other:
        assert holder.acquire(timeout_s=0)
        assert other.acquire(timeout_s=30, on_wait=holder.release)


def test_given_waiting_is_given_up_then_lock_can_be_had_later(path: Path) -> None:
    def give_up() -> None:
        raise KeyboardInterrupt

    with FileLock(path) as holder, FileLock(path) as other:
        assert holder.acquire(timeout_s=0)
        with pytest.raises(KeyboardInterrupt):
            other.acquire(timeout_s=30, on_wait=give_up)
        holder.release()
        assert other.acquire(timeout_s=0)


def test_given_inherited_descriptor_then_release_does_not_free_the_lock(path: Path) -> None:
    with FileLock(path) as holder, FileLock(path) as other:
        assert holder.acquire(timeout_s=0)
        inherited = os.dup(holder.descriptor)
        holder.release()
        assert not other.acquire(timeout_s=0)
        os.close(inherited)
        assert other.acquire(timeout_s=0)
