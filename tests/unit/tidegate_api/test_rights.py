"""The rights at the brokers that `docs/security.md` gives an API process: none for what it has no code for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
ROW = re.compile(r"^\| `api` \| (?:topic|group) \| `tidegate[^`]*` \| ([A-Za-z, ]+) \|", re.MULTILINE)
ASKING = ("tidegate_kafka.admin.topic_provisioning", "tidegate_kafka.group.group_session")
"""What asks for configurations, of topics and of groups."""


def test_given_an_api_then_it_has_no_right_to_configurations_and_no_code_that_asks_for_them() -> None:
    rights = {right for row in ROW.findall(PAGE.read_text(encoding="utf-8")) for right in row.split(", ")}
    assert rights == {"Read", "Write", "Describe"}
    look = f"import sys, tidegate_api.bootstrap; sys.exit(any(name in sys.modules for name in {ASKING}))"
    assert subprocess.run([sys.executable, "-c", look], timeout=150, check=False).returncode == 0
