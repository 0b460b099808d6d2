"""Parses the bodies of operator requests: actor, reason, and one flag."""

from __future__ import annotations

from typing import Any, Final

from tidegate_core.language.values.problems import InvalidInput, Problem

TEXT_CHARACTERS_MAX: Final = 1_024


def asked(document: dict[str, Any], flag: str) -> tuple[str | None, str | None, bool]:
    """Returns actor, reason and the flag. Raises InvalidInput with all problems."""
    known = ("actor", "reason", flag)
    problems = [
        Problem(name, "is not a field of this request", ", ".join(known))
        for name in sorted(document.keys() - set(known))
    ]
    actor, reason, is_set = document.get("actor"), document.get("reason"), document.get(flag, False)
    for name, value in (("actor", actor), ("reason", reason)):
        if not (value is None or (isinstance(value, str) and len(value) <= TEXT_CHARACTERS_MAX)):
            problems.append(Problem(name, f"is no text of at most {TEXT_CHARACTERS_MAX:,} characters"))
    if not isinstance(is_set, bool):
        problems.append(Problem(flag, "is neither true nor false"))
    if problems:
        raise InvalidInput(problems)
    return actor, reason, is_set
