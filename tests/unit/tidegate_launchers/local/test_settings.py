from __future__ import annotations

from pathlib import Path

import pytest

from tidegate_launchers.local.settings import LocalSettings


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param({"poll_interval_s": 0}, "poll_interval_s", id="a loop without pause"),
        pytest.param({"submit_timeout_s": -1}, "submit_timeout_s", id="negative"),
        pytest.param({"cancel_grace_s": float("nan")}, "cancel_grace_s", id="no number"),
        pytest.param({"host": ""}, "host", id="no name"),
        pytest.param({"data_dir": Path("relative")}, "data_dir", id="relative folder"),
    ],
)
def test_given_a_value_out_of_range_then_the_field_is_named(changes: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        LocalSettings(**{"data_dir": Path("/data"), **changes})  # type: ignore[arg-type] # that is the test
