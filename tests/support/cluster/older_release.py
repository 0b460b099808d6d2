"""`python -m tests.support.cluster.older_release node`: this code as a release that knows rows of version 1 only (decision 26).

No release comes before 0.1.0 that could be run here. So what one could not do is taken away, before anything is imported that would
remember it: this one reads and writes version 1, its cards say so, and it does not serve on a newer store.
"""

from __future__ import annotations

import sys
from importlib import import_module
from unittest import mock

from tidegate_core.rows import schema_version

OLDER = (sys.executable, "-P", "-m", "tests.support.cluster.older_release")
READABLE = schema_version.Readable(schema_version.OLDEST, schema_version.FIRST)


def main() -> None:
    """Runs the command line of such a release."""
    copies = [
        name
        for name, module in sys.modules.items()
        if name != schema_version.__name__ and hasattr(module, "THIS_RELEASE")
    ]
    assert not copies, f"{copies} know of the newer version already"
    with (
        mock.patch.multiple(schema_version, NEWEST=READABLE.newest, THIS_RELEASE=READABLE),
        mock.patch.object(schema_version.StoreSchema.refusal, "__defaults__", (READABLE,)),
    ):
        import_module("tidegate_cli.main").main()


if __name__ == "__main__":
    main()
