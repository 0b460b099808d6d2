"""Commands whose requests the store never takes, as those of tables that somebody else made: a sentence, and no traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import pytest

from tidegate_node import bootstrap
from tidegate_node.commands import init_command
from tidegate_node.commands.audit import audit_command
from tidegate_node.commands.grow import grow_command
from tidegate_node.commands.migrate import migrate_command
from tidegate_ports.store import StoreRequestInvalid

REFUSAL = "ValidationException: The provided key element does not match the schema"


class ForeignTables:
    """A store whose tables have other keys: whatever is asked of them is refused for good."""

    def get(self, *_: object) -> NoReturn:
        raise StoreRequestInvalid(REFUSAL)


@pytest.fixture(autouse=True)
def _foreign_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ForeignTables()
    monkeypatch.setattr(bootstrap, "load", lambda: None)
    monkeypatch.setattr(bootstrap, "initialise", lambda *_, **__: store.get())
    monkeypatch.setattr(bootstrap, "grown", lambda *_, **__: store.get())
    monkeypatch.setattr(bootstrap, "migrated", lambda _: (store, None))
    monkeypatch.setattr(bootstrap, "audited", lambda _: (store, None, "tidegate.requests.dlq"))


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(init_command.run, id="init"),
        pytest.param(lambda: grow_command.run(8), id="partitions grow"),
        pytest.param(migrate_command.run, id="migrate"),
        pytest.param(audit_command.run, id="audit"),
    ],
)
def test_given_tables_of_somebody_else_then_78_says_what_the_store_refuses(
    run: Callable[[], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 78
    out, err = capsys.readouterr()
    assert out == ""
    assert REFUSAL in err
    assert "created by `tidegate init`" in err
