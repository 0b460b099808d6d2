from __future__ import annotations

from pathlib import Path

import pytest

from tidegate_cli.dev.options import StackOptions, default_data_dir

HOME = Path.home()


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        pytest.param({}, HOME / ".local/share/tidegate/dev", id="the usual place"),
        pytest.param({"XDG_DATA_HOME": "/data"}, Path("/data/tidegate/dev"), id="as the user's desktop has it"),
        pytest.param({"XDG_DATA_HOME": "data"}, HOME / ".local/share/tidegate/dev", id="relative ones do not count"),
    ],
)
def test_given_an_environment_then_data_lie_where_it_says(environment: dict[str, str], folder: Path) -> None:
    assert default_data_dir(environment) == folder


@pytest.mark.parametrize("nodes", [0, 9])
def test_given_more_nodes_than_topic_partitions_or_none_then_it_is_refused(nodes: int) -> None:
    with pytest.raises(ValueError, match="1 to 8"):
        StackOptions(data_dir=None, nodes=nodes)


def test_given_no_data_folder_then_the_stack_is_ephemeral() -> None:
    assert StackOptions(data_dir=None).ephemeral
    assert not StackOptions(data_dir=Path("/data")).ephemeral
