"""Settings as rows for people: name, value, unit, source and environment variable of each one.

The bootstraps of node and API make the rows; `tidegate config show` and the generator of `docs/settings.md` print them.
Reads no file and opens no connection. Secrets are masked here, so that no caller can print one.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from tidegate_ports.common.settings_loader import LoadedSettings, Place, Source, variable_of

MASK: Final = "**********"
UNITS: Final = {
    "bytes": "bytes",
    "connections": "connections",
    "kib": "KiB",
    "mib": "MiB",
    "ms": "ms",
    "partitions": "topic partitions",
    "records": "records",
    "runs": "runs",
    "s": "s",
    "schedules": "schedules",
    "shards": "shards",
    "threads": "threads",
}
"""Unit by the last word of a name; before `_max` and `_min` the word in front counts."""
_LOGIN = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting of one process.

    Attributes:
        process: `node`, `api` or `cli`.
        name: Dotted name, as in the file.
        value: JSON value in force; a secret is masked.
        unit: Unit of a number, from the name or the field's metadata; empty without one.
        source: Where the value was read.
        variable: Environment variable that sets it; keys of a map are set with the variable of the map.
        description: Meaning, from the settings class; empty where the class gives none.
    """

    process: str
    name: str
    value: Any
    unit: str
    source: str
    variable: str
    description: str = ""


def setting_rows(process: str, loaded: LoadedSettings[Any], used: Mapping[str, Any] | None = None) -> list[SettingRow]:
    """Returns a row for each setting, in the order of the class; a map gives one row for each value in it.

    Args:
        process: Name of the process.
        loaded: Settings and the sources that the loader recorded.
        used: Sections as the process passes them on, where that differs from what was loaded.
    """
    sections: dict[str, Any] = {name: getattr(loaded.settings, name) for name in type(loaded.settings).model_fields}
    sections |= used or {}
    rows = []
    for name, section in sections.items():
        field = type(loaded.settings).model_fields[name]
        described = field.description or _attributes(type(loaded.settings)).get(name, "")
        for place, value, unit, description in _leaves((name,), section, field, described):
            source = loaded.sources.get(place, Source.DEFAULT)
            # A map is one variable, wherever it stands: its keys may be any text.
            variable = variable_of(place[: 2 if _fields(section) else 1])
            rows.append(SettingRow(process, ".".join(place), value, unit, source, variable, description))
    return rows


def unit_of(name: str, field: FieldInfo | None = None) -> str:
    """Returns the unit of a field: its metadata (`json_schema_extra={"unit": ...}`), else the unit in its name, else an empty text."""
    extra = field.json_schema_extra if field else None
    if isinstance(extra, dict) and "unit" in extra:
        return str(extra["unit"])
    words = name.split("_")
    while len(words) > 1 and words[-1] in ("max", "min"):
        words.pop()
    return UNITS.get(words[-1], "")


def _leaves(
    place: Place, value: Any, field: FieldInfo | None, description: str
) -> Iterator[tuple[Place, Any, str, str]]:
    if fields := _fields(value):
        attributes = _attributes(type(value))
        for name, info in fields.items():
            described = (info.description if info else None) or attributes.get(name, "")
            yield from _leaves((*place, name), getattr(value, name), info, described)
    elif isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _leaves((*place, str(key)), each, None, description)
    else:
        yield place, _shown(value), unit_of(place[-1], field), description


def _fields(value: Any) -> dict[str, FieldInfo | None]:
    if isinstance(value, BaseModel):
        return {**type(value).model_fields}
    if dataclasses.is_dataclass(value):
        return dict.fromkeys(field.name for field in dataclasses.fields(value))
    return {}


def _shown(value: Any) -> Any:
    plain = to_jsonable_python(value, fallback=str)
    if isinstance(plain, list):
        return [_shown(each) for each in plain]
    return _LOGIN.sub(MASK, plain) if isinstance(plain, str) else plain


def _attributes(kind: type) -> dict[str, str]:
    """Returns the descriptions under `Attributes:` of the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        _, _, text = inspect.cleandoc(each.__doc__ or "").partition("Attributes:\n")
        found |= {name: " ".join(words.split()) for name, words in _ATTRIBUTE.findall(text)}
    return found
