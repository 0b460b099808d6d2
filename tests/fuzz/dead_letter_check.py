"""Reads the dead-letter topics of a real broker, and holds them against what was produced: each rejected record has its letter,
under its own offset and whole, and nothing else has one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.fuzz.record_streams import Known, Lane, digest_of
from tests.support.cluster.topic_reader import each_of_topic

ORIGIN = "tidegate.error."
Place: TypeAlias = tuple[str, int, int]
"""Topic, topic partition, offset."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter.

    Attributes:
        place: Where its record lies.
        digest: Of the record in it: its own headers are left out.
        error_class, message: Why.
    """

    place: Place
    digest: bytes
    error_class: str
    message: str


@dataclass(slots=True)
class Judged:
    """What the letters come to.

    Attributes:
        letters: Distinct places.
        repeats: Letters of a place that has one already.
        behind: Refused behind the parsers, by class: by what the store keeps, or when a message may be due.
        faults: What should not be.
    """

    letters: int = 0
    repeats: int = 0
    behind: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def letters_of(bootstrap_servers: str, topic: str) -> Iterator[Letter]:
    """Yields the letters of a dead-letter topic whose record was read from a topic (messages have letters as well)."""
    for record in each_of_topic(bootstrap_servers, topic):
        said = {name.removeprefix(ORIGIN): text.decode() for name, text in record.headers if name.startswith(ORIGIN)}
        if "offset" in said:
            own = next(number for number, (name, _) in enumerate(record.headers) if name == f"{ORIGIN}topic")
            digest = digest_of(record.key, record.value or b"", record.headers[:own])
            place = (said["topic"], int(said["partition"]), int(said["offset"]))
            yield Letter(place, digest, said["class"], said["message"])


def judge(lanes: Sequence[Lane], letters: Iterator[Letter]) -> Judged:
    """Holds each letter against its record, then each record that has to have one against the letters."""
    said = Judged()
    by_place: dict[tuple[str, int], Lane] = {(lane.topic, lane.topic_partition): lane for lane in lanes}
    found: set[Place] = set()
    for letter in letters:
        lane = by_place.get(letter.place[:2])
        if lane is None or letter.place[2] < lane.begin:
            continue  # Somebody else's, before.
        record = lane.records.get(letter.place[2])
        if record is None:
            said.faults.append(f"{_text(letter.place)}: a dead letter of what nobody produced: {letter.message}")
            continue
        said.faults += [f"{_text(letter.place)} ({record.made}): {wrong}" for wrong in _of_one(letter, record)]
        if letter.place in found:
            said.repeats += 1
        elif not record.must_die:
            said.behind[letter.error_class] += 1
        found.add(letter.place)
    said.letters = len(found)
    for lane in lanes:
        for offset, record in lane.records.items():
            place = (lane.topic, lane.topic_partition, offset)
            if record.must_die and place not in found:
                said.faults.append(f"{_text(place)} ({record.made}): is refused, and no dead letter")
    return said


def _of_one(letter: Letter, record: Known) -> Iterator[str]:
    if letter.digest != record.digest:
        yield "its dead letter is not the record"
    if "internal error" in letter.message or not letter.message:
        yield f"the refusal is about us: {letter.message}"
    if record.is_right:
        yield f"is right, and refused: {letter.message}"


def _text(place: Place) -> str:
    return "{} {} offset {}".format(*place)
