"""The list of sources as it is stored."""

from __future__ import annotations

import json
from dataclasses import replace

from tidegate_core.rows.source_list import Source, Sources, StoredSources


def test_given_a_source_of_a_newer_release_then_what_this_one_does_not_know_is_overlooked() -> None:
    """As with an item's attributes (decision 26): a further member of an entry ended the topic partition of an older node."""
    sources = Sources(version=3, entries=(Source(namespace="flights", name="landed", position="p", version=1),))
    stored = StoredSources.of(sources)
    entries = [{**entry, "later": 1} for entry in json.loads(stored.entries)]
    assert replace(stored, entries=json.dumps(entries)).sources == sources
