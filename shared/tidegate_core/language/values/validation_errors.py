"""Translates pydantic's errors into problems, with the field's path, hints for typing errors, and planned features.

A location of pydantic contains the tags of discriminated unions among the fields. So `problems_of` follows the location
through the model and drops the tags.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tidegate_core.language.values.document import Document, Planned, PlannedKinds
from tidegate_core.language.values.durations import format_duration, is_read_as_duration
from tidegate_core.language.values.names import WORDING
from tidegate_core.language.values.problems import (
    MAX_PROBLEMS,
    MAX_SHOWN,
    REFUSED,
    Problem,
    did_you_mean,
    nearest,
    shortened,
)

MAX_EXPLAINED = 2 * MAX_PROBLEMS
"""Errors that are translated. Errors that only follow from another error are then left out."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Place in a model to which an error's location leads.

    Attributes:
        path: Path for users.
        owner: Model that has the field.
        field: Name of the field in documents.
        annotation: Type of the value at this place.
        metadata: Notes of the type's `Annotated`.
    """

    path: str
    owner: type[Document] | None = None
    field: str = ""
    annotation: Any = None
    metadata: tuple[Any, ...] = ()

    def at(self, field: str) -> str:
        return joined(self.path, field)

    @property
    def parent(self) -> str:
        return self.path.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class _Finding:
    """Problem of one error.

    Attributes:
        problem: Problem to report.
        hides: Path of a part that belongs to a planned feature; its other problems are not reported.
    """

    problem: Problem
    hides: str | None = None


def problems_of(error: ValidationError, model: type[Document]) -> tuple[Problem, ...]:
    """Returns the first problems of an error, without the problems that only follow from another problem.

    Args:
        error: Error that the validation of an input as `model` raised.
        model: Model from which the error's locations start.
    """
    errors = error.errors(include_url=False)[:MAX_EXPLAINED]
    found = (_finding(details, _place(model, details["loc"])) for details in errors)
    findings = [finding for finding in found if finding is not None]
    hidden = [finding.hides for finding in findings if finding.hides is not None]
    shown = [
        finding.problem
        for finding in findings
        if finding.hides is not None or not any(_is_inside(finding.problem.field, path) for path in hidden)
    ]
    return tuple(dict.fromkeys(shown))


def joined(path: str, field: str) -> str:
    """Returns the path with one more step. An index has its brackets. A step by the sender may be long and is cut."""
    field = shortened(field)
    if not path or not field:
        return path or field
    return f"{path}{field}" if field.startswith("[") else f"{path}.{field}"


def _is_inside(field: str, path: str) -> bool:
    return not path or field == path or field.startswith((f"{path}.", f"{path}["))


def _place(model: type[Document], location: tuple[int | str, ...]) -> _Place:
    place = _Place("", annotation=model)
    for step in location:
        place = _one_deeper(place, step)
    annotation, metadata = _unwrapped(place.annotation, place.metadata)
    return _Place(place.path, place.owner, place.field, annotation, metadata)


def _one_deeper(place: _Place, step: int | str) -> _Place:
    annotation, metadata = _unwrapped(place.annotation, place.metadata)
    if isinstance(annotation, type) and issubclass(annotation, Document):
        field = _field_named(annotation, str(step))
        inner, notes = (None, ()) if field is None else (field.annotation, tuple(field.metadata))
        return _Place(place.at(str(step)), annotation, str(step), inner, notes)
    if isinstance(step, int):
        items = get_args(annotation)
        return _Place(place.at(f"[{step}]"), place.owner, place.field, items[0] if items else None)
    if get_origin(annotation) is dict:
        # pydantic marks an error of the key itself with one more step.
        return place if step == "[key]" else _Place(place.at(step), place.owner, place.field, get_args(annotation)[1])
    if _is_union(annotation):
        return _Place(place.path, place.owner, place.field, _member(annotation, step), metadata)
    return place


def _field_named(model: type[Document], name: str) -> FieldInfo | None:
    return next((field for key, field in model.model_fields.items() if (field.alias or key) == name), None)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in {Union, types.UnionType}


def _unwrapped(annotation: Any, metadata: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Removes `Annotated[...]` and `... | None` from a type, and returns the notes of the annotations as well."""
    for _ in range(8):
        if get_origin(annotation) is Annotated:
            annotation, *notes = get_args(annotation)
            metadata = (*metadata, *notes)
        elif _is_union(annotation) and type(None) in get_args(annotation):
            kept = [member for member in get_args(annotation) if member is not type(None)]
            annotation = Union[tuple(kept)]  # noqa: UP007 - made at run time
        else:
            break
    return annotation, metadata


def _kinds(annotation: Any) -> dict[str, type[Document]]:
    """Returns the members of a discriminated union by tag."""
    members: dict[str, type[Document]] = {}
    for member in get_args(annotation):
        if isinstance(member, type) and issubclass(member, Document) and "type" in member.model_fields:
            members.update(dict.fromkeys(get_args(member.model_fields["type"].annotation), member))
    return members


def _member(annotation: Any, tag: int | str) -> Any:
    return _kinds(annotation).get(str(tag))


def _finding(details: ErrorDetails, place: _Place) -> _Finding | None:
    context: Mapping[str, Any] = details.get("ctx", {})
    given = details["input"]
    match details["type"]:
        case kind if kind == REFUSED:
            problem = Problem(place.at(context["field"]), context["problem"], context["hint"])
            return _Finding(problem, place.path if context["planned"] else None)
        case "extra_forbidden":
            return _unknown_field(place)
        case "missing":
            return _Finding(Problem(place.path, "is missing", _example_of(place)))
        case "union_tag_invalid":
            return _unknown_kind(place, given, str(context["tag"]))
        case "union_tag_not_found":
            kinds = ", ".join(_kinds(place.annotation))
            return _Finding(Problem(place.at("type"), "is missing", f"one of: {kinds}"))
        case "literal_error" | "enum":
            return _unknown_value(place, given)
        case "string_pattern_mismatch":
            wording = WORDING.get(context["pattern"], f"does not match {context['pattern']}")
            return _Finding(Problem(place.path, f"{_shown(given)} {wording}"))
        case "too_short" | "too_long":
            return _wrong_length(place, context, given)
        case "string_type":
            return _Finding(
                Problem(place.path, "is not a text", "write it in quotes" if _is_scalar(given) else "write a text")
            )
        case "model_type" | "model_attributes_type" | "dict_type":
            return _Finding(Problem(place.path, "is not a mapping of fields", _first_field_of(place.annotation)))
        case "tuple_type" | "list_type":
            return _Finding(Problem(place.path, "is not a list", "write it in brackets, also a single entry: [...]"))
        case _:
            # An error of a mapping's key is reported for the mapping: the key itself may be empty.
            subject = "has a name that " if details["loc"][-1:] == ("[key]",) else ""
            words = plain_words(details["type"], details["msg"], _as_written(context, place))
            is_text_of_number = details["type"] == "int_type" and isinstance(given, str)
            hint = (_plain_number_hint(given) if is_text_of_number else "") or _HINTS.get(words, "")
            return _Finding(Problem(place.path, subject + words, hint))


def _plain_number_hint(text: str) -> str:
    """Returns how to write a number that YAML read as a text, such as `010` or `1_000`; empty if the text is no number."""
    digits = text.strip().replace("_", "")
    if not digits.isdecimal():
        return ""
    plain = digits.lstrip("0") or "0"
    return "write it without quotes" if plain == text.strip() else f"write it as {plain[:MAX_SHOWN]}, without quotes"


def _example_of(place: _Place) -> str:
    """Returns a hint for a missing field, from the example of its document."""
    example = None if place.owner is None else place.owner.EXAMPLE.get(place.field)
    return "" if example is None else f"such as {place.field}: {_sketch(example)}"


def _sketch(example: Any) -> str:
    if isinstance(example, Mapping):
        name, value = next(iter(example.items()))
        return f"{{{name}: {_sketch(value)}, ...}}"
    return f"[{_sketch(example[0])}, ...]" if isinstance(example, list | tuple) else str(example)


def _first_field_of(annotation: Any) -> str:
    kinds = _kinds(annotation)
    if kinds:
        return f"write {{type: {next(iter(kinds))}, ...}}"
    if not (isinstance(annotation, type) and issubclass(annotation, Document)):
        return "write {name: value}"
    return f"write {_sketch(annotation.EXAMPLE)}" if annotation.EXAMPLE else ""


def _as_written(bounds: Mapping[str, Any], place: _Place) -> Mapping[str, Any]:
    """Returns the bounds of an error in the field's notation, such as durations with units."""
    if is_read_as_duration(place.metadata):
        return {name: format_duration(bound) if bound else bound for name, bound in bounds.items()}
    return {name: f"{bound:g}" if isinstance(bound, float) else bound for name, bound in bounds.items()}


def _wrong_length(place: _Place, context: Mapping[str, Any], given: Any) -> _Finding | None:
    least, most = context.get("min_length"), context.get("max_length")
    length = len(given) if isinstance(given, list | tuple | dict) else context["actual_length"]
    if least is not None and length >= least:
        # The input was long enough. Its faulty items were removed, and each of them is reported.
        return None
    bound = f"at least {least} are needed" if least is not None else f"at most {most} are allowed"
    things = "characters" if isinstance(given, str) else "entries"
    return _Finding(Problem(place.path, f"has {length} {things}, {bound}"))


def _unknown_field(place: _Place) -> _Finding:
    owner = place.owner or Document
    entry = owner.PLANNED_FIELDS.get(place.field)
    if entry is not None:
        return _Finding(Problem(place.path, entry.problem, entry.hint))
    known = [field.alias or name for name, field in owner.model_fields.items()]
    hint = owner.FIELD_HINTS.get(place.field) or did_you_mean(place.field, known)
    return _Finding(Problem(place.path, "is not a field here", hint))


def _unknown_kind(place: _Place, given: Any, tag: str) -> _Finding:
    if isinstance(given, Mapping) and not isinstance(given.get("type"), str):
        return _Finding(Problem(place.at("type"), "is not a text", f"one of: {', '.join(_kinds(place.annotation))}"))
    planned = next((note.kinds for note in place.metadata if isinstance(note, PlannedKinds)), {})
    entry = planned.get(tag)
    if entry is not None:
        return _planned(place.at("type"), tag, entry, hides=place.path)
    hint = did_you_mean(tag[:MAX_SHOWN], _kinds(place.annotation))
    return _Finding(Problem(place.at("type"), f"{_shown(tag)} is unknown", hint))


def _unknown_value(place: _Place, given: Any) -> _Finding:
    table = place.owner.PLANNED_VALUES.get(place.field, {}) if place.owner is not None else {}
    entry = table.get(given, table.get("*")) if isinstance(given, str) else None
    if entry is not None and isinstance(given, str):
        # This version does not know the fields of a planned kind, so their problems are not reported.
        return _planned(place.path, given, entry, hides=place.parent if place.field in {"type", "kind"} else None)
    choices = _choices(place.annotation)
    guess = nearest(given, choices) if isinstance(given, str) else None
    hint = f"did you mean {guess}?" if guess is not None else ""
    return _Finding(Problem(place.path, f"{_shown(given)} is not one of: {', '.join(choices)}", hint))


def _planned(path: str, word: str, entry: Planned, hides: str | None) -> _Finding:
    return _Finding(Problem(path, f"{_shown(word)} {entry.problem}", entry.hint), hides)


def _choices(annotation: Any) -> list[str]:
    choices: Iterable[Any] = get_args(annotation) if get_origin(annotation) is Literal else annotation or ()
    return [str(choice) for choice in choices]


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value[:MAX_SHOWN]}"'
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value)[:MAX_SHOWN] if isinstance(value, int | float) else "the value"


def _is_scalar(value: Any) -> bool:
    """Whether YAML may have read a text as this value: it reads 10:00 and 1.0 as numbers, and `no` as false."""
    return isinstance(value, bool | int | float)


_WORDS = {
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_parsing_size": "is not a whole number of a usable size",
    "int_from_float": "is not a whole number",
    "float_type": "is not a number",
    "float_parsing": "is not a number",
    "bool_type": "is neither true nor false",
    "bool_parsing": "is neither true nor false",
    "list_type": "is not a list",
    "tuple_type": "is not a list",
    "string_type": "is not a text",
    "missing": "is missing",
    "greater_than_equal": "has to be at least {ge}",
    "greater_than": "has to be above {gt}",
    "less_than_equal": "has to be at most {le}",
    "less_than": "has to be below {lt}",
    "string_too_short": "has fewer than {min_length} characters",
    "string_too_long": "has more than {max_length} characters",
    "enum": "is not one of: {expected}",
    "literal_error": "is not one of: {expected}",
}
"""Clauses about a field, by pydantic's type of error."""
_HINTS = {
    "is empty": "write something, or leave it out",
    "is not a number": "write it without quotes, such as 0.85",
    "is neither true nor false": "write true or false; yes, no, on and off are texts",
}


def plain_words(kind: str, message: str, context: Mapping[str, Any]) -> str:
    """Returns an error of pydantic as a clause about the field.

    Args:
        kind: Type of the error, such as `int_parsing`.
        message: Message of pydantic, for types that are not in `_WORDS`.
        context: Values of the error, such as bounds (pydantic's `ctx`).
    """
    if kind == "string_pattern_mismatch":
        return WORDING.get(context["pattern"], f"does not match {context['pattern']}")
    if kind == "string_too_short" and context["min_length"] == 1:
        return "is empty"
    if kind in _WORDS:
        return _WORDS[kind].format_map(context)
    for prefix, instead in (("Input should be", "has to be"), ("Value error, ", ""), ("Input", "the value")):
        if message.startswith(prefix):
            return instead + message.removeprefix(prefix)
    return message[:1].lower() + message[1:]
