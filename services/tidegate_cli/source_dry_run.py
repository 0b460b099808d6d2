"""Dry run of an event source.

The API has none. So the fields are checked here by the rules of the nodes, and compared with the stored source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidegate_client.errors import Conflict, InvalidRequest, NotFound
from tidegate_client.views import DryRun, FieldProblem
from tidegate_core.language.formats.parsing import parse_source
from tidegate_core.language.values.problems import InvalidInput

if TYPE_CHECKING:
    from tidegate_client import Client


def try_source(api: Client, spec: Mapping[str, Any], expected_version: int | None) -> DryRun:
    """Returns the effect of an apply, and changes nothing. Only nodes can check whether the topic exists and may be read.

    Raises:
        InvalidRequest: Fields are wrong.
        Conflict: The stored source has another version than expected.
    """
    try:
        wanted = parse_source(spec)
    except InvalidInput as refusal:
        problems = [FieldProblem(field=each.field, problem=each.problem, hint=each.hint) for each in refusal.problems]
        raise InvalidRequest("the source has to be corrected", problems) from refusal
    namespace, name = wanted.namespace, wanted.name
    try:
        view = api.source(namespace, name)
    except NotFound:
        view = None
    version = 0 if view is None else view.version
    if expected_version is not None and expected_version != version:
        raise Conflict(f"source {namespace}/{name} is at version {version}, not at {expected_version}")
    if view is None:
        return DryRun(namespace=namespace, name=name, would="create")
    before, after = parse_source(view.spec).model_dump(mode="json"), wanted.model_dump(mode="json")
    changed = sorted(field for field in before.keys() | after.keys() if before.get(field) != after.get(field))
    return DryRun(
        namespace=namespace, name=name, would="replace" if changed else "unchanged", version=version, changed=changed
    )
