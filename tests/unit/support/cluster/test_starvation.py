"""How much longer the work of processes took because they waited for a core."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cluster.cpu_starvation import Starvation


def _threads(proc: Path, pid: int, **times: tuple[int, int]) -> None:
    for thread, (ran, waited) in times.items():
        folder = proc / str(pid) / "task" / thread.removeprefix("t")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedstat").write_text(f"{ran} {waited} 7\n", encoding="ascii")


def test_given_threads_waited_for_cores_then_the_work_is_stretched_by_what_they_waited_since_the_begin(
    tmp_path: Path,
) -> None:
    _threads(tmp_path, 1, t10=(1_000, 9_000), t11=(500, 500))
    _threads(tmp_path, 2, t20=(0, 0))
    starvation = Starvation([1, 2], tmp_path)
    _threads(tmp_path, 1, t10=(2_000, 9_500), t12=(1_000, 2_000))
    _threads(tmp_path, 2, t20=(2_000, 3_500))

    assert starvation.stretch() == pytest.approx(1 + (500 + 2_000 + 3_500) / (1_000 + 1_000 + 2_000))
