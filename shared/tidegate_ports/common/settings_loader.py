"""Reads a process's settings from environment and file, and suggests the nearest name for a mistyped one.

The bootstraps of node and API use it; no port, but both may import it. The settings library alone ignores
environment variables that it does not know, so a typing error would silently mean "the default".
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource

from tidegate_ports.common.settings_file import CONFIG_VARIABLE, SettingsFileUnreadable, settings_document

PREFIX: Final = "TIDEGATE_"
TOOLS: Final = ("API_URL", "CACHE", "CLI", "CLIENT", "DEMO", "DEV", "IVY", "STATE", "TEST")
"""First words of names for the client, the command line, the local bricks and the tests: no service reads them."""
CLOSE_ENOUGH: Final = 0.6
Settings = TypeVar("Settings", bound=BaseSettings)


Place = tuple[str, ...]
"""Name of a setting in parts: section, field, and the keys of a map."""


class Source(StrEnum):
    """Origin of a value."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    CALLER = "caller"


class SettingsRefused(Exception):
    """The settings are invalid; one line for each mistake, with the name as it was given.

    Attributes:
        lines: Mistakes, one per line.
        fixes: Advice for each line, in the same order; empty if the line itself says what to do.
    """

    def __init__(self, lines: list[str], fixes: Sequence[str] = ()) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.fixes = [*fixes] or [""] * len(lines)


@dataclass(frozen=True, slots=True)
class LoadedSettings(Generic[Settings]):
    """Settings with the source of each value.

    Attributes:
        settings: Merged and checked settings.
        sources: Source by place; a place that is absent has its default.
    """

    settings: Settings
    sources: Mapping[Place, Source]


def load_settings(
    kind: type[Settings], environment: Mapping[str, str], others: Sequence[str] = (), **given: Any
) -> Settings:
    """Reads, merges and checks the settings.

    Args:
        kind: Settings class; its sections are models that forbid unknown fields.
        environment: `os.environ`, or a test's replacement.
        others: First words of names, in capitals, of other services: one ConfigMap or shell may serve all of them.
        given: Sections or fields that override both.

    Raises:
        SettingsRefused: A setting is unknown, missing or out of range.
    """
    return load_with_sources(kind, environment, others, **given).settings


def load_with_sources(
    kind: type[Settings], environment: Mapping[str, str], others: Sequence[str] = (), **given: Any
) -> LoadedSettings[Settings]:
    """Reads, merges and checks the settings, as `load_settings` does, and returns the source of each value too."""
    file = environment.get(CONFIG_VARIABLE)
    foreign = (*TOOLS, *others)
    ours = {
        name: text
        for name, text in environment.items()
        if name.startswith(PREFIX) and name != CONFIG_VARIABLE and not _begins(name.removeprefix(PREFIX), foreign)
    }
    unknown = list(_unknown_variables(kind, ours))
    if unknown:
        raise SettingsRefused(unknown, [f"remove or rename {line.partition(':')[0]}" for line in unknown])
    documents = {
        Source.FILE: _from_file(Path(file), foreign) if file else {},
        Source.ENVIRONMENT: _from_environment(kind, ours),
        Source.CALLER: given,
    }
    sources: dict[Place, Source] = {}
    merged: dict[str, Any] = {}
    for source, document in documents.items():
        merged = _merged(merged, document)
        sources |= dict.fromkeys(_places(document), source)
    try:
        return LoadedSettings(kind.model_validate(_merged(_needed_sections(kind), merged)), sources)
    except ValidationError as failure:
        errors = failure.errors()
        raise SettingsRefused(
            [_line(kind, error["loc"], error) for error in errors],
            [_fix(kind, tuple(map(str, error["loc"])), sources) for error in errors],
        ) from failure


def variable_of(place: Place) -> str:
    """Returns the environment variable that sets a place: `("gate", "url")` is `TIDEGATE_GATE__URL`."""
    return PREFIX + "__".join(place).upper()


def _places(document: Mapping[str, Any], above: Place = ()) -> Iterator[Place]:
    for name, value in document.items():
        place = (*above, str(name))
        if isinstance(value, Mapping) and value:
            yield from _places(value, place)
        else:
            yield place


def _fix(kind: type[BaseModel], location: Place, sources: Mapping[Place, Source]) -> str:
    """Returns where to correct a value. Empty for a whole section: a rule about several fields has its own advice."""
    annotation = kind.model_fields[location[0]].annotation if location and location[0] in kind.model_fields else None
    if len(location) < 2 and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return ""
    # A list is one value: an error in its third element has the element's number in its location.
    given = next((location[:end] for end in range(len(location), 0, -1) if location[:end] in sources), location)
    # A field has a variable; a key of a map is set with the map's variable.
    variable = variable_of(
        given[:2] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else given[:1]
    )
    match sources.get(given, Source.DEFAULT):
        case Source.ENVIRONMENT:
            return f"correct {variable} in the environment"
        case Source.FILE:
            return f"correct {'.'.join(given)} in the file that {CONFIG_VARIABLE} names"
        case _:
            return f"set {variable}, or {'.'.join(given)} in the file that {CONFIG_VARIABLE} names"


def _needed_sections(kind: type[BaseModel]) -> dict[str, Any]:
    """Returns the required sections as empty. They are checked even if no setting of theirs is given, so that errors
    name the missing fields.
    """
    return {
        name: {}
        for name, field in kind.model_fields.items()
        if field.is_required() and isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }


def _begins(name: str, words: Sequence[str]) -> bool:
    return any(name == word or name.startswith(f"{word}_") for word in words)


def _from_file(path: Path, foreign: Sequence[str]) -> dict[str, Any]:
    try:
        document = settings_document(path)
    except SettingsFileUnreadable as failure:
        raise SettingsRefused([str(failure)]) from failure
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingsRefused([f"{path} holds a {type(document).__name__}; it should be a mapping of sections"])
    return {str(name): value for name, value in document.items() if not _begins(str(name).upper(), foreign)}


def _from_environment(kind: type[BaseSettings], environment: Mapping[str, str]) -> dict[str, Any]:
    source = EnvSettingsSource(kind)
    # The library reads the process's environment; here it must read the caller's.
    source.env_vars = {name.lower(): text for name, text in environment.items()}
    try:
        return source()
    except ValueError as failure:
        raise SettingsRefused([_not_json(failure, environment)]) from failure


def _not_json(failure: ValueError, environment: Mapping[str, str]) -> str:
    """Returns the message for a variable that is not JSON.

    The library names at most the section: a list, a map or a whole section is one variable. The variable's text is not
    quoted, because it may be a secret.
    """
    wrong = failure.__cause__
    if isinstance(wrong, json.JSONDecodeError):
        for name, text in environment.items():
            if text == wrong.doc:
                return f'{name}: must be JSON, such as ["a", "b"] for a list or {{"a": "b"}} for a map: {wrong}'
    return f"environment: {failure}"


def _unknown_variables(kind: type[BaseSettings], environment: Mapping[str, str]) -> Iterator[str]:
    for variable in sorted(environment):
        name = variable.removeprefix(PREFIX).lower()
        if name.partition("__")[0] not in kind.model_fields:
            yield f"{variable}: no such setting{_suggestion(name, _all_names(kind), PREFIX)}"


def _line(kind: type[BaseModel], location: tuple[int | str, ...], error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in location)
    if error["type"] not in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{place}: {str(error['msg']).removeprefix('Value error, ')}"
    model: type[BaseModel] | None = kind
    for part in location[:-1]:
        annotation = model.model_fields[str(part)].annotation if model else None
        model = annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
    return f"{place}: no such setting{_suggestion(str(location[-1]), list(model.model_fields) if model else [])}"


def _suggestion(name: str, known: list[str], prefix: str = "") -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=CLOSE_ENOUGH)
    if not close:
        return ""
    return f"; did you mean {prefix + close[0].upper() if prefix else close[0]}?"


def _all_names(kind: type[BaseModel]) -> list[str]:
    names = []
    for name, field in kind.model_fields.items():
        names.append(name)
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            names += [f"{name}__{inner}" for inner in annotation.model_fields]
    return names


def _merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(low)
    for name, value in high.items():
        below = merged.get(name)
        merged[name] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged
