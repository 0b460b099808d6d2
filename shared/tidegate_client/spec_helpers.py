"""Parts of a schedule in Python: targets and triggers, each a mapping exactly as in YAML.

    all_of(on_data("flights.raw"), on_data("weather.raw"), correlate="data_partition", timeout="6h")

Frequent fields are named arguments; all other fields of `docs/fields.md` may be given as well.
Nothing is checked here: `ScheduleBuilder.build` checks the whole definition with the parser for YAML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any, TypeAlias

from tidegate_core.language.values.durations import format_duration
from tidegate_core.language.values.instants import format_instant, from_datetime

Part: TypeAlias = dict[str, Any]
"""A target, trigger or constraint in its document form."""
Duration: TypeAlias = str | timedelta
"""`90s`, `15m`, `4h`, `7d`, or a timedelta of whole milliseconds."""
Moment: TypeAlias = str | datetime
"""RFC 3339 with an offset, or an aware datetime."""
TimeOfDay: TypeAlias = str | time
"""`22:00`, or a time without a zone."""

# -- targets ----------------------------------------------------------------------------------------------------------------


def pyspark(
    file: str, *, args: Sequence[str] | None = None, conf: Mapping[str, str] | None = None, **more: Any
) -> Part:
    """A PySpark script; `file` is absolute, as the nodes see it. More: `env`, `properties`, `name`."""
    return part("pyspark", file=file, args=args, conf=conf, **more)


def python(file: str, *, args: Sequence[str] | None = None, env: Mapping[str, str] | None = None, **more: Any) -> Part:
    """A plain Python script. More: `properties`, `name`."""
    return part("python", file=file, args=args, env=env, **more)


# -- triggers on time -------------------------------------------------------------------------------------------------------


def cron(expression: str, *, zone: str | None = None, dialect: str | None = None, **more: Any) -> Part:
    """Fires at these times of the zone's wall clock. More: `start`, `end`, `exclude`, `dst_gap`, `flexible`,
    `max_fires` ...
    """
    return part("cron", expression=expression, zone=zone, dialect=dialect, **more)


def every(period: Duration | Mapping[str, int], *, phase: Duration | None = None, **more: Any) -> Part:
    """Fires at multiples of elapsed time. A period such as `{"weeks": 2}` is calendar time and takes `at` and
    `zone`.
    """
    return part("every", period=period, phase=phase, **more)


def at(instant: Moment, **more: Any) -> Part:
    """Fires once."""
    return part("at", instant=instant, **more)


def times(*specs: Part, **more: Any) -> Part:
    """Fires at each instant of `cron`, `every` and `at`."""
    return part("times", specs=specs, **more)


# -- triggers on what happens -----------------------------------------------------------------------------------------------


def on_data(dataset: str, count: int | None = None, **more: Any) -> Part:
    """Fires after so many new data partitions of a dataset. More: `unit`, `kinds`, `take`, `where`, `settle`,
    `max_wait` ...
    """
    return part("data_partitions", dataset=dataset, count=count, **more)


def on_size(
    dataset: str,
    *,
    bytes: str | None = None,  # noqa: A002  # the field's own name
    rows: int | None = None,
    **more: Any,
) -> Part:
    """Fires after so many bytes (`100GB`) or rows of a dataset."""
    return part("data_size", dataset=dataset, bytes=bytes, rows=rows, **more)


def on_event(name: str, count: int | None = None, **more: Any) -> Part:
    """Fires after so many events of this name, such as `custom.truck-arrived`."""
    return part("event", name=name, count=count, **more)


def on_run(schedule: str, *, states: Sequence[str] | None = None, times: int | None = None, **more: Any) -> Part:
    """Fires after so many runs of a schedule (`name`, or `namespace/name`) reached one of these states; default
    `succeeded`.
    """
    return part("run_status", schedule=schedule, states=states, times=times, **more)


def all_of(*triggers: Part, **more: Any) -> Part:
    """Fires when each trigger is satisfied. More: `correlate`, `window`, `timeout`, `on_timeout`."""
    return part("all_of", triggers=triggers, **more)


def any_of(*triggers: Part, **more: Any) -> Part:
    """Fires when one trigger is satisfied. More: `or_mode`, `at_least_every`."""
    return part("any_of", triggers=triggers, **more)


def at_least(k: int, *triggers: Part, **more: Any) -> Part:
    """Fires when `k` of the triggers are satisfied."""
    return part("at_least", k=k, triggers=triggers, **more)


# -- values -----------------------------------------------------------------------------------------------------------------


def part(kind: str, /, **fields: Any) -> Part:
    """Returns the mapping of a part, without fields that are None."""
    return {"type": kind, **{name: written(value) for name, value in fields.items() if value is not None}}


def written(value: Any) -> Any:
    """Returns a value in its document form.

    Raises:
        ValueError: A datetime without an offset, or a duration that is negative or no whole number of milliseconds.
    """
    match value:
        case timedelta():
            milliseconds, rest = divmod(value, timedelta(milliseconds=1))
            if rest or milliseconds < 0:
                raise ValueError(f"{value!r} is not a duration of whole milliseconds")
            return format_duration(milliseconds)
        case datetime():
            return format_instant(from_datetime(value))
        case time():
            if value.microsecond or value.tzinfo is not None:
                raise ValueError(f"{value!r} is no plain time of day; the zone is a separate field")
            return value.isoformat("seconds" if value.second else "minutes")
        case Mapping():
            return {name: written(each) for name, each in value.items()}
        case tuple() | list():
            return [written(each) for each in value]
        case _:
            return value
