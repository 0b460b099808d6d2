"""Each way in which a wrapped program can end, with a real process and a scripted gate."""

from __future__ import annotations

import json
import py_compile
import signal
import socket
import subprocess
import zipfile
from pathlib import Path
from typing import Protocol

import pytest

from tidegate_spark.user_program import REASON_BYTES_MAX


class Request(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def authorization(self) -> str: ...
    @property
    def body(self) -> dict[str, object]: ...


class Gate(Protocol):
    url: str
    requests: list[Request]

    def answers(self, action: str, *answers: tuple[int, str]) -> None: ...
    def first_answers(self, action: str, *answers: tuple[int, str]) -> None: ...
    def refuses(self, action: str, status: int, **words: str) -> None: ...
    def of(self, action: str) -> list[Request]: ...
    def wait_for(self, action: str, count: int) -> None: ...


class Program(Protocol):
    folder: Path
    environment: dict[str, str]
    script: Path

    def write(self, source: str) -> None: ...
    def has_patient_clock(self) -> None: ...
    def start(self, *args: str, file: Path | None = None) -> subprocess.Popen[str]: ...
    def run(self, *args: str, file: Path | None = None) -> subprocess.CompletedProcess[str]: ...


def finished(gate: Gate) -> dict[str, object]:
    """The one report of the end."""
    (report,) = gate.of("finished")
    return report.body


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_given_go_then_program_runs_with_its_arguments_and_success_is_reported(gate: Gate, program: Program) -> None:
    program.write("import sys; print(sys.argv, __name__)")
    done = program.run("a", "b c", "--flag")
    assert done.returncode == 0
    assert done.stdout.strip() == f"{[str(program.script), 'a', 'b c', '--flag']} __main__"
    assert finished(gate) == {
        "attempt": 2,
        "driver": gate.of("start")[0].body["driver"],
        "outcome": "succeeded",
        "reason": "",
        "exit_code": 0,
        "outputs": {},
    }


def test_given_go_then_start_names_run_attempt_host_and_process_and_carries_the_token(
    gate: Gate, program: Program
) -> None:
    program.write("import os; print(os.getpid())")
    done = program.run()
    (start,) = gate.of("start")
    assert start.path == "/api/v1/runs/0007-abcdefghijklmnopqrstuvwxyz/start"
    assert start.authorization == "Bearer token-of-the-test"
    assert set(start.body) == {"attempt", "driver", "host", "pid", "launcher_host"}
    assert start.body["launcher_host"] == "host-of-the-test"
    assert start.body["host"] == socket.gethostname()
    assert start.body["pid"] == int(done.stdout)


def test_given_two_processes_of_one_attempt_then_each_is_a_driver_of_its_own(gate: Gate, program: Program) -> None:
    program.run()
    program.run()
    first, second = gate.of("start")
    assert first.body["driver"] != second.body["driver"]


def test_given_go_then_neither_program_nor_its_children_see_the_token(gate: Gate, program: Program) -> None:
    program.write(
        "import os, subprocess, sys\n"
        "print('TIDEGATE_RUN_TOKEN' in os.environ)\n"
        "sys.stdout.flush()\n"
        "subprocess.run([sys.executable, '-c', \"import os; print('TIDEGATE_RUN_TOKEN' in os.environ)\"], check=True)\n"
    )
    assert program.run().stdout.split() == ["False", "False"]


def test_given_modules_beside_the_script_then_they_are_found_and_ours_do_not_shadow_them(program: Program) -> None:
    (program.folder / "errors.py").write_text("NAME = 'the user errors'", encoding="utf-8")
    program.write("import errors; print(errors.NAME)")
    assert program.run().stdout.strip() == "the user errors"


@pytest.mark.parametrize("status", [409, 410])
def test_given_another_driver_has_the_run_then_nothing_runs_and_the_exit_tells_the_launcher(
    gate: Gate, program: Program, status: int
) -> None:
    gate.refuses("start", status, reason="driver 4711 has it")
    done = program.run()
    assert (done.returncode, done.stdout) == (79, ""), "0 would read as the end of the run"
    assert "duplicate, not run" in done.stderr
    assert "driver 4711 has it" in done.stderr
    assert gate.of("finished") == []


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_given_gate_refuses_then_exit_is_78_with_its_words(gate: Gate, program: Program, status: int) -> None:
    gate.refuses("start", status, title="no", detail="the token is of another run")
    done = program.run()
    assert (done.returncode, done.stdout) == (78, "")
    assert f"refused run 0007-abcdefghijklmnopqrstuvwxyz attempt 2 with {status}" in done.stderr
    assert "the token is of another run" in done.stderr
    assert gate.of("finished") == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_given_gate_is_busy_then_the_same_driver_asks_again(gate: Gate, program: Program, status: int) -> None:
    gate.first_answers("start", (status, "busy"), (status, "busy"))
    assert program.run().returncode == 0
    assert len({str(request.body["driver"]) for request in gate.of("start")}) == 1
    assert len(gate.of("start")) == 3


def test_given_nobody_listens_then_exit_is_75_and_nothing_ran(program: Program) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # Bound, not listening: connections are refused, and nobody else gets the port.
        program.environment["TIDEGATE_GATE_URL"] = f"http://127.0.0.1:{unused.getsockname()[1]}"
        program.environment["TIDEGATE_GATE_WAIT_S"] = "0.3"
        program.has_patient_clock()
        done = program.run()
    assert (done.returncode, done.stdout) == (75, "")
    assert "no word from the start gate" in done.stderr
    assert "within 0.3 s, not run" in done.stderr


def test_given_gate_stays_unavailable_then_exit_is_75_after_more_than_one_try(gate: Gate, program: Program) -> None:
    gate.answers("start", (503, json.dumps({"detail": "the store is down"})))
    program.environment["TIDEGATE_GATE_WAIT_S"] = "1"
    program.has_patient_clock()
    done = program.run()
    assert (done.returncode, done.stdout) == (75, "")
    assert "the store is down" in done.stderr
    assert len(gate.of("start")) > 1


@pytest.mark.parametrize("status", [200, 404])
def test_given_a_proxys_page_in_place_of_the_gates_word_then_nothing_runs_and_exit_is_75(
    gate: Gate, program: Program, status: int
) -> None:
    gate.answers("start", (status, "<html>maintenance</html>"))
    program.environment["TIDEGATE_GATE_WAIT_S"] = "0.3"
    program.has_patient_clock()
    done = program.run()
    assert (done.returncode, done.stdout) == (75, "")
    assert f"HTTP {status} that is not of tidegate's API" in done.stderr


@pytest.mark.parametrize("status", [200, 404])
def test_given_a_proxys_page_in_place_of_an_answer_then_the_end_is_reported_again(
    gate: Gate, program: Program, status: int
) -> None:
    gate.first_answers("finished", (status, "<html>maintenance</html>"))
    done = program.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(gate.of("finished")) == 2


@pytest.mark.parametrize("name", ["TIDEGATE_RUN_ID", "TIDEGATE_ATTEMPT", "TIDEGATE_GATE_URL", "TIDEGATE_RUN_TOKEN"])
def test_given_a_variable_is_missing_then_exit_is_78_and_it_is_named(gate: Gate, program: Program, name: str) -> None:
    del program.environment[name]
    done = program.run()
    assert (done.returncode, done.stdout) == (78, "")
    assert name in done.stderr
    assert gate.requests == []


def test_given_gate_url_is_no_url_then_exit_is_78(program: Program) -> None:
    program.environment["TIDEGATE_GATE_URL"] = "localhost:8080"
    done = program.run()
    assert (done.returncode, done.stdout) == (78, "")
    assert "is no http or https URL" in done.stderr


def test_given_the_script_vanished_then_exit_is_78_before_the_gate(gate: Gate, program: Program) -> None:
    done = program.run(file=program.folder / "gone.py")
    assert done.returncode == 78
    assert f"program file {program.folder / 'gone.py'} does not exist" in done.stderr
    assert gate.requests == []


def test_given_an_exception_then_traceback_begins_in_the_script_and_its_words_are_reported(
    gate: Gate, program: Program
) -> None:
    program.write("def load():\n    raise KeyError('no such day')\nload()\n")
    done = program.run()
    assert done.returncode == 1
    assert finished(gate)["outcome"] == "failed"
    assert finished(gate)["reason"] == "KeyError: 'no such day'"
    assert finished(gate)["exit_code"] == 1
    assert done.stderr.splitlines()[1] == f'  File "{program.script}", line 3, in <module>'


HOOK = """\
import sys

def hook(kind, error, trace):
    print(kind.__name__, trace is error.__traceback__, trace.tb_lineno)
    {end}

sys.excepthook = hook
raise ValueError("no input")
"""


@pytest.mark.parametrize("end", ["return", "raise TypeError('no hook')", "sys.exit(3)"])
def test_given_a_hook_for_exceptions_then_it_is_called_and_the_end_is_reported(
    gate: Gate, program: Program, end: str
) -> None:
    """Whoever collects a team's errors sets one: those of its runs were missing there."""
    program.write(HOOK.format(end=end))
    done = program.run()
    assert (done.returncode, done.stdout) == (1, "ValueError True 8\n")
    assert ("TypeError: no hook" in done.stderr and "ValueError: no input" in done.stderr) is ("TypeError" in end)
    assert (finished(gate)["reason"], finished(gate)["exit_code"]) == ("ValueError: no input", 1)


def test_given_a_syntax_error_then_it_is_a_failure_of_the_program(gate: Gate, program: Program) -> None:
    program.write("def broken(:\n")
    assert program.run().returncode == 1
    assert str(finished(gate)["reason"]).startswith("SyntaxError: ")


def test_given_an_endless_message_then_reason_is_cut_to_a_kibibyte_and_log_has_all(
    gate: Gate, program: Program
) -> None:
    program.write("raise ValueError('ä' * 100_000)")
    done = program.run()
    assert len(str(finished(gate)["reason"]).encode()) <= REASON_BYTES_MAX
    assert "ä" * 100_000 in done.stderr


def test_given_an_error_whose_text_fails_then_the_end_is_reported_all_the_same(gate: Gate, program: Program) -> None:
    program.write("class Odd(Exception):\n    def __str__(self):\n        raise TypeError('no text')\nraise Odd\n")
    assert program.run().returncode == 1
    assert finished(gate)["reason"] == "Odd: (its text raised TypeError)"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param("sys.stderr.close()\nraise ValueError('no input')", "ValueError: no input", id="error, closed"),
        pytest.param(
            "sys.stderr = open('/dev/full', 'w', buffering=1)\nraise ValueError('no input')",
            "ValueError: no input",
            id="error, full",
        ),
        pytest.param("sys.stderr = None\nraise ValueError('no input')", "ValueError: no input", id="error, none"),
        pytest.param("sys.stderr.close()\nsys.exit('no input')", "SystemExit: no input", id="exit, closed"),
        pytest.param("sys.stderr = None\nsys.exit('no input')", "SystemExit: no input", id="exit, none"),
        pytest.param(
            "class Odd:\n    def __str__(self):\n        raise TypeError\nsys.exit(Odd())",
            "SystemExit: (its text raised TypeError)",
            id="exit without a text",
        ),
    ],
)
def test_given_words_that_cannot_be_written_then_the_end_is_reported_all_the_same(
    gate: Gate, program: Program, source: str, reason: str
) -> None:
    """Standard error is closed, as a daemon does, or on a disk that is full: the run ended as one that nobody had reported."""
    program.write(f"import sys\n{source}\n")
    assert program.run().returncode in (1, 120), "Python's own code where it cannot flush"
    assert (finished(gate)["outcome"], finished(gate)["reason"], finished(gate)["exit_code"]) == ("failed", reason, 1)


@pytest.mark.parametrize(
    ("statement", "code", "outcome", "reason"),
    [
        pytest.param("sys.exit()", 0, "succeeded", "", id="none"),
        pytest.param("sys.exit(0)", 0, "succeeded", "", id="zero"),
        pytest.param("sys.exit(3)", 3, "failed", "exit code 3", id="number"),
        pytest.param("sys.exit(256)", 0, "succeeded", "", id="the system keeps eight bits"),
        pytest.param("sys.exit('no input')", 1, "failed", "SystemExit: no input", id="text"),
        pytest.param("raise KeyboardInterrupt", 1, "failed", "KeyboardInterrupt: ", id="interrupt"),
    ],
)
def test_given_the_program_exits_by_itself_then_its_code_is_kept(
    gate: Gate, program: Program, statement: str, code: int, outcome: str, reason: str
) -> None:
    program.write(f"import sys\n{statement}\n")
    assert program.run().returncode == code
    assert (finished(gate)["outcome"], finished(gate)["reason"], finished(gate)["exit_code"]) == (outcome, reason, code)


def test_given_sigterm_then_cleanup_runs_and_the_report_says_terminated(gate: Gate, program: Program) -> None:
    program.write(
        "import time\n"
        "try:\n    print('ready', flush=True)\n    time.sleep(600)\n"
        "except Exception:\n    print('never: SystemExit is no Exception', flush=True)\n"
        "finally:\n    print('cleaned', flush=True)\n"
    )
    with program.start() as process:
        assert line_of(process) == "ready"
        process.send_signal(signal.SIGTERM)
        assert line_of(process) == "cleaned"
        assert process.wait(timeout=30) == 143
    assert (finished(gate)["outcome"], finished(gate)["reason"]) == ("failed", "terminated")
    assert finished(gate)["exit_code"] == 143


def test_given_sigterm_at_the_gate_that_let_it_pass_and_was_not_heard_then_nothing_runs_and_its_end_is_reported(
    gate: Gate, program: Program
) -> None:
    """By then the run is this driver's: nobody on another host could say that it is gone."""
    gate.first_answers("start", (503, ""), (503, ""))
    with program.start() as process:
        gate.wait_for("start", 1)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (143, "")
    assert finished(gate)["driver"] == gate.of("start")[0].body["driver"]
    assert (finished(gate)["outcome"], finished(gate)["reason"]) == ("failed", "terminated")
    assert finished(gate)["exit_code"] == 143


def test_given_sigterm_at_the_gate_that_refuses_then_the_exit_tells_the_launcher_and_nothing_is_reported(
    gate: Gate, program: Program
) -> None:
    refusal = json.dumps({"type": "urn:tidegate:problem:test", "status": 409, "detail": "the run was cancelled"})
    gate.answers("start", (503, ""), (409, refusal))
    with program.start() as process:
        gate.wait_for("start", 1)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (79, "")
    assert gate.of("finished") == []


def test_given_sigterm_at_a_gate_that_stays_silent_then_it_ends_after_seconds_and_nothing_ran(
    gate: Gate, program: Program
) -> None:
    gate.answers("start", (503, ""))
    program.environment["TIDEGATE_GATE_WAIT_S"] = "600"
    with program.start() as process:
        gate.wait_for("start", 1)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (143, "")
    assert "asked to end" in errors
    assert gate.of("finished") == []


def test_given_sigterm_during_the_report_then_the_report_still_arrives(gate: Gate, program: Program) -> None:
    gate.first_answers("finished", (503, ""), (503, ""))
    with program.start() as process:
        gate.wait_for("finished", 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert [report.body["outcome"] for report in gate.of("finished")] == ["succeeded"] * 3


def test_given_a_program_with_its_own_sigterm_handler_then_its_own_outcome_counts(gate: Gate, program: Program) -> None:
    program.write(
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\nsignal.pause()\n"
    )
    with program.start() as process:
        assert line_of(process) == "ready"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 9
    assert finished(gate)["reason"] == "exit code 9"


def test_given_threads_that_outlast_the_script_then_the_end_is_reported_after_them(
    gate: Gate, program: Program
) -> None:
    program.write(
        "import threading\n"
        "from tidegate_spark import set_output\n"
        "def late():\n    threading.main_thread().join()\n    set_output('rows', 842)\n"
        "threading.Thread(target=late).start()\n"
    )
    assert program.run().returncode == 0
    assert [request.path.rpartition("/")[2] for request in gate.requests] == ["start", "outputs", "finished"]
    assert finished(gate)["outputs"] == {"rows": 842}


PICKLES_AFTERWARDS = """\
import pickle, sys, threading

class State:
    pass

def save():
    print(pickle.loads(pickle.dumps(State())).__class__ is sys.modules["__main__"].State)

{later}
"""


@pytest.mark.parametrize(
    "later",
    [
        pytest.param("import atexit; atexit.register(save)", id="exit handler"),
        pytest.param(
            "threading.Thread(target=lambda: (threading.main_thread().join(), save())).start()",
            id="thread that is left",
        ),
    ],
)
def test_given_what_outlasts_the_script_then_it_finds_the_script_s_own_names_as_under_python_itself(
    gate: Gate, program: Program, later: str
) -> None:
    """Found in review: a state that an exit handler wanted to pickle was not kept, and the run had succeeded."""
    program.write(PICKLES_AFTERWARDS.format(later=later))
    done = program.run()
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert finished(gate)["outcome"] == "succeeded"


def test_given_an_archive_or_a_compiled_script_then_it_runs(gate: Gate, program: Program) -> None:
    archive, compiled = program.folder / "job.pyz", program.folder / "job.pyc"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("__main__.py", "import sys; print(__name__, sys.argv[1:])")
    program.write("import sys; print(__name__, sys.argv[1:])")
    py_compile.compile(str(program.script), str(compiled), doraise=True)
    assert [program.run("a", file=file).stdout for file in (archive, compiled)] == ["__main__ ['a']\n"] * 2
    assert [report.body["outcome"] for report in gate.of("finished")] == ["succeeded"] * 2


@pytest.mark.parametrize("later", ["datetime.datetime.now()", "'x' * 70_000"])
def test_given_an_output_that_changes_after_its_report_then_the_end_is_reported_with_what_was_acknowledged(
    gate: Gate, program: Program, later: str
) -> None:
    program.write(
        "import datetime\n"
        "from tidegate_spark import set_output\n"
        "steps = ['read']\n"
        "set_output('steps', steps)\n"
        f"steps.append({later})\n"
    )
    assert program.run().returncode == 0
    assert finished(gate)["outputs"] == {"steps": ["read"]}


def test_given_the_report_is_refused_as_settled_then_the_exit_code_stays_and_a_line_says_so(
    gate: Gate, program: Program
) -> None:
    gate.refuses("finished", 409, detail="the run was cancelled")
    done = program.run()
    assert done.returncode == 0
    assert "the end (succeeded) was not recorded: the run was cancelled" in done.stderr


def test_given_the_report_cannot_be_delivered_then_the_exit_code_stays_and_a_line_says_so(
    gate: Gate, program: Program
) -> None:
    gate.answers("finished", (503, ""))
    program.environment["TIDEGATE_REPORT_WAIT_S"] = "0.3"
    done = program.run()
    assert done.returncode == 0
    assert "the end (succeeded) could not be reported" in done.stderr


def test_given_a_program_that_uses_the_library_then_partition_and_outputs_reach_the_api(
    gate: Gate, program: Program
) -> None:
    program.write(
        "from tidegate_spark import report_outputs, report_partition, set_output\n"
        "print(report_partition('flights.raw', '2013-01-01', rows=842, bytes=1048576))\n"
        "set_output('rows', 842)\n"
        "report_outputs(path='/data/2013-01-01', days=['2013-01-01'])\n"
    )
    done = program.run()
    assert done.stdout.strip() == "0007-abcdefghijklmnopqrstuvwxyz/flights.raw/2013-01-01/1"
    driver = gate.of("start")[0].body["driver"]
    assert gate.of("partitions")[0].body == {
        "attempt": 2,
        "driver": driver,
        "dataset": "flights.raw",
        "partition": "2013-01-01",
        "version": "1",
        "bytes": 1048576,
        "rows": 842,
    }
    everything = {"rows": 842, "path": "/data/2013-01-01", "days": ["2013-01-01"]}
    assert [request.body["outputs"] for request in gate.of("outputs")] == [{"rows": 842}, everything]
    assert finished(gate)["outputs"] == everything
