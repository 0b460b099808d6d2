"""What an older release reads of the documents that a newer one accepted (decision 26): their grammar is written down, name by name.

Rows hold documents as JSON: definitions, sources, triggers of recurring messages, answers. A member or a word that the release before does
not know is refused by it, and what it belongs to stands aside there. Whoever adds one says since which version of the store it may be
applied (`SCHEMA.writes`), refuses it before that, and adds it here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.requests.receipts import Receipt

WRITTEN_DOWN = Path(__file__).with_name("stored_grammar.txt")
DOCUMENTS: tuple[type[BaseModel], ...] = (ScheduleSpec, SourceSpec, Receipt)


def grammar() -> str:
    """Returns a line for each member of each part of a document, with the words that it may be where they are fixed."""
    lines: set[str] = set()
    for document in DOCUMENTS:
        schema = document.model_json_schema()
        for name, part in {document.__name__: schema, **schema.get("$defs", {})}.items():
            lines.update(f"{name} {line}".rstrip() for line in _lines(part))
    return "".join(f"{line}\n" for line in sorted(lines))


def _lines(part: Mapping[str, Any]) -> Iterator[str]:
    if words := sorted(_words(part)):
        yield f"= {', '.join(words)}"
    for member, of in part.get("properties", {}).items():
        words = sorted(_words(of))
        yield f".{member}" + (f" = {', '.join(words)}" if words else "")


def _words(part: Mapping[str, Any]) -> Iterator[str]:
    if "const" in part:
        yield str(part["const"])
    yield from map(str, part.get("enum", ()))
    branches = [*part.get("anyOf", ()), *part.get("oneOf", ())]
    for branch in [*branches, part["items"]] if isinstance(part.get("items"), dict) else branches:
        yield from _words(branch)


def test_given_the_documents_then_their_grammar_is_the_one_that_the_release_before_reads() -> None:
    assert grammar() == WRITTEN_DOWN.read_text(encoding="utf-8"), (
        "an older release does not read this: see the words at the head of this file"
    )


def test_given_the_grammar_then_it_names_members_and_words() -> None:
    lines = grammar().splitlines()
    assert {"ScheduleSpec .overlap", "SourceSpec .topic", "Receipt .status"} <= {
        line.partition(" = ")[0] for line in lines
    }
    assert any(" = " in line and "accepted" in line for line in lines)
