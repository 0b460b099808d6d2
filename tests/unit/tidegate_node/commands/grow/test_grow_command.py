"""`tidegate partitions grow` as a process: its exit codes."""

from __future__ import annotations

import pytest

from tidegate_node import bootstrap
from tidegate_node.commands.grow import grow_command
from tidegate_node.commands.grow.partition_growth import NumberRefused


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        pytest.param(NumberRefused("there are never fewer"), 2, id="a number that cannot be"),
        pytest.param(bootstrap.StartRefused("another cluster's topic"), 78, id="settings"),
        pytest.param(bootstrap.NotYet("the broker does not answer"), 75, id="not now"),
    ],
)
def test_given_a_refusal_then_the_exit_code_says_whether_the_input_is_wrong_or_the_cluster_not_ready(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], refusal: Exception, code: int
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise refusal

    monkeypatch.setattr(bootstrap, "load", lambda: None)
    monkeypatch.setattr(bootstrap, "grown", refused)
    assert grow_command.run(3) == code
    assert capsys.readouterr().err.startswith(f"tidegate: {refusal}")
