"""Events on the topic `tidegate.events`: events about data, and custom events of users."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator
from pydantic_core import PydanticSerializationError, to_json

from tidegate_core.language.values.derived_ids import hash_of
from tidegate_core.language.values.document import Document, Whole
from tidegate_core.language.values.instants import InstantField
from tidegate_core.language.values.names import (
    CustomEventType,
    DataPartitionName,
    DatasetId,
    EventId,
    Namespace,
    ShortText,
)
from tidegate_core.language.values.problems import refused
from tidegate_core.language.values.sizes import LARGEST_SIZE_BYTES, SizeField, whole_of

ChangeKind: TypeAlias = Literal["created", "appended", "replaced", "deleted"]
RowCount = Annotated[Whole, Field(ge=0, le=LARGEST_SIZE_BYTES), BeforeValidator(whole_of)]
EVENT_DATA_BYTES_MAX = 65_536
_DEDUPE_BYTES = 16
"""Bytes of a dedupe id: with 128 bits two events of a day never get the same id by chance. Hex costs a twentieth of base32."""


class DataPartitionEvent(Document):
    """A data partition of a dataset was created, appended to, replaced or deleted.

    Attributes:
        id: Id that the producer chose; a repeat within the dedupe horizon counts once.
        data_partition: Name of the data partition within the dataset; `partition` in JSON.
        bytes: Size of the new data, if known.
        rows: Rows of the new data, if known.
        event_time: Time by the producer's clock, for lateness rules only; windows use append times.
        version: Version of the data partition's content, such as an etag.
        producer: Name of the producer, for people; the `source` of a CloudEvent.
    """

    EXAMPLE: ClassVar = {
        "id": "01JD0M2T9V3E8R7Q5K1N4B6C2A",
        "type": "data.partition",
        "namespace": "flights",
        "dataset": "flights.raw",
        "partition": "2013-01-01",
        "kind": "created",
        "bytes": 1048576,
        "rows": 842,
        "event_time": "2026-11-20T22:00:00Z",
        "version": "1",
    }

    id: EventId | None = None
    type: Literal["data.partition"] = "data.partition"
    namespace: Namespace
    dataset: DatasetId
    data_partition: DataPartitionName = Field(alias="partition")
    kind: ChangeKind = "created"
    bytes: SizeField | None = None
    rows: RowCount | None = None
    event_time: InstantField | None = None
    version: EventId | None = None
    producer: ShortText | None = None

    @property
    def event_key(self) -> str:
        """Key by which schedules subscribe to the event."""
        return f"data/{self.namespace}/{self.dataset}"

    @cached_property
    def dedupe_id(self) -> str:
        """Id that is the same for repeats: from the producer's id, or from the content if there is none."""
        if self.id is not None:
            return _dedupe_id("id", self.namespace, self.id)
        return _dedupe_id("content", self.namespace, self.dataset, self.data_partition, self.kind, self.version or "")


class CustomEvent(Document):
    """A user's event of type `custom.<name>`, for triggers of type `event`.

    Attributes:
        id: Id that the producer chose; a repeat within the dedupe horizon counts once.
        subject: Subject of the event.
        data: JSON of at most 64 KiB; filters can compare values in it.
        event_time: Time by the producer's clock, for lateness rules only.
        producer: Name of the producer, for people; the `source` of a CloudEvent.
    """

    EXAMPLE: ClassVar = {
        "id": "delivery-4711",
        "type": "custom.truck-arrived",
        "namespace": "orders",
        "subject": "gate-3",
        "data": {"pallets": 12},
    }

    id: EventId | None = None
    type: CustomEventType
    namespace: Namespace
    subject: ShortText | None = None
    data: Any = None
    event_time: InstantField | None = None
    producer: ShortText | None = None

    @field_validator("data")
    @classmethod
    def _fits_an_item(cls, data: Any) -> Any:
        if _is_surely_small(data):
            return data
        try:
            size = len(json.dumps(data, ensure_ascii=False, allow_nan=False).encode(errors="replace"))
        except ValueError as error:
            raise refused("contains a number that JSON cannot hold", hint="write it as a text, or as null") from error
        if size > EVENT_DATA_BYTES_MAX:
            # The data are stored in the inbox row of each subscribed schedule, and in its evidence.
            raise refused(
                f"has {size} bytes, at most {EVENT_DATA_BYTES_MAX} (64 KiB) are allowed", hint="send a pointer"
            )
        return data

    @property
    def event_key(self) -> str:
        """Key by which schedules subscribe to the event."""
        return f"custom/{self.namespace}/{self.type.removeprefix('custom.')}"

    @cached_property
    def dedupe_id(self) -> str:
        """Id that is the same for repeats: from the producer's id, or from all content if there is none."""
        if self.id is not None:
            return _dedupe_id("id", self.namespace, self.id)
        return _dedupe_id("content", self.canonical_json())


def _is_surely_small(data: Any) -> bool:
    """Whether the data are far below their size limit and contain only numbers of JSON.

    The check costs a quarter of the exact one. Its form has no spaces; spaces at most double the size.
    """
    try:
        written = to_json(data)
    except (ValueError, PydanticSerializationError):
        return False
    return len(written) * 2 <= EVENT_DATA_BYTES_MAX and b"Infinity" not in written and b"NaN" not in written


def _dedupe_id(*parts: str) -> str:
    return hash_of(*parts)[:_DEDUPE_BYTES].hex()


Event: TypeAlias = DataPartitionEvent | CustomEvent


def one_step(text: str) -> str:
    """Returns a text without slashes, escaped as a step of a JSON pointer.

    Unescaped, `a/b` joined with `c` would give the same id as `a` joined with `b/c`, and one of two events would not count.
    """
    return text.replace("~", "~0").replace("/", "~1")
