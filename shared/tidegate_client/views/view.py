"""Base of all documents: times, pages, and tolerance of unknown fields."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, PlainSerializer, WithJsonSchema

from tidegate_core.language.values.instants import format_instant, from_datetime

ItemT = TypeVar("ItemT")


def _rfc3339(moment: datetime) -> str:
    return format_instant(from_datetime(moment))


Moment: TypeAlias = Annotated[
    datetime,
    PlainSerializer(_rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""An aware UTC datetime; RFC 3339 with `Z` in JSON, as on every topic."""


class View(BaseModel):
    """Base of all documents."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Page(View, Generic[ItemT]):
    """One page of a list.

    Attributes:
        next_page_token: Opaque; empty at the end.
    """

    items: list[ItemT]
    next_page_token: str = ""
