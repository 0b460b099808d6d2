"""Generates the reference of the public formats from the models: JSON Schemas, and the page `docs/fields.md`.

`make schemas` writes both; a test fails if the committed files differ. On the page, names, defaults and bounds come from the
JSON Schema, meanings from the docstrings of the models.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.events.events import Event
from tidegate_core.language.formats.run_record import RunRecord
from tidegate_core.language.requests.receipts import Receipt
from tidegate_core.language.requests.requests import Request
from tidegate_core.language.values.document import Document

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
    """Returns the text of each schema by name, sorted and indented for readable diffs."""
    return {name: _text(*described) for name, described in _FORMATS.items()}


def _text(model: Any, mode: Literal["validation", "serialization"], title: str) -> str:
    schema = TypeAdapter(model).json_schema(mode=mode, by_alias=True)
    document = {"$schema": _DIALECT, **schema, "title": title}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


_HEAD = """# Fields of a schedule

Generated from the models. [schedules.md](schedules.md) explains the fields by examples;
[schemas/schedule.json](schemas/schedule.json) is the same reference for programs.
"""
_ENTRY = re.compile(r"^ {4}([\w, ]+): (.*)$")
_UNSAID: Mapping[str, str] = {
    "type": "Kind.",
    "kind": "Kind of the document.",
    "namespace": "Namespace: 1 to 128 of a-z 0-9 - _ . that begin with a letter or digit.",
    "name": "Name that is unique within the namespace, of the same characters.",
    "start": "First instant that counts.",
    "end": "First instant that no longer counts.",
    "dst_gap": "Rule for a local time that a clock change skips; `shift` by default.",
    "dst_overlap": "Pass of a repeated local time that counts; `first` by default.",
    "on_unmet": "Rule if the constraint is not met: `wait` until it is, or `abort` the job at once.",
}
"""Meanings of fields that have none in their model's docstring."""


def field_tables() -> str:
    """Returns the page: a table for the schedule, then a table for each part by name."""
    schema = ScheduleSpec.model_json_schema(mode="validation", by_alias=True)
    models = {model.__name__: model for model in _models(Document)}
    parts = {"ScheduleSpec": schema, **schema["$defs"]}
    sections = (_section(models[name], part) for name, part in parts.items())
    return "\n".join([_HEAD, *sections])


def _models(base: type[Document]) -> Iterator[type[Document]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def _section(model: type[Document], schema: Mapping[str, Any]) -> str:
    meanings = _meanings(model)
    required = schema.get("required", ())
    rows = [
        f"| `{name}` | {_type(field)} | {_default(name, field, required)} | {_meaning(name, meanings)} |"
        for name, field in schema["properties"].items()
    ]
    about = _docstring(model).partition("\n")[0]
    return "\n".join(
        [f"## {model.__name__}", "", about, "", "| field | value | default | meaning |", "|---|---|---|---|", *rows, ""]
    )


def _meaning(name: str, meanings: Mapping[str, str]) -> str:
    return (meanings.get(name) or _UNSAID.get(name) or "").replace("|", "\\|")


def _meanings(model: type[Document]) -> dict[str, str]:
    """Returns the meanings of a model's fields, from the docstrings of the model and its base classes."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, Document):
            found.update(_attributes(_docstring(each)))
    aliases = {name: field.alias for name, field in model.model_fields.items() if field.alias}
    return {aliases.get(name, name): text for name, text in found.items()}


def _docstring(model: type[Document]) -> str:
    first, _, rest = (model.__doc__ or "").partition("\n")
    return f"{first}\n{textwrap.dedent(rest)}"


def _attributes(docstring: str) -> dict[str, str]:
    found: dict[str, str] = {}
    names: list[str] = []
    for line in docstring.partition("Attributes:\n")[2].splitlines():
        entry = _ENTRY.match(line)
        if entry is not None:
            names = [name.strip() for name in entry[1].split(",")]
            found.update(dict.fromkeys(names, entry[2]))
        elif line.strip():
            found.update({name: f"{found[name]} {line.strip()}" for name in names})
    return found


def _default(name: str, field: Mapping[str, Any], required: Any) -> str:
    if name in required:
        return "required"
    default = field.get("default")
    if default is None or default in ([], {}):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _type(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        return _link(field["$ref"])
    options = [each for each in field.get("anyOf", field.get("oneOf", ())) if each.get("type") != "null"]
    if options:
        return " or ".join(dict.fromkeys(_type(each) for each in options))
    for word in ("enum", "const"):
        if word in field:
            return ", ".join(f"`{choice}`" for choice in (field[word] if word == "enum" else [field[word]]))
    match field.get("type"):
        case "array":
            return f"list of {_type(field['items'])}" + _bounds(field, "minItems", "maxItems")
        case "object":
            return "mapping" + _bounds(field, "minProperties", "maxProperties")
        case "integer" | "number" as kind:
            number = "whole number" if kind == "integer" else "number"
            return number + _bounds(field, "minimum", "maximum")
        case "boolean":
            return "true or false"
        case "string":
            example = next(iter(field.get("examples", ())), None)
            return "text" if example is None else f"text such as `{example}`"
        case [*kinds]:
            return " or ".join("text" if kind == "string" else str(kind) for kind in kinds)
        case _:
            return "anything"


def _bounds(field: Mapping[str, Any], least: str, most: str) -> str:
    if least in field and most in field:
        return f", {field[least]:,} to {field[most]:,}"
    if most in field:
        return f", at most {field[most]:,}"
    return f", at least {field[least]:,}" if least in field else ""


def _link(reference: str) -> str:
    name = reference.rpartition("/")[2]
    return f"[{name}](#{name.lower()})"
