"""`docs/reasons.md`, made of the list of codes; a test says when the file is not this text."""

from __future__ import annotations

from tidegate_core.why.codes import FAMILIES

_HEAD = """\
# Reason codes

What `tidegate why <namespace>/<name> [--at TIME]` and `tidegate why <job or run>` answer with: a closed list. Each reason carries words, the
values that were used (`-o json`), and the next instant at which it can change, where one is known. How to ask:
[schedules.md](schedules.md#why). This page is made of `shared/tidegate_core/why/codes.py`; the test
`tests/unit/tidegate_core/why/test_golden.py` has a story for each code.
"""


def reasons_page() -> str:
    """Returns the page as Markdown."""
    parts = [_HEAD]
    for title, family in FAMILIES.items():
        rows = "".join(f"| `{code}` | {meaning} |\n" for code, meaning in family.items())
        parts.append(f"## {title}\n\n| code | meaning |\n|---|---|\n{rows}")
    return "\n".join(parts)
