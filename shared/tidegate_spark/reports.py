"""Reports of a running program: data partitions that it wrote, and outputs for downstream runs.

Each call returns when the API has acknowledged it, and retries until then (5 min by default, TIDEGATE_REPORT_WAIT_S). A
repeat is harmless: the event id of a data partition contains the run and not the attempt, and each report of outputs
holds all of them.
"""

from __future__ import annotations

import itertools
import json
import operator
import threading
from collections.abc import Mapping
from typing import SupportsIndex

from tidegate_spark.current_run import current_gate
from tidegate_spark.errors import OutputsTooLarge, ReportFailed
from tidegate_spark.gate_client import Deadline, GateClient, GateUnreachable

OUTPUTS_BYTES_MAX = 64 * 1024
"""Largest JSON of a run's outputs. They are part of the run item, far below the store's 400 KB."""

_outputs: dict[str, object] = {}
"""Acknowledged outputs, parsed from the JSON that was sent: a program may change its own objects later."""
_reports = itertools.count(1)
"""Numbers of the reports of outputs. With them the gate ignores a repeat that arrives after a later report."""
_outputs_lock = threading.Lock()  # Drivers report from several threads, and must not drop each other's keys.


def report_partition(
    dataset: str,
    partition: str,
    *,
    bytes: int | None = None,  # noqa: A002 - the public event's field has this name
    rows: int | None = None,
    version: str | None = None,
) -> str:
    """Announces a data partition. Call it after the data is committed: triggers may fire before this returns.

    Args:
        dataset: Name of the dataset, such as `flights.raw`.
        partition: Name of the data partition within it, such as `2013-01-01`.
        bytes: Size, for triggers that count bytes.
        rows: Number of rows, for triggers that count rows.
        version: Distinguishes two writes of the same data partition in one run; "1" by default.

    Returns:
        The event's id, `<run id>/<dataset>/<partition>/<version>`: a repeat by a later attempt counts once. In the
        version `~` and `/` become `~0` and `~1`, so that no two data partitions share an id.

    Raises:
        NotInRun: Not the main process of a run.
        ReportFailed: The API refused the report, or could not be reached in time.
        ValueError: An argument is unusable.
    """
    subject = f"report_partition {dataset} {partition}"
    texts: dict[str, object] = {"dataset": dataset, "partition": partition, "version": version or "1"}
    for name, text in texts.items():
        if not isinstance(text, str) or not text:
            raise ValueError(f"report_partition: {name} must be a text that is not empty, not {text!r}")
    bytes, rows = _whole("bytes", bytes, subject), _whole("rows", rows, subject)  # noqa: A001 - as above
    fields = {**texts, "bytes": bytes, "rows": rows}
    known = {name: value for name, value in fields.items() if value is not None}
    gate = current_gate(subject)
    _post(gate, "partitions", known, subject)
    # The API encodes the version in the same way.
    as_one_step = (version or "1").replace("~", "~0").replace("/", "~1")
    return f"{gate.identity.run_id}/{dataset}/{partition}/{as_one_step}"


def _whole(name: str, number: SupportsIndex | None, subject: str) -> int | None:
    """Returns the number as a JSON integer: a sum of numpy's is no `int`. Raises ValueError."""
    try:
        whole = None if number is None else operator.index(number)
    except TypeError:
        whole = -1
    if whole is not None and whole < 0:
        raise ValueError(f"{subject}: {name} must be a whole number from 0, not {number!r}")
    return whole


def set_output(key: str, value: object) -> None:
    """Sets one output of the run; downstream runs read it as `${upstream.outputs.<key>}`.

    Raises:
        NotInRun: Not the main process of a run.
        OutputsTooLarge: All outputs together exceed 64 KiB of JSON.
        ReportFailed: The API refused the report, or could not be reached in time.
        ValueError: The value is not JSON, or holds half a character, as a file name that is not UTF-8 does.
    """
    _report({key: value})


def report_outputs(**outputs: object) -> None:
    """Sets several outputs at once; see `set_output`."""
    _report(outputs)


def outputs_so_far() -> dict[str, object]:
    """Returns the acknowledged outputs; the wrapper repeats them when the run finishes."""
    with _outputs_lock:
        return dict(_outputs)


def _report(changed: Mapping[str, object]) -> None:
    subject = f"outputs {', '.join(changed)}"
    # Checked before the lock is taken: in a forked child the lock may be held for ever.
    gate = current_gate(subject)
    with _outputs_lock:
        text = _json_of({**_outputs, **changed}, subject)
        if len(text) > OUTPUTS_BYTES_MAX:
            raise OutputsTooLarge(
                f"{subject}: all outputs together are {len(text)} bytes of JSON, at most "
                f"{OUTPUTS_BYTES_MAX} are kept; write the data to storage and report where it is"
            )
        everything = json.loads(text)
        _post(gate, "outputs", {"outputs": everything, "seq": next(_reports)}, subject)
        _outputs.update(everything)


def _json_of(outputs: Mapping[str, object], subject: str) -> bytes:
    try:
        # In the stored form. Strict: a text that UTF-8 cannot hold could not be passed on.
        return json.dumps(outputs, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{subject}: {error}; use texts, numbers, booleans, lists and maps") from error


def _post(gate: GateClient, action: str, fields: Mapping[str, object], subject: str) -> None:
    try:
        answer = gate.post(action, fields, Deadline(gate.identity.report_wait_s))
    except GateUnreachable as error:
        raise ReportFailed(
            f"{subject}: {gate.identity.gate_url} gave no answer within {gate.identity.report_wait_s:g} s "
            f"(last: {error}); check the API, then run again"
        ) from error
    if not answer.ok:
        raise ReportFailed(f"{subject}: refused with {answer.status}: {answer.problem}; a repeat will not help")
