"""A source: which topic of the users' own is read, and what of its records makes events of data partitions (SEMANTICS 5, 18)."""

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
"""Of 2^63 - 1, the largest size."""
_POINT_ZERO = re.compile(r"\.0+\Z", re.ASCII)
OWN_NAMESPACE = "tidegate"
"""Of the system itself: no user's events belong to it."""

MapKey = Annotated[str, StringConstraints(strict=True, max_length=PARTS_MAX)]
MAP_MAX = 64
"""Entries of a `map`; a source has 5,000 bytes in all."""
REST = "*"
"""At the end of a map's entry: whatever follows."""


class TakenFrom(Place):
    """Where a field of the event comes from: one of value, header, pointer and record. A bare text stands for `value`.

    Attributes:
        value: The same for each record.
        decode: `url`: the text is URL-encoded, as S3 encodes the keys of its notifications; `+` is a space.
        map: What the text means, by text; an entry that ends with `*` is for all that begin so, the longest one counts.
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
                raise refused("stands beside value, which is the same for each record", hint="leave it out", field=name)
        return self

    def mapped(self, text: str) -> str | None:
        """Returns what the map says of a text; None: nothing."""
        assert self.map is not None
        if text in self.map and not text.endswith(REST):
            return self.map[text]
        beginnings = [each for each in self.map if each.endswith(REST) and text.startswith(each.removesuffix(REST))]
        return self.map[max(beginnings, key=len)] if beginnings else None


class EventMapping(Document):
    """What of a record becomes which field of its event.

    Attributes:
        dataset: Of the source's namespace.
        data_partition: Its name within the dataset; `partition` in JSON and YAML.
        id: Tells repeats of one event: the same id counts once within 24 h. Without it each record is an event of its own.
        kind: `created`, `appended`, `replaced` or `deleted`; without it `created`. With a `map` each record has to say it.
        bytes: Size of what came; a record that does not say it leaves it open.
        rows: Likewise.
        version: Tells two contents of the same data partition apart, such as an etag.
        event_time: The producer's clock; serves lateness rules only.
        producer: Who announces it, for people.
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
        """What is the same for each record is checked now, and not at each record."""
        for name in type(self).model_fields:
            taken: TakenFrom | None = getattr(self, name)
            if taken is None:
                continue
            if name == "id" and (taken.value is not None or taken.map is not None):
                how = "is mapped, so that different records had one" if taken.map else "is the same for each record"
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
        raise refused("is tidegate's own", hint="take the namespace whose schedules are to hear the events")
    return namespace


class SourceSpec(Document):
    """A source as users write it and as it is stored.

    Attributes:
        namespace: Of the source, and of all events that come from it: no record says otherwise.
        topic: Any topic that the nodes may read, but none of tidegate's own.
        where: Which records are meant, with `each` which elements; the others are passed and counted.
        ignore: `tombstones`: records without a value are passed and counted; without it they need all that is asked for in headers.
        each: JSON pointer to a list in the record's value: each of its elements, 1,000 at most, is an event.
        event: What of a record becomes the event.
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
    FIELD_HINTS: ClassVar = {"dataset": "it stands below event", "partition": "it stands below event"}

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
    """Yields all that lies in records, each with its field in the source."""
    for name, field in EventMapping.model_fields.items():
        taken: TakenFrom | None = getattr(spec.event, name)
        if taken is not None:
            yield f"event.{field.alias or name}", taken
    if spec.where is not None:
        for each in spec.where.compared():
            yield "where", each


def wrong_escapes(spec: SourceSpec) -> list[Problem]:
    """Returns the problems of pointers in which a `~` stands for nothing."""
    pointers = [
        (f"{place}.{kind}", getattr(taken, kind)) for place, taken in _places(spec) for kind in ("pointer", "record")
    ]
    return [
        Problem(field, WRONG_ESCAPE, ESCAPES)
        for field, pointer in [("each", spec.each), *pointers]
        if pointer is not None and is_wrongly_escaped(pointer)
    ]


def vain_comparisons(spec: SourceSpec) -> list[Problem]:
    """Returns the problems of comparisons of `where` that no record could pass; JSON may have a value of any kind."""
    found = () if spec.where is None else compared(spec.where, "where")
    # What never holds lets everything pass under `not`, which somebody may mean.
    problems = [contradiction(each, place) for place, each, is_negated in found if not is_negated]
    return [each for each in problems if each is not None]


def as_number(name: str, text: str) -> str | int:
    """Returns digits as the number that they are, in the fields that count something: headers are texts."""
    digits = text.partition(".")[0] if _POINT_ZERO.search(text) else text
    counts = name in {"bytes", "rows"}
    return int(digits) if counts and digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX else text
