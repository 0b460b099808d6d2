"""Event sources: a user's topic, and how its records are mapped to events of data partitions.

`tidegate_core/ingest/source_mapping.py` applies the mapping. docs/events.md explains sources to users.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError, model_validator

from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.events.record_filter import PARTS_MAX, Place, Pointer, RecordFilter, check_pointer
from tidegate_core.language.values.comparison import compared, contradiction
from tidegate_core.language.values.document import PLATFORM, AtMost, Document, planned
from tidegate_core.language.values.json_values import ESCAPES, WRONG_ESCAPE, is_wrongly_escaped
from tidegate_core.language.values.names import Name, Namespace, ShortText, Topic
from tidegate_core.language.values.problems import Problem, refused

DIGITS_MAX = 19
"""Digits of 2^63 - 1, the largest size."""
_POINT_ZERO = re.compile(r"\.0+\Z", re.ASCII)
OWN_NAMESPACE = "tidegate"
"""Namespace of tidegate itself; users' events cannot belong to it."""

MapKey = Annotated[str, StringConstraints(strict=True, max_length=PARTS_MAX)]
MAP_MAX = 64
"""Entries of a `map`; a source has 5,000 bytes in all."""
REST = "*"
"""End of a map entry that applies to all texts with the same beginning."""


class TakenFrom(Place):
    """Origin of an event's field: one of value, header, pointer and record. A bare text means `value`.

    Attributes:
        value: Fixed value, the same for each record.
        decode: Encoding of the text. `url`: URL-encoded with `+` for a space, as S3 encodes the keys in its notifications.
        map: Table of values by text. An entry that ends with `*` applies to all texts with that beginning; the longest wins.
    """

    EXAMPLE: ClassVar = {"pointer": "/file/day"}

    value: ShortText | None = None
    decode: Literal["url"] | None = None
    map: Annotated[dict[MapKey, ShortText], Field(min_length=1), AtMost(MAP_MAX)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, given: Any) -> Any:
        return {"value": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = (*(("value",) if self.value is not None else ()), *self.places)
        if len(given) != 1:
            raise refused(f"has {len(given)} of value, header, pointer and record", hint="give exactly one of them")
        for name in ("decode", "map"):
            if self.value is not None and getattr(self, name) is not None:
                raise refused("must not be given with value", hint="leave it out", field=name)
        return self

    def mapped(self, text: str) -> str | None:
        """Returns the value that the map has for a text, or None."""
        assert self.map is not None
        if text in self.map and not text.endswith(REST):
            return self.map[text]
        beginnings = [each for each in self.map if each.endswith(REST) and text.startswith(each.removesuffix(REST))]
        return self.map[max(beginnings, key=len)] if beginnings else None


class EventMapping(Document):
    """Mapping from a record to the fields of its event.

    Attributes:
        dataset: Dataset of the source's namespace.
        data_partition: Name of the data partition within the dataset; `partition` in JSON and YAML.
        id: Id of the event: the same id counts once within 24 h. Without it each record is a separate event.
        kind: Kind of change: `created` (the default), `appended`, `replaced` or `deleted`. With a `map` every record needs it.
        bytes: Size of the new data; optional in a record.
        rows: Rows of the new data; optional in a record.
        version: Version of the data partition's content, such as an etag.
        event_time: Time by the producer's clock, for lateness rules only.
        producer: Name of the producer, for people.
    """

    EXAMPLE: ClassVar = {"dataset": "flights.raw", "partition": {"pointer": "/file/day"}}

    dataset: TakenFrom
    data_partition: TakenFrom = Field(alias="partition")
    id: TakenFrom | None = None
    kind: TakenFrom | None = None
    bytes: TakenFrom | None = None
    rows: TakenFrom | None = None
    version: TakenFrom | None = None
    event_time: TakenFrom | None = None
    producer: TakenFrom | None = None

    @model_validator(mode="after")
    def _fixed_values_fit(self) -> Self:
        """Checks fixed values once, with the definition, instead of at each record."""
        for name in type(self).model_fields:
            taken: TakenFrom | None = getattr(self, name)
            if taken is None:
                continue
            if name == "id" and (taken.value is not None or taken.map is not None):
                how = "is mapped: different records would share one id" if taken.map else "is the same for each record"
                raise refused(how, hint="take it from a header or a pointer", field="id")
            for fixed in (taken.map or {}).values() if taken.value is None else (taken.value,):
                _check_fixed(name, fixed)
        return self


def _check_fixed(name: str, fixed: str) -> None:
    alias = DataPartitionEvent.model_fields[name].alias or name
    try:
        DataPartitionEvent.model_validate({**DataPartitionEvent.EXAMPLE, alias: as_number(name, fixed)})
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise refused(f'has a value that no event may have: "{fixed[:64]}": {problem}', field=alias) from error


def _no_own_namespace(namespace: str) -> str:
    if namespace == OWN_NAMESPACE:
        raise refused("is tidegate's own", hint="take the namespace of the schedules that wait for the events")
    return namespace


class SourceSpec(Document):
    """A source as users write it and as it is stored.

    Attributes:
        namespace: Namespace of the source and of all its events; records cannot change it.
        topic: Topic that the nodes may read; none of tidegate's own topics.
        where: Filter on records, or on elements with `each`. Other records are skipped, and a metric counts them.
        ignore: Records to skip. `tombstones`: records without a value; otherwise their headers must have all mapped fields.
        each: JSON pointer to a list in the record's value. Each of its at most 1,000 elements becomes an event.
        event: Mapping from a record to its event.
    """

    EXAMPLE: ClassVar = {
        "kind": "source",
        "namespace": "flights",
        "name": "landed-files",
        "topic": "lake.commits",
        "event": {
            "dataset": "flights.raw",
            "partition": {"pointer": "/file/day"},
            "bytes": {"header": "content-length"},
            "id": {"header": "commit-id"},
        },
    }
    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "labels", "format")
    FIELD_HINTS: ClassVar = {"dataset": "it belongs under event", "partition": "it belongs under event"}

    kind: Literal["source"] = "source"
    namespace: Annotated[Namespace, BeforeValidator(_no_own_namespace)]
    name: Name
    topic: Topic
    where: RecordFilter | None = None
    ignore: Literal["tombstones"] | None = None
    each: Pointer | None = None
    event: EventMapping

    @model_validator(mode="after")
    def _records_are_apart_from_elements(self) -> Self:
        check_pointer(self.each, "each")
        if self.each is None:
            for place, taken in _places(self):
                if taken.record is not None:
                    raise refused("is for sources with each", hint="the word is pointer", field=f"{place}.record")
        return self


def _places(spec: SourceSpec) -> Iterator[tuple[str, Place]]:
    """Yields each place in a record that the source reads, with its field in the source."""
    for name, field in EventMapping.model_fields.items():
        taken: TakenFrom | None = getattr(spec.event, name)
        if taken is not None:
            yield f"event.{field.alias or name}", taken
    if spec.where is not None:
        for each in spec.where.compared():
            yield "where", each


def wrong_escapes(spec: SourceSpec) -> list[Problem]:
    """Returns the problems of pointers with a wrong escape: a `~` that is neither `~0` nor `~1`."""
    pointers = [
        (f"{place}.{kind}", getattr(taken, kind)) for place, taken in _places(spec) for kind in ("pointer", "record")
    ]
    return [
        Problem(field, WRONG_ESCAPE, ESCAPES)
        for field, pointer in [("each", spec.each), *pointers]
        if pointer is not None and is_wrongly_escaped(pointer)
    ]


def vain_comparisons(spec: SourceSpec) -> list[Problem]:
    """Returns the problems of comparisons in `where` that no record can pass. A compared JSON value may have any type."""
    found = () if spec.where is None else compared(spec.where, "where")
    # Under `not`, a comparison that never holds lets every record pass; a user may intend that.
    problems = [contradiction(each, place) for place, each, is_negated in found if not is_negated]
    return [each for each in problems if each is not None]


def as_number(name: str, text: str) -> str | int:
    """Returns a text of digits as a number in the fields `bytes` and `rows`: headers are always texts."""
    digits = text.partition(".")[0] if _POINT_ZERO.search(text) else text
    counts = name in {"bytes", "rows"}
    return int(digits) if counts and digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX else text
