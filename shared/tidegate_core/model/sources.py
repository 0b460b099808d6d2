"""A source: which topic of the users' own is read, and what of its records makes events of data partitions (SEMANTICS 5, 18)."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError, model_validator

from tidegate_core.model.document import Document
from tidegate_core.model.events import DataPartitionEvent
from tidegate_core.model.names import VISIBLE_PATTERN, Name, Namespace, ShortText, Topic
from tidegate_core.model.planned import PLATFORM, planned
from tidegate_core.model.problems import Problem, refused
from tidegate_core.sources.pointers import ESCAPES, WRONG_ESCAPE, is_wrongly_escaped

PARTS_MAX = 256
"""Characters of a header's name or of a pointer: a source lies in the item of all sources."""
DIGITS_MAX = 19
"""Of 2^63 - 1, the largest size."""
_POINT_ZERO = re.compile(r"\.0+\Z", re.ASCII)
OWN_NAMESPACE = "tidegate"
"""Of the system itself: no user's events belong to it."""

HeaderName = Annotated[str, StringConstraints(strict=True, max_length=PARTS_MAX, pattern=VISIBLE_PATTERN)]
Pointer = Annotated[str, StringConstraints(strict=True, max_length=PARTS_MAX)]


class TakenFrom(Document):
    """Where a field of the event comes from: one of the three. A bare text stands for `value`.

    Attributes:
        value: The same for each record.
        header: Name of a header of the record; of several the last one counts.
        pointer: JSON pointer (RFC 6901) into the record's value, such as `/file/day`.
    """

    EXAMPLE: ClassVar = {"pointer": "/file/day"}
    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "expression", "key")

    value: ShortText | None = None
    header: HeaderName | None = None
    pointer: Pointer | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, given: Any) -> Any:
        return {"value": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [name for name in ("value", "header", "pointer") if getattr(self, name) is not None]
        if len(given) != 1:
            raise refused(f"has {len(given)} of value, header and pointer", hint="give exactly one of them")
        if self.pointer is not None and self.pointer and not self.pointer.startswith("/"):
            raise refused("is no JSON pointer", hint="begin it with a slash, such as /file/day", field="pointer")
        return self


class EventMapping(Document):
    """What of a record becomes which field of its event.

    Attributes:
        dataset: Of the source's namespace.
        data_partition: Its name within the dataset; `partition` in JSON and YAML.
        id: Tells repeats of one event: the same id counts once within 24 h. Without it each record is an event of its own.
        kind: `created`, `appended`, `replaced` or `deleted`; without it `created`.
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
            if taken is None or taken.value is None:
                continue
            if name == "id":
                raise refused("is the same for each record", hint="take it from a header or a pointer", field="id")
            alias = DataPartitionEvent.model_fields[name].alias or name
            try:
                DataPartitionEvent.model_validate({**DataPartitionEvent.EXAMPLE, alias: as_number(name, taken.value)})
            except ValidationError as error:
                problem = error.errors()[0]["msg"]
                raise refused(
                    f'has a value that no event may have: "{taken.value[:64]}": {problem}', field=alias
                ) from error
        return self


def _no_own_namespace(namespace: str) -> str:
    if namespace == OWN_NAMESPACE:
        raise refused("is tidegate's own", hint="take the namespace whose schedules are to hear the events")
    return namespace


class SourceSpec(Document):
    """A source as users write it and as it is stored.

    Attributes:
        namespace: Of the source, and of all events that come from it: no record says otherwise.
        topic: Any topic that the nodes may read, but none of tidegate's own.
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
    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "labels", "where", "format")
    FIELD_HINTS: ClassVar = {"dataset": "it stands below event", "partition": "it stands below event"}

    kind: Literal["source"] = "source"
    namespace: Annotated[Namespace, BeforeValidator(_no_own_namespace)]
    name: Name
    topic: Topic
    event: EventMapping


def wrong_escapes(spec: SourceSpec) -> list[Problem]:
    """Returns the problems of pointers in which a `~` stands for nothing."""
    found: list[Problem] = []
    for name, field in EventMapping.model_fields.items():
        taken: TakenFrom | None = getattr(spec.event, name)
        if taken is not None and taken.pointer is not None and is_wrongly_escaped(taken.pointer):
            place = f"event.{field.alias or name}.pointer"
            found.append(Problem(place, WRONG_ESCAPE, ESCAPES))
    return found


def as_number(name: str, text: str) -> str | int:
    """Returns digits as the number that they are, in the fields that count something: headers are texts."""
    digits = text.partition(".")[0] if _POINT_ZERO.search(text) else text
    counts = name in {"bytes", "rows"}
    return int(digits) if counts and digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX else text
