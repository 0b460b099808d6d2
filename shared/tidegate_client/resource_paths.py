"""Paths of the API's resources. Names are checked first, because a slash in a name would change the path."""

from __future__ import annotations

import re

from tidegate_client.errors import InvalidRequest
from tidegate_client.views import FieldProblem
from tidegate_core.language.values.names import NAME_PATTERN, RUN_ID_PATTERN, WORDING
from tidegate_core.language.values.problems import shortened
from tidegate_core.rows.dead_letter import LETTER_ID_PATTERN

NODE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"
LIMIT_SCOPE_PATTERN = r"^(rate-)?(schedule|program|group|key)$"
LIMIT_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"
WORDINGS = {
    **WORDING,
    LETTER_ID_PATTERN: "is no letter; such as requests-3-17, as tidegate dlq list shows them",
    NODE_PATTERN: "is no node; tidegate node list shows them",
}


def schedule_path(namespace: str, name: str) -> str:
    """Returns the path of a schedule. Raises InvalidRequest with the problems of both names."""
    _check(NAME_PATTERN, namespace=namespace, name=name)
    return f"/schedules/{namespace}/{name}"


def source_path(namespace: str, name: str) -> str:
    """Raises InvalidRequest, with both names' problems."""
    _check(NAME_PATTERN, namespace=namespace, name=name)
    return f"/sources/{namespace}/{name}"


def run_path(run_id: str) -> str:
    """Raises InvalidRequest."""
    _check(RUN_ID_PATTERN, run_id=run_id)
    return f"/runs/{run_id}"


def job_path(job_id: str) -> str:
    """Raises InvalidRequest."""
    _check(RUN_ID_PATTERN, job_id=job_id)
    return f"/jobs/{job_id}"


def node_path(node: str) -> str:
    """By owner id, the beginning of one, or name. Raises InvalidRequest."""
    _check(NODE_PATTERN, node=node)
    return f"/nodes/{node}"


def letter_path(letter: str) -> str:
    """Raises InvalidRequest."""
    _check(LETTER_ID_PATTERN, letter=letter)
    return f"/dlq/{letter}"


def limit_path(limit: str) -> str:
    """By `<namespace>/<scope>/<name>`. Raises InvalidRequest."""
    namespace, _, rest = limit.partition("/")
    scope, _, name = rest.partition("/")
    fits = (
        re.fullmatch(NAME_PATTERN.removesuffix("$"), namespace, re.ASCII)
        and re.fullmatch(LIMIT_SCOPE_PATTERN.removesuffix("$"), scope, re.ASCII)
        and re.fullmatch(LIMIT_NAME_PATTERN.removesuffix("$"), name, re.ASCII)
    )
    if not fits:
        problem = f'"{shortened(limit)}" is no limit; tidegate limits list shows them'
        raise InvalidRequest(problem, [FieldProblem(field="limit", problem=problem)])
    return f"/limits/{namespace}/{scope}/{name}"


def _check(pattern: str, **names: str) -> None:
    problems = [
        FieldProblem(field=field, problem=f'"{shortened(text)}" {WORDINGS[pattern]}')
        for field, text in names.items()
        if not re.fullmatch(pattern.removesuffix("$"), text, re.ASCII)
    ]
    if problems:
        raise InvalidRequest("; ".join(map(str, problems)), problems)
