from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_spark import Context, DataInterval, DataPartition, NotInRun, Upstream, context
from tidegate_spark.run_context import read_context

DOCUMENT: dict[str, object] = {
    "schedule": {"id": "01JD", "namespace": "flights", "name": "join-day", "properties": {"team": "analytics"}},
    "job": {
        "id": "j-1",
        "generation": 3,
        "created": "2026-03-03T06:00:00+01:00",
        "satisfied_at": "2026-03-03T05:00:01.250Z",
    },
    "run": {"id": "0007-abc", "attempt": 2},
    "nominal": "2026-03-03T05:00:00Z",
    "interval": {"start": "2026-03-02T05:00:00Z", "end": "2026-03-03T05:00:00Z"},
    "correlation": "2013-01-01",
    "covered": ["2026-03-02T05:00:00Z", "2026-03-03T05:00:00Z"],
    "manifest": [
        {
            "dataset": "flights.raw",
            "partition": "2013-01-01",
            "version": "1",
            "bytes": 1048576,
            "rows": 842,
            "event_id": "e-1",
            "origin": "0003-xyz",
        }
    ],
    "missing": ["weather.raw"],
    "upstream": {"run_id": "0003-xyz", "status": "succeeded", "args": ["--day", "1"], "outputs": {"rows": 842}},
}


def test_given_the_whole_document_then_every_field_is_read() -> None:
    told = read_context(DOCUMENT)
    assert (told.schedule.namespace, told.schedule.name, told.schedule.id) == ("flights", "join-day", "01JD")
    assert told.schedule.properties == {"team": "analytics"}
    assert (told.job.id, told.job.generation) == ("j-1", 3)
    assert told.job.created == datetime(2026, 3, 3, 5, tzinfo=UTC)
    assert told.job.satisfied_at == datetime(2026, 3, 3, 5, 0, 1, 250_000, tzinfo=UTC)
    assert (told.run.id, told.run.attempt) == ("0007-abc", 2)
    assert told.nominal == datetime(2026, 3, 3, 5, tzinfo=UTC)
    assert told.interval == DataInterval(datetime(2026, 3, 2, 5, tzinfo=UTC), datetime(2026, 3, 3, 5, tzinfo=UTC))
    assert told.correlation == "2013-01-01"
    assert told.covered == (datetime(2026, 3, 2, 5, tzinfo=UTC), datetime(2026, 3, 3, 5, tzinfo=UTC))
    assert told.manifest == (DataPartition("flights.raw", "2013-01-01", "1", 1048576, 842, "e-1", "0003-xyz"),)
    assert not told.manifest[0].dedupe_unknown
    assert told.missing == ("weather.raw",)
    assert told.upstream == Upstream("0003-xyz", "succeeded", ("--day", "1"), {"rows": 842})
    assert told.document == DOCUMENT


def test_given_instants_in_milliseconds_then_they_read_like_texts() -> None:
    assert read_context({"nominal": 1_772_514_000_000}).nominal == datetime(2026, 3, 3, 5, tzinfo=UTC)


def test_given_an_upstream_as_run_records_name_it_then_its_state_is_the_status() -> None:
    upstream = read_context({"upstream": {"run_id": "0003-xyz", "state": "failed"}}).upstream
    assert upstream == Upstream("0003-xyz", "failed", (), {})


@given(present=st.sets(st.sampled_from(sorted(DOCUMENT))))
def test_given_any_part_of_the_document_then_the_rest_reads_as_empty(present: set[str]) -> None:
    """A program with this library must run under a newer or older node."""
    told = read_context({name: DOCUMENT[name] for name in present} | {"invented": {"later": 1}})
    assert isinstance(told, Context)
    assert (told.nominal is None) == ("nominal" not in present)
    assert (told.upstream is None) == ("upstream" not in present)
    assert bool(told.manifest) == ("manifest" in present)


def test_given_a_run_then_context_reads_the_file_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, write_json: Callable[[object], Path]
) -> None:
    monkeypatch.setenv("TIDEGATE_CONTEXT", str(write_json(DOCUMENT)))
    assert context() == read_context(DOCUMENT)


def test_given_no_run_then_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_CONTEXT", raising=False)
    with pytest.raises(NotInRun, match="TIDEGATE_CONTEXT is not set, so this is no tidegate run"):
        context()


def test_given_a_context_file_that_is_gone_then_error_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDEGATE_CONTEXT", str(tmp_path / "gone.json"))
    with pytest.raises(NotInRun, match=r"gone\.json cannot be read"):
        context()
