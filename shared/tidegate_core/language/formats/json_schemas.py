"""JSON Schemas of the public formats, generated from the models (SEMANTICS 18).

`make schemas` writes them anew; a test fails when the committed ones differ.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.events.events import Event
from tidegate_core.language.formats.run_record import RunRecord
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.language.requests.requests import Request

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FORMATS: dict[str, tuple[Any, Literal["validation", "serialization"], str]] = {
    "schedule": (
        ScheduleSpec,
        "validation",
        "A schedule, as a file for `tidegate schedule apply` and as a request's spec",
    ),
    "source": (
        SourceSpec,
        "validation",
        "A source, as a file for `tidegate source apply` and as a request's spec",
    ),
    "request": (
        Annotated[Request, Field(discriminator="type")],
        "validation",
        "The value of a record on tidegate.requests",
    ),
    "event": (Event, "validation", "The value of a record on tidegate.events"),
    "receipt": (Receipt, "serialization", "The value of a record on tidegate.receipts, and the API's answer"),
    "run": (RunRecord, "serialization", "The value of a record on tidegate.runs"),
}


def schemas() -> dict[str, str]:
    """Returns the text of each schema by its name, sorted and indented so that changes read well."""
    return {name: _text(*described) for name, described in _FORMATS.items()}


def _text(model: Any, mode: Literal["validation", "serialization"], title: str) -> str:
    schema = TypeAdapter(model).json_schema(mode=mode, by_alias=True)
    document = {"$schema": _DIALECT, **schema, "title": title}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
