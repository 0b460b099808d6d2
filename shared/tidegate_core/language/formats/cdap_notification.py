"""Reads CDAP's notifications about data partitions as events, so that CDAP's producers need no change."""

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
"""Field with the content, by the field with the kind: in CDAP's design document, and in CDAP's releases."""

MAX_DATA_PARTITIONS = 1_000
"""Data partitions of one notification, more than CDAP's records contain."""

_DATASET_HINT = 'write "namespace.dataset", or {"namespace": …, "dataset": …}'


def is_cdap_notification(document: Mapping[str, Any]) -> bool:
    return "type" not in document and any(field in document for field in _ENVELOPES)


def as_our_events(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns a document of a `data.partition` event for each data partition.

    Raises:
        InvalidInput: The notification is not about data partitions, or a part of it cannot be read.
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
    # CDAP's notifications have no id. A sender that sets one, such as an HTTP header of the API, repeats them with that id.
    return [{**event, "id": f"{one_step(given)}/{event['partition']}"} for event in events]


def _dataset(given: Any) -> tuple[str, str]:
    if isinstance(given, Mapping):
        namespace, dataset = given.get("namespace"), given.get("dataset")
    elif isinstance(given, str):
        # CDAP writes "dataset:ns.name" or "ns.name"; tidegate writes "ns/name".
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
    if isinstance(given, str):  # CDAP writes the list as a JSON text.
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
            # CDAP has no keys of other types, and languages would write them in different ways.
            place = f"partitionKeys[{number}].{shortened(name)}"
            raise InvalidInput([Problem(place, "is neither a text nor a whole number")])
    # The notation of Hive, quoted so that no value looks like two fields.
    return "/".join(f"{quote(name, safe='')}={quote(str(value), safe='')}" for name, value in values.items())


def _without_its_class(value: Any) -> Any:
    """Returns a field's value without the class name that CDAP's codec writes: `["java.lang.Long", 5]`."""
    match value:
        case [str(name), inner] if name.startswith("java.lang."):
            return inner
    return value
