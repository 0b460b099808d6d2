from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Launch


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    return LocalSettings(data_dir=tmp_path / "data", host="node-1", python="/opt/python")


@pytest.fixture
def folder(settings: LocalSettings) -> RunFolder:
    made = RunFolder.within(settings.data_dir, "0007-abc", 2)
    made.make()
    return made


@pytest.fixture
def a_launch(tmp_path: Path) -> Callable[..., Launch]:
    script = tmp_path / "job.py"
    script.write_text("print('ran')", encoding="utf-8")
    launch = Launch(
        run_id="0007-abc",
        attempt=2,
        program_type="python",
        file=str(script),
        args=("--day", "2013-01-01"),
        conf={},
        context={
            "schedule": {"namespace": "flights", "name": "join-day"},
            "nominal": "2026-03-03T05:00:00Z",
            "interval": {"start": "2026-03-02T05:00:00Z", "end": "2026-03-03T05:00:00Z"},
            "correlation": "2013-01-01",
        },
        gate_url="http://127.0.0.1:8080",
        token="secret-of-the-test",
    )

    def build(**changes: object) -> Launch:
        return replace(launch, **changes)  # type: ignore[arg-type] # the tests' own keywords

    return build
