"""The audit of histories that the production actor has made on a bench: clean as they are, and not once something is amiss."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    Doc,
    a_cancel,
    a_recurring,
    a_request,
    a_send,
    a_spec,
    an_apply,
    every,
    on_data,
)
from tests.unit.tidegate_node.audit.audited_bench import AuditedBench, kinds
from tidegate_core.explain.audit.audit_shard import BEHIND, CANNOT_TELL, CLEAN, DIFFERS, exit_code_of
from tidegate_core.explain.audit.findings import Findings
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows import keys

MINUTELY = an_apply(a_spec(trigger=every("1m")))


@pytest.fixture
def bench() -> AuditedBench:
    return AuditedBench()


@pytest.fixture
def fired(bench: AuditedBench) -> AuditedBench:
    """Ten minutes of a schedule, of a recurring message and of one of each day, all of it over."""
    bench.does(MINUTELY, an_apply(a_recurring()), a_send("m-1"), a_send("m-2", after="3m"), then=10 * MINUTE)
    return bench


def test_given_a_history_as_it_was_made_then_nothing_differs(fired: AuditedBench) -> None:
    found = fired.audit()

    assert kinds(found) == []
    assert (found.counts["launched"], found.counts["passed"], found.counts["missing"]) == (10, 2, 0)
    assert exit_code_of(found) == CLEAN
    assert fired.second_looks == 0


# -- what is removed or added is found --------------------------------------------------------------------------------------


def test_given_an_entry_of_the_ledger_that_is_gone_then_it_is_missing_and_named(fired: AuditedBench) -> None:
    entry = fired.rows("L#flights/nightly#")[3]
    fired.remove(entry)
    found = fired.audit()

    assert kinds(found) == ["entry_gone", "entry_gone", "missing"]
    missing = next(each for each in found.differences if each.kind == "missing")
    assert (missing.subject, missing.occurrence) == ("flights/nightly", format_instant(int(str(entry["nominal"]))))
    assert exit_code_of(found) == DIFFERS
    assert fired.second_looks == 1


def test_given_an_occurrence_without_any_row_then_it_is_missing(fired: AuditedBench) -> None:
    entry = fired.rows("L#flights/nightly#")[3]
    job = str(entry["job_id"])
    place = fired.rows(f"LJ#{job}")[0]
    for row in (entry, place, *fired.rows(str(place["run"]))):
        fired.remove(row)

    assert kinds(fired.audit()) == ["missing"]


def test_given_an_event_jobs_entry_that_is_gone_then_its_place_and_its_run_tell(bench: AuditedBench) -> None:
    """What was due of events is not recomputed; what is written twice is compared."""
    bench.does(an_apply(a_spec(trigger=every("1m"))), a_request("trigger"), then=2 * MINUTE)
    entry = next(row for row in bench.rows("L#") if row["trigger"] == "manual")
    bench.remove(entry)

    assert kinds(bench.audit()) == ["entry_gone", "entry_gone"]


def test_given_a_run_that_is_doubled_then_it_is_found(fired: AuditedBench) -> None:
    """Under another id: the same one has one key."""
    run = fired.rows("R#")[2]
    entry = next(row for row in fired.rows("L#") if row["job_id"] == run["id"])
    other = f"{run['id']!s}"[:-1] + "x"
    fired.put(run, sk=f"{run['sk']!s}"[:-1] + "x", id=other)
    assert kinds(fired.audit()) == ["end_gone", "entry_gone"]

    fired.put(entry, sk=f"{entry['sk']!s}"[:-1] + "x", job_id=other)
    assert kinds(fired.audit()) == ["doubled", "end_gone", "place_gone"]


def test_given_an_entry_of_an_instant_that_was_not_due_then_it_is_unexpected(fired: AuditedBench) -> None:
    entry = fired.rows("L#flights/nightly#")[3]
    fired.remove(entry)
    at = int(str(entry["nominal"])) + 1
    job = str(entry["job_id"])
    fired.put(entry, sk=f"L#flights/nightly#{keys.instant_text(at)}#{job}", nominal=at)

    assert {"missing", "unexpected"} <= set(kinds(fired.audit()))


def test_given_a_place_a_run_or_its_end_that_is_gone_then_it_is_said(fired: AuditedBench) -> None:
    fired.remove(fired.rows("LJ#")[0])
    fired.remove(fired.rows("R#")[1])
    fired.remove(fired.rows("RE#")[2])

    assert kinds(fired.audit()) == ["end_gone", "place_gone", "run_gone"]


def test_given_a_message_whose_timer_row_is_gone_then_it_is_lost(bench: AuditedBench) -> None:
    bench.does(a_send("m-1"), a_send("m-2", after="2m"), then=5 * SECOND)
    bench.remove(bench.rows("D#", "main")[1], "main")
    bench.run(5 * MINUTE)
    found = bench.audit()

    assert kinds(found) == ["message_lost"]
    assert found.differences[0].found == "its payload (M#) alone"


def test_given_a_message_whose_payload_is_gone_then_it_is_lost(bench: AuditedBench) -> None:
    bench.does(a_send("m-1", after="2m"), then=5 * SECOND)
    bench.remove(bench.rows("M#", "main")[0], "main")
    bench.run(5 * MINUTE)

    assert kinds(bench.audit()) == ["message_lost"]


def test_given_a_record_that_is_not_on_its_topic_then_it_is_lost(fired: AuditedBench) -> None:
    of_m_1 = next(sent for sent in fired.sent if sent.value == b'{"of":"m-1"}')
    recurring = [sent for sent in fired.sent if sent.value == b'"ping"'][5]
    fired.landed.lost = {of_m_1.headers["tidegate-id"], recurring.headers["tidegate-id"]}
    found = fired.audit()

    assert kinds(found) == ["message_lost", "message_lost"]
    assert any(each.occurrence.startswith("flights/ping") for each in found.differences)


def test_given_a_record_that_nobody_asked_for_then_it_is_unknown_and_repeats_are_counted(fired: AuditedBench) -> None:
    records = list(fired.landed.read(["out"], 0))
    name, value = next(each for each in records[0].headers if each[0] == "tidegate-id")
    strange = tuple((key, (value[:-1] + b"x") if key == name else each) for key, each in records[0].headers)
    fired.landed.more = [records[1], records[0]._replace(headers=strange)]
    found = fired.audit()

    assert kinds(found) == ["message_unknown"]
    assert found.counts["repeated"] == 1


def test_given_a_tally_that_counts_otherwise_then_it_differs(bench: AuditedBench) -> None:
    """Before its first closed tally a shard's rows are not counted."""
    for number in range(30):
        bench.does(a_send(f"m-{number}"), then=20 * SECOND)
    bench.run(2 * MINUTE)
    assert kinds(bench.audit()) == []

    of_one_shard = [row for row in bench.rows("Y#") if row["pk"] == "SH#0000"]
    spoiled = next(row for row in of_one_shard[1:] if row["delivered"])
    bench.put(spoiled, digest=int(str(spoiled["digest"])) + 1)
    assert kinds(bench.audit()) == ["tally_differs"]
    bench.put(spoiled, delivered=int(str(spoiled["delivered"])) - 1)
    assert kinds(bench.audit()) == ["tally_differs"]


# -- what requests do -------------------------------------------------------------------------------------------------------


def test_given_updates_suspends_and_a_new_life_then_each_generation_owes_its_own_instants(bench: AuditedBench) -> None:
    hourly = an_apply(a_spec(trigger=every("2m")), "second")
    bench.does(MINUTELY, then=3 * MINUTE)
    bench.does(a_request("suspend", request_id="s"), then=4 * MINUTE)
    bench.does(a_request("resume", request_id="r"), then=3 * MINUTE)
    bench.does(hourly, then=5 * MINUTE)
    bench.does(a_request("delete", request_id="d"), then=2 * MINUTE)
    bench.does(an_apply(a_spec(trigger=every("1m")), "third"), then=3 * MINUTE)
    found = bench.audit()

    assert kinds(found) == []
    assert found.unjudged == []
    assert found.counts["launched"] == len(
        [row for row in bench.rows("L#") if bench.now - 20 * SECOND >= int(str(row["nominal"]))]
    )

    bench.remove(bench.rows("V#flights/nightly#")[1])
    assert "generation_gone" in kinds(bench.audit())


def test_given_a_backlog_that_is_made_up_for_then_it_is_expected(bench: AuditedBench) -> None:
    bench.does(MINUTELY, then=3 * MINUTE)
    bench.does(a_request("suspend", request_id="s"), then=4 * MINUTE)
    bench.does(a_request("resume", request_id="r", backlog="coalesce"), then=5 * MINUTE)
    found = bench.audit()

    assert kinds(found) == []
    entry = next(row for row in bench.rows("L#") if row.get("covered"))
    bench.put(entry, covered=int(str(entry["covered"])) - 1)
    assert kinds(bench.audit()) == ["entry_differs", "miscounted"]


def test_given_an_outage_then_what_one_entry_stands_for_is_accounted_for(bench: AuditedBench) -> None:
    bench.does(
        an_apply(a_spec(trigger=every("1m"), catchup={"mode": "last"})), an_apply(a_recurring()), then=2 * MINUTE
    )
    bench.away(HOUR)
    bench.run(5 * MINUTE)
    found = bench.audit()

    assert kinds(found) == []
    assert found.counts["launched"] > 60


def test_given_an_update_that_keeps_the_job_of_an_outage_then_it_stands_for_instants_of_the_version_that_made_it(
    bench: AuditedBench,
) -> None:
    """World 17: the job was compared with the new version's instants, so five were missing and the rest was miscounted."""
    waits: Doc = {"catchup": {"mode": "last"}, "constraints": [{"type": "delay", "after": "3h"}], "overlap": "allow"}
    bench.does(an_apply(a_spec(trigger=every("1m"), **waits)), then=2 * MINUTE)
    bench.away(HOUR)
    bench.run(MINUTE)
    bench.does(an_apply(a_spec(trigger=every("2m"), **waits), "second"), then=5 * MINUTE)
    bench.does(a_request("suspend", mode="drop", request_id="s"), then=MINUTE)
    assert {row["version"] for row in bench.rows("L#") if row.get("covered")} == {2}
    assert kinds(bench.audit()) == []


def test_given_a_maximum_then_no_more_is_expected(bench: AuditedBench) -> None:
    bench.does(an_apply(a_spec(trigger=every("1m", max_fires=3))), then=2 * MINUTE)
    bench.does(a_request("suspend", request_id="s"), a_request("resume", request_id="r"), then=9 * MINUTE)
    found = bench.audit()

    assert kinds(found) == []
    assert found.counts["launched"] == 3


def test_given_a_cancel_and_a_replacement_then_what_they_covered_is_not_missing(bench: AuditedBench) -> None:
    bench.does(a_send("m-1", key="a", after="2m"), a_send("m-2", key="a", after="3m"), a_send("m-3", after="2m"))
    bench.does(a_cancel(message_id="m-3"), then=6 * MINUTE)
    found = bench.audit()

    assert kinds(found) == []
    assert (found.counts["passed"], found.counts["taken_back"]) == (1, 2)


def test_given_a_recurring_message_with_updates_then_all_versions_are_compared_with_the_topic(
    bench: AuditedBench,
) -> None:
    bench.does(an_apply(a_recurring()), then=MINUTE)
    bench.does(an_apply(a_recurring(trigger=every("20s")), "second"), then=2 * MINUTE)
    bench.does(a_request("delete", "ping"), then=2 * MINUTE)
    assert kinds(bench.audit()) == []

    first = next(sent for sent in bench.sent if sent.value == b'"ping"')
    bench.landed.lost = {first.headers["tidegate-id"]}
    assert kinds(bench.audit()) == ["message_lost"]


# -- what it cannot tell ----------------------------------------------------------------------------------------------------


def test_given_a_schedule_that_is_behind_then_the_shard_is_named_and_nothing_is_missing(fired: AuditedBench) -> None:
    later = fired.audit(end=fired.now + 10 * MINUTE)

    assert kinds(later) == []
    assert "flights/nightly" in {each.subject for each in later.behind}
    assert exit_code_of(later) == BEHIND


def test_given_event_schedules_then_it_says_that_their_number_is_not_recomputed(bench: AuditedBench) -> None:
    bench.does(an_apply(a_spec(trigger=on_data())), then=2 * MINUTE)
    found = bench.audit()

    assert [each.subject for each in found.unjudged] == ["flights/nightly"]
    assert exit_code_of(found) == CLEAN


def test_given_generations_of_an_older_version_then_it_cannot_tell(bench: AuditedBench) -> None:
    bench.does(MINUTELY, then=3 * MINUTE)
    bench.does(an_apply(a_spec(trigger=every("2m")), "second"), then=5 * MINUTE)
    bench.remove(bench.rows("V#")[0])
    found = bench.audit()

    assert kinds(found) == []
    assert exit_code_of(found) == CANNOT_TELL


def test_given_a_definition_that_is_gone_then_it_cannot_tell(fired: AuditedBench) -> None:
    fired.remove(fired.rows("DEF#flights/nightly#", "main")[0], "main")

    assert exit_code_of(fired.audit()) == CANNOT_TELL


def test_given_a_window_beyond_what_is_kept_then_it_says_from_when_on_it_knows(fired: AuditedBench) -> None:
    found = fired.audit(begin=NOW - 100 * DAY)

    assert [each.subject for each in found.unjudged if each.is_grave] == ["schedules", "messages"]
    assert exit_code_of(found) == CANNOT_TELL


def test_given_another_namespace_then_it_is_not_looked_at(fired: AuditedBench) -> None:
    fired.remove(fired.rows("L#flights/nightly#")[3])

    assert kinds(fired.audit(namespace="orders")) == []
    assert "missing" in kinds(fired.audit(namespace="flights"))


def test_given_something_that_moved_between_two_reads_then_the_second_look_has_it() -> None:
    """A run that is parked goes back to being a job: whoever reads jobs before runs may see neither."""
    bench = AuditedBench()
    bench.does(MINUTELY, then=5 * MINUTE)
    entry = bench.rows("L#flights/nightly#")[1]
    bench.remove(entry)
    first = Findings()
    first.differs("missing", "flights/nightly", int(str(entry["nominal"])), "", "")

    assert first.confirmed_by(Findings()).differences == []
