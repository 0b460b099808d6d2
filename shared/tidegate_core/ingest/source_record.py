"""Access to one record of a source's topic: its headers, its JSON document, and elements of a list in it.

The mapping and the filter of a source call it. It parses no more than they ask for. A CloudEvent in structured mode, which its content type
tells, reads like one in binary mode: its attributes are headers `ce_<name>`, and pointers lead into its data. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_core import from_json

from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.language.events.record_filter import UNREADABLE, Place
from tidegate_core.language.formats.cloud_events import CONTENT_TYPE, is_json_event, opened
from tidegate_core.language.formats.record_decoding import overgrown_text, without_mark
from tidegate_core.language.requests.request_base import MAX_RECORD_BYTES
from tidegate_core.language.values.json_values import MISSING, value_at
from tidegate_core.language.values.problems import TOO_LARGE, InvalidInput, Problem


class NotUtf8:
    """Stands for a header whose bytes are no UTF-8 text."""


NOT_UTF8 = NotUtf8()


class RecordReading:
    """A record; its value is parsed once, at the first access.

    Attributes:
        is_opened: Whether it is a CloudEvent in structured mode.
    """

    def __init__(self, record: LogRecord) -> None:
        self._headers: Sequence[tuple[str, bytes]] = record.headers
        self._value = record.value
        self._document: Any = MISSING
        self._refusal: InvalidInput | None = None
        self._is_read = False
        self.is_opened = False
        if record.value and is_json_event(self._content_type()):
            self._open()

    def _open(self) -> None:
        """Opens a CloudEvent. Raises InvalidInput: it is none, in spite of its content type."""
        attributes, data = opened(self.document())
        self._headers = (*self._headers, *((name, text.encode()) for name, text in attributes.items()))
        self.is_opened = True
        if isinstance(data, bytes):
            self._value, self._is_read = data, False
        else:
            self._document = data

    def _content_type(self) -> str | None:
        found = [value for name, value in self._headers if name.lower() == CONTENT_TYPE]
        return found[-1].decode(errors="replace") if found else None

    def header(self, name: str) -> Any:
        """Returns the last header of the name, `MISSING` or `NOT_UTF8`."""
        value = next((value for header, value in reversed(self._headers) if header == name), None)
        if value is None:
            return MISSING
        try:
            return value.decode()
        except UnicodeDecodeError:
            return NOT_UTF8

    def document(self) -> Any:
        """Returns the value as JSON.

        Raises:
            InvalidInput: The value is not JSON, or too large.
        """
        if not self._is_read:
            self._is_read = True
            try:
                self._document = _parsed(self._value)
            except InvalidInput as refusal:
                self._refusal = refusal
        if self._refusal is not None:
            raise self._refusal
        return self._document

    def readable(self) -> Any:
        """Returns the document; `MISSING`: the record has no value; `UNREADABLE`: the value is not JSON."""
        if not self._value and not self.is_opened:
            return MISSING
        try:
            return self.document()
        except InvalidInput:
            return UNREADABLE


class WholeRecord:
    """A record that becomes one event at most."""

    def __init__(self, reading: RecordReading) -> None:
        self._reading = reading

    def at(self, place: Place) -> Any:
        """Returns the value of a place, `MISSING`, `NOT_UTF8`, or `UNREADABLE`."""
        if place.header is not None:
            return self._reading.header(place.header)
        return _found(self._reading.readable(), place.record if place.record is not None else place.pointer)


class Element(WholeRecord):
    """One element of a record's list; pointers lead into it.

    Args:
        reading: The record; all elements share its headers, and places named by `record`.
        element: The element; `MISSING`: the record has no list.
    """

    def __init__(self, reading: RecordReading, element: Any) -> None:
        super().__init__(reading)
        self._element = element

    def at(self, place: Place) -> Any:
        """Returns the value of a place, as for a record."""
        return super().at(place) if place.pointer is None else _found(self._element, place.pointer)


def _found(document: Any, pointer: str | None) -> Any:
    return document if document is UNREADABLE else value_at(document, pointer or "")


def _parsed(value: bytes | None) -> Any:
    if not value:
        hint = "ignore: tombstones passes records without a value"
        raise InvalidInput([Problem("", "has no value, and is not JSON, which the pointers need", hint)])
    if len(value) > MAX_RECORD_BYTES:
        words = f"{TOO_LARGE}: {len(value)} bytes, at most {MAX_RECORD_BYTES} (1 MiB) are allowed"
        raise InvalidInput([Problem("", words)], "too_large")
    if overgrown := overgrown_text(value):
        raise InvalidInput([overgrown], "too_large")
    try:
        return from_json(without_mark(value), allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput([Problem("", f"is not JSON, which the pointers need: {error}")]) from error
