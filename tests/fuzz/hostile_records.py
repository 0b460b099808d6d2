"""What may lie in a topic: bytes, pieces of JSON, and documents that are right but for something. One seed, one stream of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal, TypeAlias, get_args

from tidegate_core.language.constraints import Constraint
from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.requests.request_base import MAX_RECORD_BYTES
from tidegate_core.language.requests.requests import REQUEST_TYPES
from tidegate_core.language.triggers import Trigger
from tidegate_core.language.values.document import Document

Kind: TypeAlias = Literal["requests", "events", "sources"]
KINDS: Final[tuple[Kind, ...]] = ("requests", "events", "sources")

ODD: Final = (
    *('"\\ud800"', '"\\u0000"', '""', '"\\uffff"', '"🙈"', '"${a.b[0]}"', '"${"', '"-"', '"1e9"', '"∞"', '"../x"'),
    *("1e999", "-1e999", "1e-999", "9" * 309, "-" + "9" * 400, "-0", "0.1", "1E400", "true", "null", "{}", "[]"),
    *("[" * 150 + "]" * 150, "[" * 300 + "]" * 300, '{"a":1,"a":2}', '{"":{"":{}}}', "NaN", "-Infinity", "\\", '"'),
    *('"0000-01-01T00:00:00Z"', '"9999-12-31T23:59:59.999Z"', '"1969-12-31T00:00:00Z"', '"+12026-01-01T00:00:00Z"'),
    *('"99999999999999d"', '"P9999999Y"', '"1ns"', '"0s"', "-1", str(2**63), str(2**31), "18446744073709551616"),
    *('"* * * * * *"', '"0 0 30 2 *"', '"' + "*/1," * 500 + '1"', '"@reboot"', '"Europe/Berlim"', '"tidegate"'),
    '"' + "x" * 70_000 + '"',
    "[" + "1," * 5_000 + "1]",
    "{" + ",".join(f'"k{number}":0' for number in range(300)) + "}",
)
"""As they stand in a record: what JSON's writers make of Python's values is the harmless part of it."""
HEADERS: Final = ("ce_id", "ce_type", "ce_time", "content-type", "CE_SpecVersion", "ce_source", "day", "", "x\x00")
HEADER_VALUES: Final = (
    *(b"", b"\xff\xfe", b"tidegate.data.partition", b"tidegate.schedule.apply", b"application/cloudevents+json"),
    *(b"2026-01-01T00:00:00Z", b"h" * 100_000, "\ud7ff🙈".encode(), b"\x00"),
)
LARGE_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Hostile:
    """A record, and what is known of it.

    Attributes:
        made: How it was made, for the counts and the report.
        is_no_record: Nobody can take it for one of ours, whatever reads it.
    """

    made: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    is_no_record: bool = False


class HostileRecords:
    """An endless stream for one topic; equal seeds give equal streams."""

    def __init__(self, kind: Kind, seed: int) -> None:
        self._chance = Random(f"{kind} {seed}")
        self._number = 0
        self._documents = {"requests": requests(), "events": events(), "sources": source_records()}[kind]
        self._makers: tuple[tuple[int, Callable[[], Hostile]], ...] = (
            (10, self._bytes),
            (12, self._truncated),
            (50, self._mutated),
            (6, self._wrong_shape),
            (4, self._repeated_name),
            (4, self._deep),
            (8, self._headed),
            (1, self._large_key),
            (1, self._large_value),
            (4, self._untouched),
        )

    def next(self) -> Hostile:
        weights = [weight for weight, _ in self._makers]
        (make,) = self._chance.choices([make for _, make in self._makers], weights)
        self._number += 1
        return make()

    # -- kinds of records -----------------------------------------------------------------------------------------------

    def _bytes(self) -> Hostile:
        # A first byte that begins no JSON: what follows may be anything.
        value = bytes([self._chance.choice(b"\x00\x80\xff<%#")]) + self._chance.randbytes(self._chance.randrange(200))
        return Hostile("bytes", self._chance.randbytes(8), value, is_no_record=True)

    def _truncated(self) -> Hostile:
        text = json.dumps(self._document()).encode()
        return Hostile("truncated", None, text[: self._chance.randrange(len(text))], is_no_record=True)

    def _mutated(self) -> Hostile:
        """A document with one field, which may lie anywhere in it, replaced, added or taken away."""
        document = self._document()
        places = list(_places(document))
        inside, name = self._chance.choice(places)
        what = self._chance.randrange(10)
        if what >= 7 and not isinstance(inside[name], dict | list | None):
            inside[name] = self._alike(inside[name])
        elif what == 0:
            del inside[name]
        elif what == 1 and isinstance(inside, dict):
            inside[self._chance.choice(("surprise", "namespace", "Type", "id", "__class__", "trigger", ""))] = "@@"
        else:
            inside[name] = "@@"
        text = json.dumps(document).replace('"@@"', self._chance.choice(ODD))
        return Hostile("mutated", None, text.encode("utf-8", errors="surrogatepass"))

    def _alike(self, value: str | float | bool) -> Any:
        """Something of the same type: what gets past the first look."""
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            return self._chance.choice((0, 1, 2, 17, -value, value + 1, value * 1_000, 2**53))
        cut = self._chance.randrange(len(value) + 1)
        return self._chance.choice(
            (value[:cut], value[cut:], value + "1", f"a{value}", value.upper(), f"{value} {value}")
        )

    def _wrong_shape(self) -> Hostile:
        text = self._chance.choice((*ODD, json.dumps([self._document()]), '"text"', "12", " ", "null"))
        return Hostile("wrong shape", None, text.encode("utf-8", errors="surrogatepass"))

    def _repeated_name(self) -> Hostile:
        text = json.dumps(self._document())
        name = self._chance.choice(("type", "namespace", "id", "a"))
        return Hostile("repeated name", None, f'{{"{name}":1,"{name}":2,{text[1:]}'.encode())

    def _deep(self) -> Hostile:
        levels = self._chance.choice((33, 199, 201, 1_000, 20_000))
        document = self._document()
        document[self._chance.choice(("data", "payload", "spec", "deep"))] = "@@"
        opening, closing = self._chance.choice((("[", "]"), ('{"a":', "}")))
        deep = f"{opening * levels}1{closing * levels}"
        return Hostile("deep", None, json.dumps(document).replace('"@@"', deep).encode(), is_no_record=levels > 200)

    def _headed(self) -> Hostile:
        chosen = [
            (self._chance.choice(HEADERS), self._chance.choice(HEADER_VALUES))
            for _ in range(self._chance.randint(1, 40))
        ]
        return Hostile("headers", None, json.dumps(self._document()).encode(), tuple(chosen))

    def _large_key(self) -> Hostile:
        return Hostile("large key", b"k" * LARGE_BYTES, json.dumps(self._document()).encode())

    def _large_value(self) -> Hostile:
        document = self._document() | {"reason": "r" * (MAX_RECORD_BYTES + self._chance.randrange(LARGE_BYTES))}
        return Hostile("large value", None, json.dumps(document).encode(), is_no_record=True)

    def _untouched(self) -> Hostile:
        chosen = self._chance.choice((None, b"", json.dumps(self._document()).encode()))
        return Hostile("untouched" if chosen else "empty", None, chosen, is_no_record=not chosen)

    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._chance.choice(self._documents))
        if "id" in document and self._chance.random() < 0.9:
            document["id"] = f"fuzz-{self._number}"  # Else most would be repeats of each other.
        return document


def requests() -> list[str]:
    """Right requests, as texts: each type, and an apply with each kind of trigger and of constraint."""
    plain = [dict(model.EXAMPLE) for model in REQUEST_TYPES.values()]
    apply: dict[str, Any] = dict(REQUEST_TYPES["schedule.apply"].EXAMPLE)
    target = {"type": "program", "program": {"type": "python", "file": "/jobs/fuzz.py", "args": ["${nominal}"]}}
    named: dict[str, Any] = {"kind": "schedule", "namespace": "flights", "name": "fuzz", "target": target}
    specs: list[dict[str, Any]] = [{**named, "trigger": model.EXAMPLE} for model in _members(Trigger)]
    daily = {"type": "cron", "expression": "0 6 * * *"}
    specs += [{**named, "trigger": daily, "constraints": [dict(model.EXAMPLE)]} for model in _members(Constraint)]
    applies = [apply | {"name": "fuzz", "spec": spec} for spec in specs]
    clockwork = {
        "clientId": "orders",
        "scheduleKey": "k",
        "taskData": "x",
        "delivery": {"topic": "out"},
        "scheduleTime": 1,
    }
    # The examples' ids are of shard 42; a bench has four.
    every: list[dict[str, Any]] = [*plain, *applies, clockwork]
    return [json.dumps(each).replace("0042-", "0002-") for each in every]


def events() -> list[str]:
    """Right events, as texts: ours, of users' own, and CDAP's."""
    cdap = {
        "timestamp": 1,
        "eventType": "PARTITION",
        "payload": {"datasetId": "flights.raw", "partitionKeys": [{"day": "1"}]},
    }
    return [json.dumps(each) for each in (DataPartitionEvent.EXAMPLE, CustomEvent.EXAMPLE, cdap)]


def source_records() -> list[str]:
    """Records that the bench's source maps."""
    return [json.dumps({"day": "2026-01-01", "id": "1", "size": 12, "at": "2026-01-01T00:00:00Z", "spec": {"a": [1]}})]


def _members(union: Any) -> tuple[type[Document], ...]:
    found: tuple[type[Document], ...] = get_args(get_args(union)[0])
    return found


def _places(document: Any) -> Any:
    """Yields each place of a document that has something: its container, and the name or number in it."""
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in list(pairs):
        yield document, name
        if isinstance(value, dict | list):
            yield from _places(value)
