"""The OpenAPI description. `python -m tidegate_api.openapi docs/openapi.json` writes it without Kafka or DynamoDB.

Routes take request bodies raw, because the core's parsers check them and name every problem with its remedy. So this module adds
the schemas of these bodies, from the same models.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from tidegate_client.views import ProblemView
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.requests.requests import REQUEST_TYPES

REF = "#/components/schemas/{model}"
JSON = "application/json"
PROBLEM = "application/problem+json"

RECEIPT = "ReceiptView"
RECEIPTS = frozenset({RECEIPT, f"Page_{RECEIPT}_"})
"""Models that answer requests: a receipt, or a list of receipts."""
VERSIONED = frozenset({RECEIPT, "ScheduleView", "SourceView"})
ETAG = {
    "description": 'The version, such as "3", for If-Match; missing if the object has no version',
    "schema": {"type": "string"},
}
LOCATION = {
    "description": "URL of the receipt; for a list, of the first pending receipt",
    "required": True,
    "schema": {"type": "string", "format": "uri-reference"},
}

MODELS: tuple[type, ...] = (ScheduleSpec, SourceSpec, *REQUEST_TYPES.values(), DataPartitionEvent, CustomEvent)
"""Models of request bodies."""


def ref(name: str) -> dict[str, str]:
    return {"$ref": REF.format(model=name)}


def body(schema: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    """Returns the description of the body of a route that reads its body raw."""
    return {"requestBody": {"required": required, "content": {JSON: {"schema": schema}}}}


def fields(*names: str) -> dict[str, Any]:
    """Returns the schema of an object with optional text fields."""
    return {"type": "object", "additionalProperties": False, "properties": {name: {"type": "string"} for name in names}}


def with_fields(schema: dict[str, Any], **more: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of an object with further properties."""
    return {**schema, "properties": {**schema["properties"], **more}}


def describe(app: FastAPI) -> None:
    """Completes `/openapi.json`: adds the schemas of raw bodies, and problem documents for all errors."""
    generate = app.openapi

    def whole() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = completed(generate())
        return app.openapi_schema

    app.openapi = whole  # type: ignore[method-assign]  # FastAPI's own way to extend the description


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the description with the schemas of bodies and problems. FastAPI's error schemas are removed, because no route uses them."""
    # `Any`, because mypy does not accept a tuple of differently typed models.
    wanted: Any = [*((model, "validation") for model in MODELS), (ProblemView, "serialization")]
    _, generated = models_json_schema(wanted, ref_template=REF)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(generated.get("$defs", {}))
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for operations in document["paths"].values():
        for method, operation in operations.items():
            operation["responses"].pop("422", None)
            _add_receipts(method, operation["responses"])
            operation["responses"]["default"] = {
                "description": "Error",
                "content": {PROBLEM: {"schema": ref("ProblemView")}},
            }
    return document


def _add_receipts(method: str, responses: dict[str, Any]) -> None:
    """Adds the common parts of routes with a receipt: the answer 202, and the headers."""
    schema = responses["200"]["content"].get(JSON, {}).get("schema", {})
    forms = {form["$ref"].rpartition("/")[2]: form for form in schema.get("anyOf", [schema]) if "$ref" in form}
    receipts = [form for name, form in forms.items() if name in RECEIPTS]
    # A GET of a receipt has no ETag: the changed object may have a newer version.
    if VERSIONED & forms.keys() and not (method == "get" and receipts):
        responses["200"]["headers"] = {"ETag": ETAG}
    if receipts:
        responses["202"] = {
            "description": "The request is stored and has no answer so far: the receipt, or one of the list, has status `pending`",
            "headers": {"Location": LOCATION},
            "content": {JSON: {"schema": receipts[0] if len(receipts) == 1 else {"anyOf": receipts}}},
        }


def document() -> dict[str, Any]:
    """Returns the description of all routes."""
    from tidegate_api.app import API_VERSION, DESCRIPTION, TITLE, add_routes

    app = FastAPI(title=TITLE, version=API_VERSION, description=DESCRIPTION)
    add_routes(app)
    return app.openapi()


def text() -> str:
    """Returns the text of the committed file, sorted and indented for readable diffs."""
    return json.dumps(document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Writes the description to the given file."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tidegate_api.openapi FILE\n")
        return 2
    Path(arguments[0]).write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
