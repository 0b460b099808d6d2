"""Keys of items are spelled in one module, so that a reader finds every use of a prefix by its name."""

from __future__ import annotations

import re
from pathlib import Path

LITERAL = re.compile(
    r"""f?"[A-Z]{1,5}\#["{] | "(?:LEASE|PROGRESS|HELD|LIMIT|MAP|SCHEMA)"\) | "IX\# | kind="[A-Z]" | \.kind[ ]==[ ]"[A-Z]\"""",
    re.VERBOSE,
)
RATE_TEXT = "shared/tidegate_core/writes/rate_counters.py"
"""Spells how a run names an admission in a rate; that text is no key."""


def test_given_the_sources_then_only_the_module_of_keys_spells_one(root: Path) -> None:
    found = {
        str(path.relative_to(root))
        for folder in ("shared", "services")
        for path in (root / folder).rglob("*.py")
        if LITERAL.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"shared/tidegate_core/rows/keys.py", RATE_TEXT}
