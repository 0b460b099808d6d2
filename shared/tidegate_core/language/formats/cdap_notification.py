"""CDAP's notification about data partitions, taken as our events, so that its producers need not change (SEMANTICS 18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic_core import from_json

from tidegate_core.language.events.events import one_step
from tidegate_core.language.formats.record_decoding import repeated_names
from tidegate_core.language.values.instants import LATEST_INSTANT, format_instant
from tidegate_core.language.values.problems import InvalidInput, Problem, shortened

_ENVELOPES = {"eventType": "payload", "notificationType": "properties"}
"""By the field that says what it is about, the one with the rest: as their design has it, and as their releases write it."""

MAX_DATA_PARTITIONS = 1_000
"""Data partitions of one notification: more than a record of theirs ever carried."""

_DATASET_HINT = 'write "namespace.dataset", or {"namespace": …, "dataset": …}'


def is_cdap_notification(document: Mapping[str, Any]) -> bool:
    return "type" not in document and any(field in document for field in _ENVELOPES)


def as_our_events(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns one document of a `data.partition` event per data partition.

    Raises:
        InvalidInput: Not a notification about data partitions, or a part of it cannot be read.
    """
    field, inside = next((field, inside) for field, inside in _ENVELOPES.items() if field in document)
    kind, payload = document[field], document.get(inside)
    time = document.get("timestamp")
    if not isinstance(kind, str) or "partition" not in kind.lower():
        raise InvalidInput([Problem(field, "is not about data partitions", "use our custom.<name> events")])
    if not isinstance(payload, Mapping):
        raise InvalidInput([Problem(inside, "is not a mapping of fields")])
    if time is not None and (type(time) is not int or not 0 <= time <= LATEST_INSTANT):
        raise InvalidInput([Problem("timestamp", "is not a number of milliseconds since 1970")])
    try:
        namespace, dataset = _dataset(payload.get("datasetId"))
        names = _data_partitions(payload.get("partitionKeys"))
    except InvalidInput as refusal:
        problems = [Problem(f"{inside}.{each.field}", each.problem, each.hint) for each in refusal.problems]
        raise InvalidInput(problems) from refusal
    common = {"type": "data.partition", "namespace": namespace, "dataset": dataset, "kind": "created"}
    if time is not None:
        common["event_time"] = format_instant(time)
    events = [{**common, "partition": name} for name in names]
    if (given := document.get("id")) is None:
        return events
    if not isinstance(given, str):
        raise InvalidInput([Problem("id", "is not a text", "write it in quotes")])
    # Theirs have none; whoever gives one, as a header of the API does, repeats the notification under it.
    return [{**event, "id": f"{one_step(given)}/{event['partition']}"} for event in events]


def _dataset(given: Any) -> tuple[str, str]:
    if isinstance(given, Mapping):
        namespace, dataset = given.get("namespace"), given.get("dataset")
    elif isinstance(given, str):
        # Their texts are "dataset:ns.name" or "ns.name"; our own way of writing it is "ns/name".
        text = given.removeprefix("dataset:").replace("/", ".", 1)
        namespace, dot, dataset = text.partition(".")
        dataset = dataset if dot else None
    else:
        namespace = dataset = None
    if not isinstance(namespace, str) or not isinstance(dataset, str) or not namespace or not dataset:
        raise InvalidInput([Problem("datasetId", "does not name a namespace and a dataset", _DATASET_HINT)])
    return namespace, dataset


def _data_partitions(given: Any) -> list[str]:
    keys = given
    if isinstance(given, str):  # theirs is a list inside of a text
        try:
            keys = from_json(given, allow_inf_nan=False)
        except ValueError as error:
            raise InvalidInput([Problem("partitionKeys", "is not a JSON list")]) from error
        if isinstance(keys, list) and (repeated := repeated_names(given.encode(), keys)):
            problem = f'has the field "{shortened(repeated[0])}" twice in one object'
            raise InvalidInput([Problem("partitionKeys", problem, "keep one")])
    if not isinstance(keys, list) or not 1 <= len(keys) <= MAX_DATA_PARTITIONS:
        problem = f"is not a list of 1 to {MAX_DATA_PARTITIONS} keys"
        raise InvalidInput([Problem("partitionKeys", problem)])
    return [_data_partition(key, number) for number, key in enumerate(keys)]


def _data_partition(key: Any, number: int) -> str:
    if isinstance(key, str):
        return key
    fields = key.get("fields", key) if isinstance(key, Mapping) else None
    if not isinstance(fields, Mapping) or not fields:
        raise InvalidInput([Problem(f"partitionKeys[{number}]", "is neither a text nor a mapping of fields")])
    values = {str(name): _without_its_class(value) for name, value in fields.items()}
    for name, value in values.items():
        if not isinstance(value, str | int) or isinstance(value, bool):
            # Of other kinds CDAP has no keys, and each language would write them another way.
            place = f"partitionKeys[{number}].{shortened(name)}"
            raise InvalidInput([Problem(place, "is neither a text nor a whole number")])
    # Hive's way of writing it; quoted, so that no value can be taken for two fields.
    return "/".join(f"{quote(name, safe='')}={quote(str(value), safe='')}" for name, value in values.items())


def _without_its_class(value: Any) -> Any:
    """Returns a field's value; their codec writes it behind the name of its class: `["java.lang.Long", 5]`."""
    match value:
        case [str(name), inner] if name.startswith("java.lang."):
            return inner
    return value
