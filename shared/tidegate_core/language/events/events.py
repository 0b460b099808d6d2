"""Events as they stand on `tidegate.events` (SEMANTICS 5, 18): facts about data, and facts of the users' own."""

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
"""128 bits: 32 hex digits, at a twentieth of base32's cost; no two of a day's events meet by chance."""


class DataPartitionEvent(Document):
    """A data partition of a dataset came, grew, was replaced or went.

    Attributes:
        id: The producer's; a repeat of it within the dedupe horizon counts once.
        data_partition: Its name within the dataset; `partition` in JSON.
        bytes: Size of what came, where known.
        rows: Rows of what came, where known.
        event_time: The producer's clock; serves lateness rules only, windows use append times.
        version: Tells two contents of the same data partition apart, such as an etag.
        producer: Who announces it, for people; of a CloudEvent its `source`.
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
        """Under which schedules that wait for it are found."""
        return f"data/{self.namespace}/{self.dataset}"

    @cached_property
    def dedupe_id(self) -> str:
        """Equal for repeats: the producer's id, else what the event says (SEMANTICS 5.3)."""
        if self.id is not None:
            return _dedupe_id("id", self.namespace, self.id)
        return _dedupe_id("content", self.namespace, self.dataset, self.data_partition, self.kind, self.version or "")


class CustomEvent(Document):
    """A fact of the users' own, `custom.<name>`, for triggers of type `event`.

    Attributes:
        id: The producer's; a repeat of it within the dedupe horizon counts once.
        subject: What it is about.
        data: Any JSON of at most 64 KiB; filters look into it.
        producer: Who announces it, for people; of a CloudEvent its `source`.
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
            # It lies in the inbox row of each schedule that listens, and in its evidence.
            raise refused(
                f"has {size} bytes, at most {EVENT_DATA_BYTES_MAX} (64 KiB) are allowed", hint="send a pointer"
            )
        return data

    @property
    def event_key(self) -> str:
        """Under which schedules that wait for it are found."""
        return f"custom/{self.namespace}/{self.type.removeprefix('custom.')}"

    @cached_property
    def dedupe_id(self) -> str:
        """Equal for repeats: the producer's id, else all that the event says."""
        if self.id is not None:
            return _dedupe_id("id", self.namespace, self.id)
        return _dedupe_id("content", self.canonical_json())


def _is_surely_small(data: Any) -> bool:
    """Whether the data are far below their limit, and hold no number that JSON cannot: at a quarter of the cost of telling what they
    are. This form has no spaces, which at most double it.
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
    """Returns a text without slashes, as JSON pointers write such a step. What stands beside it may have some, and the id of `a/b` with
    `c` would else be that of `a` with `b/c`: of two events one would count.
    """
    return text.replace("~", "~0").replace("/", "~1")
