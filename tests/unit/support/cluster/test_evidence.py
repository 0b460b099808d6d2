from __future__ import annotations

import json
from pathlib import Path

from tests.support.cluster.evidence import Evidence, ManifestEntry

START = {
    "what": "start",
    "run_id": "0001-a",
    "attempt": 1,
    "schedule": "land",
    "nominal": 8_000,
    "correlation": None,
    "upstream": None,
    "manifest": [["raw", "8", "e-1"]],
    "pid": 7,
    "wall_ms": 8_100,
    "monotonic_ns": 5,
}
END = {"what": "end", "wall_ms": 8_600, "monotonic_ns": 9}


def test_given_a_program_writes_then_it_is_open_until_its_last_line_is_whole(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path / "evidence")
    file = evidence.folder / "0001-a-a1-7-5.jsonl"

    file.write_text(json.dumps(START)[:20])
    assert evidence.runs() == []

    file.write_text(json.dumps(START) + "\n" + json.dumps(END))
    (run,) = evidence.open_runs()
    assert (run.schedule, run.nominal, run.manifest) == ("land", 8_000, (ManifestEntry("raw", "8", "e-1"),))

    file.write_text(json.dumps(START) + "\n" + json.dumps(END) + "\n")
    assert evidence.open_runs() == []
    assert [each.ended_at for each in evidence.of("land")] == [8_600]
    assert evidence.of("join") == []


def test_given_a_moment_then_runs_that_had_begun_and_not_ended_by_then_were_open_at_it(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path / "evidence")
    (evidence.folder / "0001-a-a1-7-5.jsonl").write_text(json.dumps(START) + "\n" + json.dumps(END) + "\n")
    (evidence.folder / "0002-b-a1-8-6.jsonl").write_text(
        json.dumps(START | {"run_id": "0002-b", "wall_ms": 8_600}) + "\n"
    )

    open_at = {moment: [run.run_id for run in evidence.open_at(moment)] for moment in (8_099, 8_100, 8_599, 8_600)}

    assert open_at == {8_099: [], 8_100: ["0001-a"], 8_599: ["0001-a"], 8_600: ["0002-b"]}
