"""Writes on a run that need no owner: the start gate and the program's reports. Any API process sends them."""

from __future__ import annotations

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Condition, Item, Transaction, Update, Value
from tidegate_core.writes import conditions


def start_run(run_id: str, attempt: int, driver: str, now: int, token: str, *, host: str | None = None) -> Transaction:
    """Lets a driver start the run: the first driver of the current attempt wins (I2), a closed run refuses (I7).

    This write is the linearisation point of "started". `host` is the host whose launcher started this driver. It
    tells the driver's end from the end of other copies (I4).
    """
    assignments = "#state = :running, #driver = :driver"
    names: dict[str, str] = {}
    for name in ("started_at", "passed_at"):
        assignments += f", #{name} = if_not_exists(#{name}, :now)"
        names[f"#{name}"] = name
    values: dict[str, Value] = {":running": "running", ":now": now}
    if host is not None:
        assignments += ", #driver_host = :host"
        names["#driver_host"] = "driver_host"
        values[":host"] = host
    return _report(
        "start",
        run_id,
        assignments,
        names,
        values,
        conditions.may_start(attempt, driver),
        token,
    )


def report_outputs(run_id: str, attempt: int, driver: str, outputs: str, seq: int | None, token: str) -> Transaction:
    """Replaces the run's outputs (a JSON object) while it runs.

    Args:
        run_id: Run.
        attempt: Attempt of the driver.
        driver: UUID of the driver.
        outputs: All outputs.
        seq: The driver's number of the report, from 1. A repeat that arrives after a later report is refused. None
            from an older wrapper, whose repeats are always accepted.
        token: Unique to this write.
    """
    assignments, names = "#outputs = :outputs", {"#outputs": "outputs"}
    values: dict[str, Value] = {":outputs": outputs}
    if seq is not None:
        assignments += ", #outputs_seq = :seq"
        names["#outputs_seq"] = "outputs_seq"
        values[":seq"] = seq
    return _report("outputs", run_id, assignments, names, values, conditions.runs_under(attempt, driver, seq), token)


def finish_run(
    run_id: str,
    attempt: int,
    driver: str,
    outcome: str,
    exit_code: int | None,
    reason: str | None,
    error_class: str | None,
    outputs: str | None,
    now: int,
    token: str,
) -> Transaction:
    """Records the end that the program's wrapper observed. The owner's finishing transaction follows."""
    assignments = ["#outcome = :outcome", "#ended_at = :now"]
    names = {"#outcome": "outcome"}
    values: dict[str, Value] = {":outcome": outcome, ":now": now}
    for name, value in (
        ("exit_code", exit_code),
        ("reason", reason),
        ("error_class", error_class),
        ("outputs", outputs),
    ):
        if value is not None:
            assignments.append(f"#{name} = :{name}")
            names[f"#{name}"] = name
            values[f":{name}"] = value
    return _report(
        "finished", run_id, ", ".join(assignments), names, values, conditions.runs_under(attempt, driver, None), token
    )


def was_overtaken(item: Item | None, attempt: int, driver: str, seq: int | None) -> bool:
    """Returns whether refused `outputs` are merely not newer than a report of this driver that was accepted."""
    if item is None or seq is None:
        return False
    runs = item.get("attempt") == attempt and item.get("driver") == driver and item.get("ended_at") is None
    taken = item.get("outputs_seq")
    return runs and isinstance(taken, int) and seq <= taken


def was_finished_by(item: Item | None, attempt: int, driver: str, outcome: str) -> bool:
    """Returns whether a refused `finished` repeats one that was recorded.

    The outcome must be equal as well: the owner may have ended the run as `lost` or `killed`. A report after that was
    not recorded.
    """
    return (
        item is not None
        and item.get("attempt") == attempt
        and item.get("driver") == driver
        and item.get("ended_at") is not None
        and item.get("outcome") == outcome
    )


def _report(
    name: str,
    run_id: str,
    assignments: str,
    names: dict[str, str],
    values: dict[str, Value],
    condition: Condition,
    token: str,
) -> Transaction:
    key = keys.run(keys.shard_of_run(run_id), run_id)
    update = Update(
        key,
        # The revision rises too, so that an owner's write from an older read of the run is refused.
        f"SET {assignments}, #w = :w, #rev = #rev + :one",
        {**names, "#w": "w", "#rev": "rev"},
        {**values, ":w": token, ":one": 1},
        condition,
    )
    return Transaction(name, (update,), token, key)
